// RUN: not tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-lower-sparse --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: not tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-lower-sparse --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: not tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-lower-sparse --split-input-file 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=TOLD

#w = #sparse_tile.tesa<nm<2 : 4, axis = 1>>

// What is packed and unpacked again is as it was.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W:.*]]: tensor<32x64xf32>, %[[X:.*]]: tensor<64x16xf32>
// CHECK-NOT: sparse_tile
// CHECK: linalg.generic {{.*}} ins(%[[W]], %[[X]] : tensor<32x64xf32>, tensor<64x16xf32>)
func.func @main(%w: tensor<32x64xf32>, %x: tensor<64x16xf32>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %p = sparse_tile.pack %w : tensor<32x64xf32> to tensor<32x64xf32, #w>
  %y = sparse_tile.matmul %p, %x, %c {kernel = "dense"}
      : tensor<32x64xf32, #w>, tensor<64x16xf32>, tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// TOLD: error: kernel = "lines" is no family of kernels; there are
#u = #sparse_tile.tesa<mask>
func.func @unknown(%w: tensor<32x64xf32>, %x: tensor<64x16xf32>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %p = sparse_tile.pack %w : tensor<32x64xf32> to tensor<32x64xf32, #u>
  %y = sparse_tile.matmul %p, %x, %c {kernel = "lines"}
      : tensor<32x64xf32, #u>, tensor<64x16xf32>, tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// TOLD: error: both operands are encoded: unpack one of them
#v = #sparse_tile.tesa<mask>
func.func @both(%w: tensor<32x64xf32, #v>, %x: tensor<64x16xf32, #v>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %y = sparse_tile.matmul %w, %x, %c : tensor<32x64xf32, #v>, tensor<64x16xf32, #v>, tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}
