// RUN: tile-opt %s --tile-compute-ramps --split-input-file | FileCheck-22 %s

// A table that grows evenly is computed, and no argument any more; what its loads bound or gather stays.

// CHECK-LABEL: tile.kernel @even
// CHECK-SAME: (%{{[a-z0-9]+}}: memref<8xi32>) grid
// CHECK-NOT: tile.load
// CHECK: tile.iota dim 0 : !tile.tile<4xi32>
// CHECK: arith.constant 2 : i32
// CHECK: arith.constant 3 : i32
// CHECK: tile.launch @even grid(%{{.*}}) outs(
tile.kernel @even(%p: memref<8xi32>, %y: memref<8xi32>) grid(%i) {
  %c4 = arith.constant 4 : index
  %at = arith.muli %i, %c4 : index
  %t = tile.load %p[%at] : memref<8xi32>, !tile.tile<4xi32>
  tile.store %t, %y[%at] : !tile.tile<4xi32>, memref<8xi32>
  tile.return
}
func.func @main(%e: tensor<8xi32>) -> tensor<8xi32> {
  %c2 = arith.constant 2 : index
  %p = arith.constant dense<[3, 5, 7, 9, 11, 13, 15, 17]> : tensor<8xi32>
  %y = tile.launch @even grid(%c2) ins(%p : tensor<8xi32>) outs(%e : tensor<8xi32>) -> (tensor<8xi32>)
  return %y : tensor<8xi32>
}

// -----

// CHECK-LABEL: tile.kernel @uneven
// CHECK: tile.load
tile.kernel @uneven(%p: memref<4xi32>, %y: memref<4xi32>) grid(%i) {
  %t = tile.load %p[%i] : memref<4xi32>, !tile.tile<4xi32>
  tile.store %t, %y[%i] : !tile.tile<4xi32>, memref<4xi32>
  tile.return
}
func.func @main(%e: tensor<4xi32>) -> tensor<4xi32> {
  %c1 = arith.constant 1 : index
  %p = arith.constant dense<[0, 1, 2, 4]> : tensor<4xi32>
  %y = tile.launch @uneven grid(%c1) ins(%p : tensor<4xi32>) outs(%e : tensor<4xi32>) -> (tensor<4xi32>)
  return %y : tensor<4xi32>
}

// -----

// CHECK-LABEL: tile.kernel @bounded
// CHECK: tile.load
tile.kernel @bounded(%p: memref<4xi32>, %y: memref<4xi32>) grid(%i) {
  %c3 = arith.constant 3 : index
  %t = tile.load %p[%i] valid (%c3) : memref<4xi32>, !tile.tile<4xi32>
  tile.store %t, %y[%i] : !tile.tile<4xi32>, memref<4xi32>
  tile.return
}
func.func @main(%e: tensor<4xi32>) -> tensor<4xi32> {
  %c1 = arith.constant 1 : index
  %p = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %y = tile.launch @bounded grid(%c1) ins(%p : tensor<4xi32>) outs(%e : tensor<4xi32>) -> (tensor<4xi32>)
  return %y : tensor<4xi32>
}
