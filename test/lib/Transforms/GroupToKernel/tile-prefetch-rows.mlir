// RUN: tile-opt %s --tile-prefetch-rows="near-bytes=65536" | FileCheck-22 %s

// The first nest fetches what the second one writes; the second one what the next task reads first. What a task makes
// itself, and the small %w, are near.

// CHECK-DAG: #[[$LINE:.*]] = affine_map<(d0) -> (d0 + 16)>
// CHECK-DAG: #[[$NEXT:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK-LABEL: tile.kernel @rows
tile.kernel @rows(%x: memref<64x1024xf32>, %w: memref<1024xf32>, %y: memref<64x1024xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c1024 = arith.constant 1024 : index
  %t = tile.alloc : memref<1x1024xf32, #tile.level<"l2">>
  // CHECK: scf.for %[[R:.*]] = %
  // CHECK-NEXT: scf.for %[[J:.*]] = %
  // CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}], write, locality<3>, data : memref<64x1024xf32>
  // CHECK: affine.apply #[[$LINE]](%[[J]])
  // CHECK: memref.prefetch %{{.*}}, write, locality<3>, data : memref<64x1024xf32>
  // CHECK-NOT: memref.prefetch
  // CHECK: tile.store
  scf.for %r = %c0 to %c1 step %c1 {
    scf.for %j = %c0 to %c1024 step %c32 {
      %at = affine.apply affine_map<(i)[r] -> (i + r)>(%i)[%r]
      %a = tile.load %x[%at, %j] : memref<64x1024xf32>, !tile.tile<1x32xf32>
      %v = tile.load %w[%j] : memref<1024xf32>, !tile.tile<32xf32>
      %v1 = tile.reshape %v : !tile.tile<32xf32> -> !tile.tile<1x32xf32>
      %b = arith.mulf %a, %v1 : !tile.tile<1x32xf32>
      tile.store %b, %t[%r, %j] : !tile.tile<1x32xf32>, memref<1x1024xf32, #tile.level<"l2">>
    }
  }
  // CHECK: scf.for %[[R2:.*]] = %
  // CHECK-NEXT: scf.for %[[J2:.*]] = %
  // CHECK-NEXT: %[[TASK:.*]] = affine.apply #[[$NEXT]](%{{.*}})
  // CHECK-NEXT: %[[ROW:.*]] = affine.apply #{{.*}}(%[[TASK]])[%[[R2]]]
  // CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}], read, locality<3>, data : memref<64x1024xf32>
  // CHECK-NOT: memref.prefetch
  // CHECK: tile.store
  scf.for %r = %c0 to %c1 step %c1 {
    scf.for %j = %c0 to %c1024 step %c16 {
      %at = affine.apply affine_map<(i)[r] -> (i + r)>(%i)[%r]
      %a = tile.load %t[%r, %j] : memref<1x1024xf32, #tile.level<"l2">>, !tile.tile<1x16xf32>
      tile.store %a, %y[%at, %j] : !tile.tile<1x16xf32>, memref<64x1024xf32>
    }
  }
  tile.return
}

// Stores past the caches need no lines; a nest that walks otherwise (here, by columns) fetches nothing.

// CHECK-LABEL: tile.kernel @apart
// CHECK-NOT: memref.prefetch
tile.kernel @apart(%x: memref<1024x64xf32>, %y: memref<64x1024xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %t = tile.alloc : memref<64xf32, #tile.level<"l2">>
  scf.for %r = %c0 to %c1024 step %c1 {
    scf.for %j = %c0 to %c64 step %c16 {
      %a = tile.load %x[%r, %j] : memref<1024x64xf32>, !tile.tile<16xf32>
      tile.store %a, %t[%j] : !tile.tile<16xf32>, memref<64xf32, #tile.level<"l2">>
    }
  }
  scf.for %r = %c0 to %c1 step %c1 {
    scf.for %j = %c0 to %c1024 step %c16 {
      %b = tile.load %t[%c0] : memref<64xf32, #tile.level<"l2">>, !tile.tile<16xf32>
      %a = tile.reshape %b : !tile.tile<16xf32> -> !tile.tile<1x16xf32>
      tile.store %a, %y[%i, %j] {tile.streamed} : !tile.tile<1x16xf32>, memref<64x1024xf32>
    }
  }
  tile.return
}

// A nest that computes much more than the last one fetches the next rows: functions take longer than lines. This task's
// rows are in use until the end, so that the L1 cache has room for fewer of the next ones.

// CHECK-LABEL: tile.kernel @busy
tile.kernel @busy(%x: memref<64x4096xf32>, %y: memref<64x4096xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c4096 = arith.constant 4096 : index
  %t = tile.alloc : memref<1x4096xf32, #tile.level<"l2">>
  // CHECK: scf.for
  // CHECK-NEXT: affine.apply #[[$NEXT]]
  // CHECK-NEXT: memref.prefetch %{{.*}}, read, locality<2>, data : memref<64x4096xf32>
  // CHECK: scf.for
  // CHECK-NOT: memref.prefetch
  scf.for %j = %c0 to %c4096 step %c16 {
    %a = tile.load %x[%i, %j] : memref<64x4096xf32>, !tile.tile<1x16xf32>
    %b = math.exp %a : !tile.tile<1x16xf32>
    tile.store %b, %t[%c0, %j] : !tile.tile<1x16xf32>, memref<1x4096xf32, #tile.level<"l2">>
  }
  scf.for %j = %c0 to %c4096 step %c16 {
    %a = tile.load %t[%c0, %j] : memref<1x4096xf32, #tile.level<"l2">>, !tile.tile<1x16xf32>
    %b = arith.addf %a, %a : !tile.tile<1x16xf32>
    tile.store %b, %y[%i, %j] {tile.streamed} : !tile.tile<1x16xf32>, memref<64x4096xf32>
  }
  tile.return
}
