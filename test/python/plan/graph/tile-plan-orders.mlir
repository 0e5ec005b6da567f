// RUN: tile-opt %s --tile-plan-orders | FileCheck-22 %s

// Keys lie last in both operands' results as they are: stored by keys first, only the queries are transposed, once.

// CHECK-LABEL: @main
// CHECK: linalg.generic {{.*}}["parallel", "parallel", "reduction"]{{.*}}attrs = {tile.order = array<i64: 1, 0>}
// CHECK: arith.mulf
// CHECK: linalg.generic
// CHECK-NOT: tile.order
// CHECK: arith.maximumf
#q = affine_map<(i, j, k) -> (i, k)>
#k = affine_map<(i, j, k) -> (j, k)>
#s = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%q: tensor<512x64xf32>, %k: tensor<512x64xf32>) -> tensor<512xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x64xf32>, tensor<512x64xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = tensor.empty() : tensor<512xf32>
  %h = linalg.fill ins(%low : f32) outs(%g : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<512x512xf32>) outs(%h : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  return %m : tensor<512xf32>
}

// A result that something else than a generic sees keeps its order.

#q1 = affine_map<(i, j, k) -> (i, k)>
#k1 = affine_map<(i, j, k) -> (j, k)>
#s1 = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: @seen
// CHECK-NOT: tile.order
func.func @seen(%q: tensor<512x64xf32>, %k: tensor<512x64xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q1, #k1, #s1], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x64xf32>, tensor<512x64xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  return %s : tensor<512x512xf32>
}
