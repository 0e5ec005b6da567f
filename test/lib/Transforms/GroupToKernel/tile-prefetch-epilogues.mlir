// RUN: tile-opt %s --tile-prefetch-epilogues | FileCheck %s

// What is added to a product is fetched before the loop, a line in each row; index arithmetic goes there, too.
// CHECK-LABEL: tile.kernel @residual
// CHECK-SAME: (%{{.*}}: memref<8x256xf32>, %{{.*}}: memref<256x32xf32>, %[[X:.*]]: memref<8x512xf32>,
// CHECK: %[[AT:.*]] = affine.apply
// CHECK: memref.prefetch %[[X]][%[[C0:.*]], %[[AT]]], read, locality<3>, data
// CHECK-NEXT: %[[NEXT:.*]] = affine.apply
// CHECK-NEXT: memref.prefetch %[[X]][%[[C0]], %[[NEXT]]]
// CHECK-COUNT-14: memref.prefetch %[[X]]
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
tile.kernel @residual(%a: memref<8x256xf32>, %b: memref<256x32xf32>, %x: memref<8x512xf32>, %bias: memref<512xf32>,
    %y: memref<8x512xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<8x32xf32>
  %s = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %zero) -> (!tile.tile<8x32xf32>) {
    %p = tile.load %a[%c0, %k] : memref<8x256xf32>, !tile.tile<8x1xf32>
    %q = tile.load %b[%k, %c0] : memref<256x32xf32>, !tile.tile<1x32xf32>
    %n = tile.mma %p, %q, %acc : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
    scf.yield %n : !tile.tile<8x32xf32>
  }
  %at = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%i]
  %t = tile.load %x[%c0, %at] : memref<8x512xf32>, !tile.tile<8x32xf32>
  // One row: its lines follow each other.
  %u = tile.load %bias[%at] : memref<512xf32>, !tile.tile<32xf32>
  %v = tile.broadcast %u : !tile.tile<32xf32> -> !tile.tile<8x32xf32>
  %r = arith.addf %s, %t : !tile.tile<8x32xf32>
  %w = arith.addf %r, %v : !tile.tile<8x32xf32>
  tile.store %w, %y[%c0, %at] : !tile.tile<8x32xf32>, memref<8x512xf32>
  tile.return
}

// A short loop hides no wait.
// CHECK-LABEL: tile.kernel @short
// CHECK-NOT: memref.prefetch
tile.kernel @short(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %x: memref<8x32xf32>, %y: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !tile.tile<8x32xf32>
  %s = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> (!tile.tile<8x32xf32>) {
    %p = tile.load %a[%c0, %k] : memref<8x16xf32>, !tile.tile<8x1xf32>
    %q = tile.load %b[%k, %c0] : memref<16x32xf32>, !tile.tile<1x32xf32>
    %n = tile.mma %p, %q, %acc : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
    scf.yield %n : !tile.tile<8x32xf32>
  }
  %t = tile.load %x[%c0, %c0] : memref<8x32xf32>, !tile.tile<8x32xf32>
  %r = arith.addf %s, %t : !tile.tile<8x32xf32>
  tile.store %r, %y[%c0, %c0] : !tile.tile<8x32xf32>, memref<8x32xf32>
  tile.return
}
