// RUN: tile-opt %s --tile-share-operands --split-input-file --verify-diagnostics | FileCheck-22 %s

// Queries are read in each step of the loop: they get a buffer, whose load stands beside the product. Their rows end
// before the tile does, so that the copy fills the rest with zeros.

// CHECK-LABEL: tile.kernel @queries
// CHECK-SAME: (%[[Q:.*]]: memref<100x128xf16>,
// CHECK: %[[BUFFER:.*]] = tile.alloc {alignment = 1024 : i64,
// CHECK-SAME: {{^}} tile.layouts = [#tile.layout<perm = [0, 2, 1], inner = [2], tiles = [64], swizzle = 128>]}
// CHECK-SAME: {{^}} : memref<1x64x128xf16, #tile.level<"shared">>
// CHECK: %[[LOW:.*]] = arith.minsi
// CHECK: %[[ROWS:.*]] = arith.maxsi %[[LOW]]
// CHECK: %[[FROM:.*]] = memref.subview %[[Q]][%{{.*}}, 0] [%[[ROWS]], 128] [1, 1]
// CHECK: %[[TO:.*]] = memref.subview %[[BUFFER]][0, 0, 0] [1, 64, 128] [1, 1, 1]
// CHECK: %[[TOKEN:.*]] = tile.async {
// CHECK: tile.copy %[[FROM]] to %[[TO]] fill
// CHECK: tile.await %[[TOKEN]]
// CHECK: scf.for
// CHECK: %[[A:.*]] = tile.load %[[BUFFER]]
// CHECK-SAME: !tile.tile<64x128xf16>
// CHECK: tile.mma %[[A]],
tile.kernel @queries(%q: memref<100x128xf16>, %k: memref<256x128xf16>, %y: memref<100x64xf32>) grid(%i)
    attributes {tile.specialized} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %row = arith.muli %i, %c64 : index
  %rows = arith.subi %c100, %row : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %a = tile.load %q[%row, %c0] valid(%rows, %c128) : memref<100x128xf16>, !tile.tile<64x128xf16>
  %sum = scf.for %j = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %b = tile.load %k[%j, %c0] dims [1, 0] : memref<256x128xf16>, !tile.tile<128x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x128xf16>, !tile.tile<128x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  }
  tile.store %sum, %y[%row, %c0] valid(%rows, %c64) : !tile.tile<64x64xf32>, memref<100x64xf32>
  tile.return
}

// -----

// A right operand with its rows along k is read across by the product.

// CHECK-LABEL: tile.kernel @keys
// CHECK: tile.load %{{.*}} dims [2, 1] : memref<1x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
// CHECK: tile.mma
tile.kernel @keys(%q: memref<64x64xf16>, %k: memref<64x64xf16>, %y: memref<64x64xf32>) attributes {tile.specialized} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %b = tile.load %k[%c0, %c0] dims [1, 0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %n = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
  tile.store %n, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// -----

// What something else reads, too, stays; what cannot be copied in the background stays with a remark; so does all of a
// kernel that has no warps to move data.

// CHECK-LABEL: tile.kernel @others
// CHECK-NOT: tile.async
tile.kernel @others(%q: memref<64x60xf16>, %k: memref<64x64xf16>, %y: memref<64x64xf16>, %z: memref<64x64xf32>)
    attributes {tile.specialized} {
  %c0 = arith.constant 0 : index
  %c60 = arith.constant 60 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  // expected-remark@+1 {{from shared memory, since it reads rows that are not known to start at multiples of 16 bytes}}
  %a = tile.load %q[%c0, %c0] valid(%c64, %c60) : memref<64x60xf16>, !tile.tile<64x64xf16>
  %b = tile.load %k[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %n = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
  tile.store %b, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
  tile.store %n, %z[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// CHECK-LABEL: tile.kernel @plain
// CHECK-NOT: tile.async
tile.kernel @plain(%q: memref<64x64xf16>, %y: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %n = tile.mma %a, %a, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
  tile.store %n, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}
