// RUN: tile-opt %s --tile-join-rows | FileCheck-22 %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#id = affine_map<(b, s, n) -> (b, s, n)>
#s = affine_map<(b, s, n) -> (s, n)>
#row = affine_map<(b, s, n) -> (b, s)>

// The product, what is added to it and the sum of a row take all rows in one loop; what broadcasts along the batch
// stays.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<?x?x8xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[R:.*]]: tensor<?x?x4xf32>,
// CHECK-SAME: {{^}} {{.*}} %[[B:.*]]: index, %[[S:.*]]: index
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
// CHECK: %[[N:.*]] = arith.muli %[[B]], %[[S]]
// CHECK: %[[E:.*]] = tensor.empty(%[[N]]) : tensor<?x4xf32>
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E]] : tensor<?x4xf32>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: "parallel", "parallel", "reduction"]} ins(%[[ROWS]], %[[W]] : {{.*}}) outs(%[[F]]
// CHECK: %[[R2:.*]] = tensor.collapse_shape %[[R]]
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[R2]] : tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: %[[A3:.*]] = tensor.expand_shape %[[A]] {{\[}}[0, 1], [2]] output_shape [%[[B]], %[[S]], 4]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[A]] : tensor<?x4xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK: %[[SUM:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [%[[B]], %[[S]]]
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[A3]], %{{.*}} : tensor<?x?x4xf32>, tensor<?x4xf32>)
// CHECK: return %[[P]], %[[SUM]]
func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>, %r: tensor<?x?x4xf32>, %p: tensor<?x4xf32>, %b: index,
    %s: index)
    -> (tensor<?x?x4xf32>, tensor<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b, %s) : tensor<?x?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %r : tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %a = arith.addf %q, %t : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  %h = tensor.empty(%b, %s) : tensor<?x?xf32>
  %g = linalg.fill ins(%zero : f32) outs(%h : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%z : tensor<?x?x4xf32>) outs(%g : tensor<?x?xf32>) {
  ^bb0(%q: f32, %o: f32):
    %a = arith.addf %o, %q : f32
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  %placed = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %p : tensor<?x?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %a = arith.addf %q, %t : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  return %placed, %sum : tensor<?x?x4xf32>, tensor<?x?xf32>
}

// Sizes that are known: tiles may take several loops as rows.

// CHECK-LABEL: func.func @known
// CHECK-NOT: collapse_shape
func.func @known(%x: tensor<?x5x8xf32>, %w: tensor<8x4xf32>, %b: index) -> tensor<?x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b) : tensor<?x5x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5x4xf32>) -> tensor<?x5x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x5x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x5x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?x5x4xf32>
  return %y : tensor<?x5x4xf32>
}
