// RUN: tile-opt %s --tile-inline-widenings --split-input-file | FileCheck-22 %s

// A scale and a bias of a run are widened where they are read, once for each reader.

#i = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: @norm
// CHECK-SAME: %[[X:.*]]: tensor<64x32xf32>, %[[S:.*]]: tensor<32xf16>)
// CHECK-NOT: outs(%{{.*}} : tensor<32xf32>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[S]] : tensor<64x32xf32>, tensor<32xf16>)
// CHECK: %[[U:.*]] = arith.extf
// CHECK: arith.mulf %{{.*}}, %[[U]]
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[S]] : tensor<64x32xf32>, tensor<32xf16>)
// CHECK: arith.extf
// CHECK: arith.addf
func.func @norm(%x: tensor<64x32xf32>, %s: tensor<32xf16>) -> tensor<64x32xf32> {
  %d = tensor.empty() : tensor<32xf32>
  %g = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]}
      ins(%s : tensor<32xf16>) outs(%d : tensor<32xf32>) {
  ^bb0(%p: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    linalg.yield %u : f32
  } -> tensor<32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %g : tensor<64x32xf32>, tensor<32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %z = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %g : tensor<64x32xf32>, tensor<32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.addf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  return %z : tensor<64x32xf32>
}

// -----

// What is a result of the model, too, is made once.

#i = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: @returned
// CHECK: %[[G:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<32xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[G]] : tensor<64x32xf32>, tensor<32xf32>)
func.func @returned(%x: tensor<64x32xf32>, %s: tensor<32xf16>) -> (tensor<64x32xf32>, tensor<32xf32>) {
  %d = tensor.empty() : tensor<32xf32>
  %g = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]}
      ins(%s : tensor<32xf16>) outs(%d : tensor<32xf32>) {
  ^bb0(%p: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    linalg.yield %u : f32
  } -> tensor<32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %g : tensor<64x32xf32>, tensor<32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  return %y, %g : tensor<64x32xf32>, tensor<32xf32>
}
