// RUN: tile-opt %s --tile-follow-groups --split-input-file | FileCheck-22 %s

#x = affine_map<(m, g, n, k) -> (m, g, k)>
#w = affine_map<(m, g, n, k) -> (g, k, n)>
#y = affine_map<(m, g, n, k) -> (m, g, n)>
#id = affine_map<(m, c) -> (m, c)>
#turned = affine_map<(m, c) -> (c, m)>
#bias = affine_map<(m, c) -> (c)>

// A bias, then a residual from the run, whose result another one reads: all have the loops of the product.

// CHECK: #[[$ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[$CHANNEL:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #[[$TURNED:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-LABEL: @groups
// CHECK-SAME: {{.*}}, %[[B:[a-z0-9]*]]: tensor<8xf32>, %[[R:[a-z0-9]*]]: tensor<8x16xf32>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}}"reduction"]}
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[B]] {{\[}}[0, 1]] output_shape [2, 4] : tensor<8xf32>
// CHECK-SAME: {{^}} into tensor<2x4xf32>
// CHECK: %[[Z:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$CHANNEL]], #[[$ID]]], {{.*}}}
// CHECK-SAME: {{^}} ins(%[[Y]], %[[PARTS]] : tensor<16x2x4xf32>, tensor<2x4xf32>) outs(%{{.*}} : tensor<16x2x4xf32>)
// CHECK: %[[OTHER:.*]] = tensor.expand_shape %[[R]] {{\[}}[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32>
// CHECK-SAME: {{^}} into tensor<2x4x16xf32>
// CHECK: %[[S:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$TURNED]], #[[$ID]]], {{.*}}}
// CHECK-SAME: {{^}} ins(%[[Z]], %[[OTHER]] : tensor<16x2x4xf32>, tensor<2x4x16xf32>)
// CHECK: %[[ALL:.*]] = tensor.collapse_shape %[[S]] {{\[}}[0], [1, 2]]
// CHECK: return %[[ALL]]
func.func @groups(%x: tensor<16x2x8xf32>, %w: tensor<2x8x4xf32>, %b: tensor<8xf32>, %r: tensor<8x16xf32>)
    -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x2x4xf32>) -> tensor<16x2x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x2x8xf32>, tensor<2x8x4xf32>) outs(%f : tensor<16x2x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<16x2x4xf32>
  %c = tensor.collapse_shape %y [[0], [1, 2]] : tensor<16x2x4xf32> into tensor<16x8xf32>
  %h = tensor.empty() : tensor<16x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %b : tensor<16x8xf32>, tensor<8xf32>) outs(%h : tensor<16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%z, %r : tensor<16x8xf32>, tensor<8x16xf32>) outs(%h : tensor<16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// -----

#id = affine_map<(m, c) -> (m, c)>

// What no product has made keeps its loops.

// CHECK-LABEL: @others
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0
// CHECK: linalg.generic {{.*}} ins(%[[C]] : tensor<16x8xf32>) outs(%{{.*}} : tensor<16x8xf32>)
func.func @others(%x: tensor<16x2x4xf32>) -> tensor<16x8xf32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<16x2x4xf32> into tensor<16x8xf32>
  %h = tensor.empty() : tensor<16x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<16x8xf32>) outs(%h : tensor<16x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  return %z : tensor<16x8xf32>
}
