// RUN: tile-opt %s --tile-sink-scales --split-input-file | FileCheck-22 %s

// Both operands are scaled, the one through a transposed map: one constant is left.

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
// CHECK-DAG: #[[$TA:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$TB:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @both
// CHECK: linalg.generic {indexing_maps = [#[[$TA]], #[[$TB]], #{{.*}}],
// CHECK-SAME: ins(%arg0, %arg1 : tensor<8x16xf32>, tensor<16x32xf32>)
// CHECK: arith.constant 5.000000e-01 : f32
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
func.func @both(%p: tensor<8x16xf32>, %q: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %quarter = arith.constant 0.25 : f32
  %g = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.mulf %v, %two : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %h = tensor.empty() : tensor<32x16xf32>
  %s = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<16x32xf32>) outs(%h : tensor<32x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.mulf %quarter, %v : f32
    linalg.yield %t : f32
  } -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %s : tensor<8x16xf32>, tensor<32x16xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%c: f32, %d: f32, %o: f32):
    %t = arith.mulf %c, %d : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// What others read, too, is scaled anyway, and a weight at compile time.

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
ml_program.global private @w(dense<1.0> : tensor<32x16xf32>) : tensor<32x16xf32>
// CHECK-LABEL: @stay
// CHECK-COUNT-2: arith.mulf %{{.*}}, %cst
// CHECK-NOT: arith.mulf %{{.*}}, %cst
func.func @stay(%p: tensor<8x16xf32>) -> (tensor<8x32xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %q = ml_program.global_load_const @w : tensor<32x16xf32>
  %g = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x16xf32>) outs(%g : tensor<8x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.mulf %v, %two : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %h = tensor.empty() : tensor<32x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<32x16xf32>) outs(%h : tensor<32x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.mulf %v, %two : f32
    linalg.yield %t : f32
  } -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %s : tensor<8x16xf32>, tensor<32x16xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%c: f32, %d: f32, %o: f32):
    %t = arith.mulf %c, %d : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x32xf32>
  return %y, %r : tensor<8x32xf32>, tensor<8x16xf32>
}
