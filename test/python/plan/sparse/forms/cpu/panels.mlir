// RUN: tile-opt %s '--tile-set-target=target=cpu:icelake-server' --tile-lower-sparse | FileCheck %s

// Rows of weights, pixels side by side: these are the lanes, 4 rows at once, and nothing is transposed.
// CHECK: tile.kernel @sparse_left_64x32(
// CHECK-NOT: tile.transpose
// CHECK: tile.mma {{.*}} : !tile.tile<{{[0-9]+}}x1xf32>, !tile.tile<1x{{[0-9]+}}xf32>

// Two slices of four are kept for 32 columns at once: values of a panel side by side, the slices that they meet as
// absolute numbers. 24 of the 32 vector registers are sums: 12 rows of two vectors.

// CHECK: tile.kernel @sparse_right_64x96(%{{.*}}: memref<?x64xf32>, %{{.*}}: memref<3x32x32xf32>,
// CHECK-SAME: memref<3x32xi32>
// CHECK: tile.alloc : memref<{{.*}}x64x12x1xf32>
// CHECK: scf.for {{.*}} -> (!tile.tile<12x32xf32>)
// CHECK: memref.load {{.*}} : memref<3x32xi32>
// CHECK: tile.mma {{.*}} : !tile.tile<12x1xf32>, !tile.tile<1x32xf32>, !tile.tile<12x32xf32>

// CHECK-LABEL: @main
// CHECK: %[[P:.*]]:2 = sparse_tile.parts %{{.*}} to tensor<32x96xf32>, tensor<32x3xi8>
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<32x3x32xf32>) outs(%{{.*}} : tensor<3x32x32xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]]#1 : tensor<32x3xi8>) outs(%{{.*}} : tensor<3x32xi32>)
// CHECK: tile.launch @sparse_right_64x96
// CHECK: tile.launch @sparse_left_64x32

#right = #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [1, 32]>>
#left = #sparse_tile.tesa<nm<1 : 4, axis = 1, unit = [16, 1]>>
ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
ml_program.global private @u(#ml_program.extern<tensor<32x64xf32>>) : tensor<32x64xf32>
func.func @main(%x: tensor<?x64xf32>, %c: tensor<?x96xf32>, %z: tensor<64x3136xf32>, %d: tensor<32x3136xf32>)
    -> (tensor<?x96xf32>, tensor<32x3136xf32>) {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %u = ml_program.global_load_const @u : tensor<32x64xf32>
  %p = sparse_tile.pack %w : tensor<64x96xf32> to tensor<64x96xf32, #right>
  %y = sparse_tile.matmul %x, %p, %c {kernel = "panels"}
      : tensor<?x64xf32>, tensor<64x96xf32, #right>, tensor<?x96xf32>
  %q = sparse_tile.pack %u : tensor<32x64xf32> to tensor<32x64xf32, #left>
  %v = sparse_tile.matmul %q, %z, %d {kernel = "panels"}
      : tensor<32x64xf32, #left>, tensor<64x3136xf32>, tensor<32x3136xf32>
  return %y, %v : tensor<?x96xf32>, tensor<32x3136xf32>
}
