// RUN: tile-opt %s --tile-share-kernels --split-input-file --verify-diagnostics | FileCheck-22 %s

// Arguments of one length stay as they are; what is predicted is no longer true of all.
// CHECK-LABEL: tile.kernel @long
// CHECK-SAME: (%arg0: memref<?x8xf32, strided<[16, 1], offset: ?>>, %arg1: memref<8x8xf32>, %arg2: memref<?x8xf32>)
// CHECK-SAME: grid(%{{.*}}) attributes {tile.warps = 4 : i64} {
// CHECK: tile.load %arg0[{{.*}}] : memref<?x8xf32, strided<[16, 1], offset: ?>>, !tile.tile<1x8xf32>
// CHECK: tile.load %arg1[{{.*}}] : memref<8x8xf32>, !tile.tile<8x8xf32>
// CHECK-NOT: tile.kernel @short
tile.kernel @long(%x: memref<4x8xf32, strided<[16, 1], offset: ?>>, %w: memref<8x8xf32>, %y: memref<4x8xf32>) grid(%i)
    attributes {tile.prediction = {ns = 100 : i64}, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<4x8xf32, strided<[16, 1], offset: ?>>, !tile.tile<1x8xf32>
  %v = tile.load %w[%c0, %c0] : memref<8x8xf32>, !tile.tile<8x8xf32>
  tile.store %t, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<4x8xf32>
  tile.return
}
tile.kernel @short(%x: memref<2x8xf32, strided<[16, 1], offset: ?>>, %w: memref<8x8xf32>, %y: memref<2x8xf32>) grid(%i)
    attributes {tile.prediction = {ns = 50 : i64}, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<2x8xf32, strided<[16, 1], offset: ?>>, !tile.tile<1x8xf32>
  %v = tile.load %w[%c0, %c0] : memref<8x8xf32>, !tile.tile<8x8xf32>
  tile.store %t, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<2x8xf32>
  tile.return
}
// CHECK-LABEL: tile.kernel @loop
// CHECK: tile.launch @long grid(%c4) ins({{.*}} : memref<4x8xf32, strided<[16, 1], offset: ?>>,
// CHECK: tile.launch @long grid(%c2) ins({{.*}} : memref<2x8xf32, strided<[16, 1], offset: ?>>,
tile.kernel @loop(%p: memref<4x8xf32, strided<[16, 1], offset: ?>>, %w: memref<8x8xf32>, %q: memref<4x8xf32>,
    %s: memref<2x8xf32, strided<[16, 1], offset: ?>>, %t: memref<2x8xf32>) attributes {tile.blocks = 4 : i64} {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  tile.launch @long grid(%c4) ins(%p, %w : memref<4x8xf32, strided<[16, 1], offset: ?>>, memref<8x8xf32>)
      outs(%q : memref<4x8xf32>)
  tile.launch @short grid(%c2) ins(%s, %w : memref<2x8xf32, strided<[16, 1], offset: ?>>, memref<8x8xf32>)
      outs(%t : memref<2x8xf32>)
  tile.return
}

// -----

// Inner lengths are in strides; views of a buffer have a type of their own; what the host launches has its own name.
// CHECK: tile.kernel @inner(%arg0: memref<4x8x8xf32>)
// CHECK: tile.kernel @other(%arg0: memref<4x4x8xf32>)
// CHECK: tile.kernel @viewed(%arg0: memref<4x8xf32>)
// CHECK: tile.kernel @seen(%arg0: memref<2x8xf32>)
// CHECK: tile.kernel @host(%arg0: memref<3x8xf32>)
// CHECK: tile.kernel @loop(
tile.kernel @inner(%x: memref<4x8x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0, %c0] : memref<4x8x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %x[%i, %c0, %c0] : !tile.tile<1x8xf32>, memref<4x8x8xf32>
  tile.return
}
tile.kernel @other(%x: memref<4x4x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0, %c0] : memref<4x4x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %x[%i, %c0, %c0] : !tile.tile<1x8xf32>, memref<4x4x8xf32>
  tile.return
}
tile.kernel @viewed(%x: memref<4x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %v = memref.cast %x : memref<4x8xf32> to memref<?x8xf32>
  %t = tile.load %v[%i, %c0] : memref<?x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %x[%i, %c0] : !tile.tile<1x8xf32>, memref<4x8xf32>
  tile.return
}
tile.kernel @seen(%x: memref<2x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %v = memref.cast %x : memref<2x8xf32> to memref<?x8xf32>
  %t = tile.load %v[%i, %c0] : memref<?x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %x[%i, %c0] : !tile.tile<1x8xf32>, memref<2x8xf32>
  tile.return
}
tile.kernel @host(%x: memref<3x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<3x8xf32>, !tile.tile<1x8xf32>
  tile.store %t, %x[%i, %c0] : !tile.tile<1x8xf32>, memref<3x8xf32>
  tile.return
}
tile.kernel @loop(%a: memref<4x8x8xf32>, %b: memref<4x4x8xf32>, %c: memref<4x8xf32>, %d: memref<2x8xf32>)
    attributes {tile.blocks = 4 : i64} {
  %c4 = arith.constant 4 : index
  %c2 = arith.constant 2 : index
  tile.launch @inner grid(%c4) outs(%a : memref<4x8x8xf32>)
  tile.launch @other grid(%c4) outs(%b : memref<4x4x8xf32>)
  tile.launch @viewed grid(%c4) outs(%c : memref<4x8xf32>)
  tile.launch @seen grid(%c2) outs(%d : memref<2x8xf32>)
  tile.return
}
func.func @main(%e: memref<3x8xf32>) {
  %c3 = arith.constant 3 : index
  tile.launch @host grid(%c3) outs(%e : memref<3x8xf32>)
  return
}

// -----

// A ring brings what TMA's descriptors name, with lengths.
// CHECK: tile.kernel @ring
// CHECK: tile.kernel @rings
tile.kernel @ring(%x: memref<4x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %k = %c0 to %c4 step %c1 {
    %t = tile.load %x[%i, %c0] : memref<4x8xf32>, !tile.tile<1x8xf32>
    tile.store %t, %x[%i, %c0] : !tile.tile<1x8xf32>, memref<4x8xf32>
  } {tile.stages = 2 : i64}
  tile.return
}
tile.kernel @rings(%x: memref<2x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %k = %c0 to %c4 step %c1 {
    %t = tile.load %x[%i, %c0] : memref<2x8xf32>, !tile.tile<1x8xf32>
    tile.store %t, %x[%i, %c0] : !tile.tile<1x8xf32>, memref<2x8xf32>
  } {tile.stages = 2 : i64}
  tile.return
}
tile.kernel @loop(%a: memref<4x8xf32>, %b: memref<2x8xf32>) attributes {tile.blocks = 4 : i64} {
  %c4 = arith.constant 4 : index
  %c2 = arith.constant 2 : index
  tile.launch @ring grid(%c4) outs(%a : memref<4x8xf32>)
  tile.launch @rings grid(%c2) outs(%b : memref<2x8xf32>)
  tile.return
}
