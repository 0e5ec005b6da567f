// RUN: tile-opt %s --tile-set-target=target=mesh:toy8x8 --tile-plan-streams 2>&1 | FileCheck-22 %s

#same = affine_map<(i, j) -> (i, j)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// What is elementwise is cut along its rows; what reads it is cut as finely, so that both are done block by block.
// CHECK: remark: streams through the grid in 16 blocks of 128 along d0: as a whole it takes 131,072 bytes
// CHECK: remark: streams through the grid in 16 blocks of 128 along d0: as a whole it takes 196,608 bytes
// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic {{.*}} attrs = {coremesh.blocks = array<i64: 16, 1>}
// CHECK: linalg.generic {{.*}} attrs = {coremesh.blocks = array<i64: 16, 1>}
func.func @rows(%x: tensor<2048x512xf32>, %y: tensor<2048x512xf32>) -> tensor<2048x512xf32> {
  %e = tensor.empty() : tensor<2048x512xf32>
  %0 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2048x512xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%u: f32, %o: f32):
    %m = arith.negf %u : f32
    linalg.yield %m : f32
  } -> tensor<2048x512xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%0, %y : tensor<2048x512xf32>, tensor<2048x512xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.addf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<2048x512xf32>
  return %1 : tensor<2048x512xf32>
}

// Where both operands of a product stream, rows and columns grow smaller in turns; what fits is left as it is.
// CHECK-LABEL: func.func @products
// CHECK: linalg.generic {{.*}} attrs = {coremesh.blocks = array<i64: 2, 2, 1>}
// CHECK-NOT: coremesh.blocks
// CHECK: return
func.func @products(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>, %z: tensor<64x64xf32>)
    -> (tensor<512x512xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %0 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<512x512xf32>, tensor<512x512xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  %g = tensor.empty() : tensor<64x64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%z : tensor<64x64xf32>) outs(%g : tensor<64x64xf32>) {
  ^bb0(%u: f32, %o: f32):
    %m = arith.negf %u : f32
    linalg.yield %m : f32
  } -> tensor<64x64xf32>
  return %0, %1 : tensor<512x512xf32>, tensor<64x64xf32>
}
