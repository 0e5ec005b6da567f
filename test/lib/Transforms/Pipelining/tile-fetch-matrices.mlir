// RUN: tile-opt %s --tile-fetch-matrices --split-input-file --verify-diagnostics | FileCheck-22 %s

// A residual, ragged along the rows: its copy stands behind the loop, fills what is not there, and is waited for where
// the load was. A row of numbers is loaded by each thread.

// CHECK-LABEL: tile.kernel @residual
// CHECK-SAME: %[[B:[a-z0-9]+]]: memref<1x64xf16>, %[[R:[a-z0-9]+]]: memref<100x64xf16>
// CHECK: %[[BUFFER:.*]] = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
// CHECK-SAME: {{^}} : memref<1x64x64xf16, #tile.level<"shared">>
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: tile.load %[[B]]
// CHECK: %[[FROM:.*]] = memref.subview %[[R]][%{{.*}}, 0] [%{{.*}}, 64] [1, 1]
// CHECK: %[[TO:.*]] = memref.subview %[[BUFFER]][0, 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK: %[[TOKEN:.*]] = tile.async {
// CHECK: tile.copy %[[FROM]] to %[[TO]] fill
// CHECK: tile.await %[[TOKEN]]
// CHECK: %[[T:.*]] = tile.load %[[BUFFER]]
// CHECK: tile.convert %[[T]]
tile.kernel @residual(%x: memref<100x256xf16>, %w: memref<256x64xf16>, %bias: memref<1x64xf16>, %r: memref<100x64xf16>,
    %y: memref<100x64xf32>) grid(%i) attributes {tile.fetched, tile.specialized} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %c256 = arith.constant 256 : index
  %row = arith.muli %i, %c64 : index
  %rows = arith.subi %c100, %row : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%row, %k] valid(%rows, %c64) : memref<100x256xf16>, !tile.tile<64x64xf16>
    %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  }
  %p = tile.load %bias[%c0, %c0] : memref<1x64xf16>, !tile.tile<1x64xf16>
  %q = tile.convert %p : !tile.tile<1x64xf16> -> !tile.tile<1x64xf32>
  %o = tile.broadcast %q : !tile.tile<1x64xf32> -> !tile.tile<64x64xf32>
  %m = arith.addf %sum, %o : !tile.tile<64x64xf32>
  %t = tile.load %r[%row, %c0] valid(%rows, %c64) : memref<100x64xf16>, !tile.tile<64x64xf16>
  %f = tile.convert %t : !tile.tile<64x64xf16> -> !tile.tile<64x64xf32>
  %v = arith.addf %m, %f : !tile.tile<64x64xf32>
  tile.store %v, %y[%row, %c0] valid(%rows, %c64) : !tile.tile<64x64xf32>, memref<100x64xf32>
  tile.return
}

// -----

// What TMA cannot load, and what the kernel writes itself, stays, with a remark; so does all of a kernel that does not
// ask for it.

// CHECK-LABEL: tile.kernel @stays
// CHECK-NOT: tile.async
tile.kernel @stays(%x: memref<64x256xf16>, %w: memref<256x64xf16>, %r: memref<64x63xf16>, %y: memref<64x64xf32>)
    attributes {tile.fetched, tile.specialized} {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%c0, %k] : memref<64x256xf16>, !tile.tile<64x64xf16>
    %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  }
  // expected-remark@+1 {{beside the product, since it reads rows that are not known to start at multiples of 16 bytes}}
  %t = tile.load %r[%c0, %c0] valid(%c64, %c63) : memref<64x63xf16>, !tile.tile<64x64xf16>
  %f = tile.convert %t : !tile.tile<64x64xf16> -> !tile.tile<64x64xf32>
  %v = arith.addf %sum, %f : !tile.tile<64x64xf32>
  // expected-remark@+1 {{is not fetched beside the product, since it reads what the kernel writes}}
  %o = tile.load %y[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
  %u = arith.addf %v, %o : !tile.tile<64x64xf32>
  tile.store %u, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// CHECK-LABEL: tile.kernel @plain
// CHECK-NOT: tile.async
tile.kernel @plain(%x: memref<64x256xf16>, %w: memref<256x64xf16>, %r: memref<64x64xf32>, %y: memref<64x64xf32>)
    attributes {tile.specialized} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%c0, %k] : memref<64x256xf16>, !tile.tile<64x64xf16>
    %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  }
  %t = tile.load %r[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
  %v = arith.addf %sum, %t : !tile.tile<64x64xf32>
  tile.store %v, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}
