// RUN: tile-opt %s '--tile-set-target=target=cpu:x86-64-v3' --tile-lower-sparse | FileCheck %s

// A column of blocks has a list of those that it keeps, between two starts; a block's columns are panels of 16, two
// vectors of AVX2, in 12 of its 16 registers with 6 rows. Two of the weight's four blocks are kept.

// CHECK: tile.kernel @sparse_right_64x64(%{{.*}}: memref<48x64xf32>, %{{.*}}: memref<2x64x16xf32>,
// CHECK-SAME: memref<2xi32>, %[[STARTS:.*]]: memref<3xi32>
// CHECK: memref.load %[[STARTS]]
// CHECK: scf.for {{.*}} -> (!tile.tile<6x16xf32>)
// CHECK: tile.mma {{.*}} : !tile.tile<6x1xf32>, !tile.tile<1x16xf32>, !tile.tile<6x16xf32>

// CHECK-LABEL: @main
// CHECK: sparse_tile.pack %{{.*}} : tensor<64x64xf32> to tensor<64x64xf32, #{{.*}}>
// CHECK: sparse_tile.parts %{{.*}} to tensor<2x32x32xf32>, tensor<2xi32>, tensor<3xi32>
// CHECK: tile.launch @sparse_right_64x64

#w = #sparse_tile.tesa<block<[32, 32]>>
func.func @main(%x: tensor<48x64xf32>, %c: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %d = arith.constant dense<1.0> : tensor<2x32x32xf32>
  %i = arith.constant dense<[0, 1]> : tensor<2xi32>
  %s = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %p = sparse_tile.assemble %d, %i, %s : tensor<2x32x32xf32>, tensor<2xi32>, tensor<3xi32>
      to tensor<64x64xf32, #w>
  %y = sparse_tile.matmul %x, %p, %c {kernel = "blocks"}
      : tensor<48x64xf32>, tensor<64x64xf32, #w>, tensor<48x64xf32>
  return %y : tensor<48x64xf32>
}
