// RUN: tile-opt %s --tile-float8-products --split-input-file | FileCheck-22 %s

// The product reads float8; a constant and a scale of each column multiply its sums, once.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$TURNED:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @columns
// CHECK-SAME: (%[[A:.*]]: tensor<8x16xf8E4M3FN>, %[[B:.*]]: tensor<16x32xf8E4M3FN>, %[[S:.*]]: tensor<32xf32>)
// CHECK: %[[Z:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[$TURNED]], #{{.*}}]{{.*}} ins(%[[A]], %[[B]] :
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: %[[C:.*]] = arith.constant 2.500000e-01 : f32
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$COLUMN]], #[[$ID]]]{{.*}} ins(%[[Z]], %[[S]] :
// CHECK: ^bb0(%[[E:.*]]: f32, %[[F:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[E]], %[[C]]
// CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[F]]
// CHECK: return %[[Y]]
#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @columns(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %t: tensor<32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %s = arith.constant 0.25 : f32
  %d = tensor.empty() : tensor<8x16xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<8x16xf8E4M3FN>) outs(%d : tensor<8x16xf32>) {
  ^bb0(%x: f8E4M3FN, %o: f32):
    %v = sparse_tile.decode %x scale %s : f32 : f8E4M3FN to f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %e = tensor.empty() : tensor<32x16xf32>
  %q = linalg.generic {indexing_maps = [#turned, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b, %t : tensor<16x32xf8E4M3FN>, tensor<32xf32>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: f8E4M3FN, %u: f32, %o: f32):
    %v = sparse_tile.decode %x scale %u : f32 : f8E4M3FN to f32
    linalg.yield %v : f32
  } -> tensor<32x16xf32>
  %g = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %q : tensor<8x16xf32>, tensor<32x16xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %v = arith.mulf %x, %z : f32
    %w = arith.addf %o, %v : f32
    linalg.yield %w : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// A scale that differs within a sum must be applied first: the product stays one of f32.

// CHECK-LABEL: @within_sums
// CHECK-NOT: linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<8x16xf8E5M2>, tensor<32x16xf8E5M2>)
// CHECK: linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<32x16xf32>)
#id = affine_map<(i, j) -> (i, j)>
#depth = affine_map<(i, j) -> (j)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @within_sums(%a: tensor<8x16xf8E5M2>, %b: tensor<32x16xf8E5M2>, %t: tensor<16xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %s = arith.constant 0.25 : f32
  %d = tensor.empty() : tensor<8x16xf32>
  %p = linalg.generic {indexing_maps = [#id, #depth, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %t : tensor<8x16xf8E5M2>, tensor<16xf32>) outs(%d : tensor<8x16xf32>) {
  ^bb0(%x: f8E5M2, %u: f32, %o: f32):
    %w = arith.extf %x : f8E5M2 to f32
    %v = arith.mulf %w, %u : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %e = tensor.empty() : tensor<32x16xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<32x16xf8E5M2>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: f8E5M2, %o: f32):
    %w = arith.extf %x : f8E5M2 to f32
    %v = arith.mulf %w, %s : f32
    linalg.yield %v : f32
  } -> tensor<32x16xf32>
  %g = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %q : tensor<8x16xf32>, tensor<32x16xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %v = arith.mulf %x, %z : f32
    %w = arith.addf %o, %v : f32
    linalg.yield %w : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
