// RUN: tile-opt %s --tile-split-repeats --canonicalize --split-input-file | FileCheck-22 %s

// Two heads of keys for four of queries, open sizes: scores and what follows on them have a loop over groups and one
// within a group; the keys are read as they are.
// CHECK-DAG: #[[$Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
// CHECK-DAG: #[[$K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[$S:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
// CHECK-LABEL: @scores
// CHECK-SAME: %[[QUERIES:.*]]: tensor<?x4x?x8xf32>, %[[KEYS:.*]]: tensor<?x2x?x8xf32>
// CHECK: %[[TWO:.*]] = tensor.expand_shape %[[QUERIES]] {{.*}} output_shape [%{{.*}}, 2, 2, %{{.*}}, 8]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$Q]], #[[$K]], #[[$S]]]
// CHECK-SAME: ins(%[[TWO]], %[[KEYS]] : tensor<?x2x2x?x8xf32>, tensor<?x2x?x8xf32>)
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<?x2x2x?x?xf32>)
// CHECK: %[[Y:.*]] = tensor.collapse_shape %[[E]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK: return %[[Y]]
#k = affine_map<(b, h, g, t, d) -> (b, h, t, d)>
#r = affine_map<(b, h, g, t, d) -> (b, h, g, t, d)>
#q = affine_map<(b, h, s, t, d) -> (b, h, s, d)>
#m = affine_map<(b, h, s, t, d) -> (b, h, t, d)>
#y = affine_map<(b, h, s, t, d) -> (b, h, s, t)>
#id = affine_map<(b, h, s, t) -> (b, h, s, t)>
func.func @scores(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %b: index, %s: index, %t: index)
    -> tensor<?x4x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b, %t) : tensor<?x2x2x?x8xf32>
  %r = linalg.generic {indexing_maps = [#k, #r],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<?x2x?x8xf32>) outs(%e : tensor<?x2x2x?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x2x2x?x8xf32>
  %m = tensor.collapse_shape %r [[0], [1, 2], [3], [4]] : tensor<?x2x2x?x8xf32> into tensor<?x4x?x8xf32>
  %f = tensor.empty(%b, %s, %t) : tensor<?x4x?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %p = linalg.generic {indexing_maps = [#q, #m, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %m : tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) outs(%z : tensor<?x4x?x?xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x4x?x?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%p : tensor<?x4x?x?xf32>) outs(%f : tensor<?x4x?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x4x?x?xf32>
  return %y : tensor<?x4x?x?xf32>
}

// -----

// A reader that is no product: the copy stays.
// CHECK-LABEL: @read_otherwise
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
#k = affine_map<(g, h, d) -> (h, d)>
#r = affine_map<(g, h, d) -> (g, h, d)>
#id = affine_map<(h, d) -> (h, d)>
func.func @read_otherwise(%k: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<2x2x8xf32>
  %r = linalg.generic {indexing_maps = [#k, #r], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x8xf32>) outs(%e : tensor<2x2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2x8xf32>
  %m = tensor.collapse_shape %r [[0, 1], [2]] : tensor<2x2x8xf32> into tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A group of heads beside each other, repeated as a whole: the outer loop is the one that keys have not.
// CHECK-DAG: #[[$K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>
// CHECK-LABEL: @whole_groups
// CHECK-SAME: %{{.*}}: tensor<6x5x8xf32>, %[[KEYS:.*]]: tensor<2x9x8xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$K]], #{{.*}}]
// CHECK-SAME: %[[KEYS]] : tensor<3x2x5x8xf32>, tensor<2x9x8xf32>
#k = affine_map<(g, h, t, d) -> (h, t, d)>
#r = affine_map<(g, h, t, d) -> (g, h, t, d)>
#q = affine_map<(h, s, t, d) -> (h, s, d)>
#m = affine_map<(h, s, t, d) -> (h, t, d)>
#y = affine_map<(h, s, t, d) -> (h, s, t)>
func.func @whole_groups(%q: tensor<6x5x8xf32>, %k: tensor<2x9x8xf32>) -> tensor<6x5x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x9x8xf32>
  %r = linalg.generic {indexing_maps = [#k, #r], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x9x8xf32>) outs(%e : tensor<3x2x9x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x9x8xf32>
  %m = tensor.collapse_shape %r [[0, 1], [2], [3]] : tensor<3x2x9x8xf32> into tensor<6x9x8xf32>
  %f = tensor.empty() : tensor<6x5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<6x5x9xf32>) -> tensor<6x5x9xf32>
  %p = linalg.generic {indexing_maps = [#q, #m, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %m : tensor<6x5x8xf32>, tensor<6x9x8xf32>) outs(%z : tensor<6x5x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<6x5x9xf32>
  return %p : tensor<6x5x9xf32>
}
