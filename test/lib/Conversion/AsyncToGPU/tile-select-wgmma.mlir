// RUN: tile-opt %s --tile-select-wgmma --split-input-file --verify-diagnostics | FileCheck-22 %s

// Both operands from swizzled slots, the right one with rows along n or along k; the left one from registers.

// CHECK-LABEL: tile.kernel @products
// CHECK-COUNT-3: tile.mma {{.*}} {tile.unit = "wgmma"}
// CHECK-NOT: "wgmma"
tile.kernel @products(%x: memref<128x64xf16>, %y: memref<128x64xf32>) attributes {tile.warps = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %as = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x128x64xf16, #tile.level<"shared">>
  %bs = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
  %slot = memref.subview %bs[%c1, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
      to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
  %zero = arith.constant dense<0.0> : !tile.tile<128x64xf32>
  %r = tile.load %x[%c0, %c0] : memref<128x64xf16>, !tile.tile<128x64xf16>
  %a = tile.load %as[%c1, %c0, %c0] : memref<2x128x64xf16, #tile.level<"shared">>, !tile.tile<128x64xf16>
  %n = tile.load %bs[%c1, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %t = tile.load %slot[%c0, %c0] dims [1, 0]
      : memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %d = tile.mma %a, %n, %zero : !tile.tile<128x64xf16>, !tile.tile<64x64xf16>, !tile.tile<128x64xf32>
  %e = tile.mma %r, %n, %d : !tile.tile<128x64xf16>, !tile.tile<64x64xf16>, !tile.tile<128x64xf32>
  %f = tile.mma %a, %t, %e : !tile.tile<128x64xf16>, !tile.tile<64x64xf16>, !tile.tile<128x64xf32>
  %g = tile.mma %a, %t, %f {tile.unit = "mma"} : !tile.tile<128x64xf16>, !tile.tile<64x64xf16>, !tile.tile<128x64xf32>
  tile.store %g, %y[%c0, %c0] : !tile.tile<128x64xf32>, memref<128x64xf32>
  tile.return
}

// -----

// What does not fit says so; products of f32 are for other units, without a word.

// CHECK-LABEL: tile.kernel @others
// CHECK-NOT: tile.unit
tile.kernel @others(%x: memref<64x64xf16>, %w: memref<64x64xf32>, %q: memref<64x64xi8>) {
  %c0 = arith.constant 0 : index
  %bs = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
  %plain = tile.alloc : memref<2x64x64xf16, #tile.level<"shared">>
  %bytes = tile.alloc {tile.layouts = [#tile.layout<swizzle = 64>]} : memref<2x64x64xi8, #tile.level<"shared">>
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %few = arith.constant dense<0.0> : !tile.tile<32x64xf32>
  %none = arith.constant dense<0> : !tile.tile<64x64xi32>
  %a = tile.load %x[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %rows = tile.load %x[%c0, %c0] : memref<64x64xf16>, !tile.tile<32x64xf16>
  %b = tile.load %bs[%c0, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %p = tile.load %plain[%c0, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %u = tile.load %q[%c0, %c0] : memref<64x64xi8>, !tile.tile<64x64xi8>
  %v = tile.load %bytes[%c0, %c0, %c0] : memref<2x64x64xi8, #tile.level<"shared">>, !tile.tile<64x64xi8>
  %w32 = tile.load %w[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
  // expected-remark@+1 {{not multiplied by wgmma, since it has 32 rows for 4 warps: four warps take multiples of 64}}
  %0 = tile.mma %rows, %b, %few : !tile.tile<32x64xf16>, !tile.tile<64x64xf16>, !tile.tile<32x64xf32>
  // expected-remark@+1 {{not multiplied by wgmma, since it has a right operand that is not loaded from shared memory}}
  %1 = tile.mma %a, %a, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
  // expected-remark@+1 {{has a right operand that lies in a buffer without a swizzle}}
  %2 = tile.mma %a, %p, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
  // expected-remark@+1 {{has a right operand that has rows along the other dimension than k}}
  %3 = tile.mma %u, %v, %none : !tile.tile<64x64xi8>, !tile.tile<64x64xi8>, !tile.tile<64x64xi32>
  %4 = tile.mma %w32, %w32, %zero : !tile.tile<64x64xf32>, !tile.tile<64x64xf32>, !tile.tile<64x64xf32>
  tile.return
}

// -----

// 2:4 sparse products, whose instruction reads 64 bytes of the right operand along k.

// CHECK-LABEL: tile.kernel @sparse
// CHECK: tile.mma {{.*}} sparsity [2, 4] {tile.unit = "wgmma"}
// CHECK-NOT: "wgmma"
tile.kernel @sparse(%m: memref<64x4xi16>, %h: memref<64x32xi8>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %as = tile.alloc {tile.layouts = [#tile.layout<swizzle = 64>]} : memref<2x64x32xf16, #tile.level<"shared">>
  %bs = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
  %ts = tile.alloc {tile.layouts = [#tile.layout<perm = [0, 2, 1], inner = [2], tiles = [16], swizzle = 32>]}
      : memref<2x64x64xf16, #tile.level<"shared">>
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %w = tile.load %m[%c0, %c0] : memref<64x4xi16>, !tile.tile<64x4xi16>
  %a = tile.load %as[%c0, %c0, %c0] : memref<2x64x32xf16, #tile.level<"shared">>, !tile.tile<64x32xf16>
  %b = tile.load %bs[%c0, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %t = tile.load %ts[%c0, %c0, %c0] dims [2, 1]
      : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
  %c = tile.mma %a, %b, %zero meta %w sparsity [2, 4]
      : !tile.tile<64x32xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>, !tile.tile<64x4xi16>
  // expected-remark@+1 {{not multiplied by wgmma, since it is sparse with a right operand in rows of 32 bytes}}
  %d = tile.mma %a, %t, %c meta %w sparsity [2, 4]
      : !tile.tile<64x32xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>, !tile.tile<64x4xi16>
  %half = tile.load %h[%c0, %c0] : memref<64x32xi8>, !tile.tile<64x32xi8>
  // expected-remark@+1 {{not multiplied by wgmma, since it is sparse, but not 2:4}}
  %e = tile.mma %a, %b, %d meta %half sparsity [1, 2]
      : !tile.tile<64x32xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>, !tile.tile<64x32xi8>
  tile.return
}
