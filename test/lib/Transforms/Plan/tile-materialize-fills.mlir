// RUN: tile-opt %s --tile-materialize-fills | FileCheck %s
// RUN: tile-opt %s --tile-materialize-fills=whole-below=1024 | FileCheck %s --check-prefix=WHOLE

// CHECK-LABEL: func.func @padding
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK: linalg.yield %cst
func.func @padding(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %r = tensor.insert_slice %x into %f[1] [4] [1] : tensor<4xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}

// CHECK-LABEL: func.func @initial
// CHECK: linalg.fill
// CHECK-COUNT-1: linalg.generic
func.func @initial(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// Two images are copied into zeros that they share: each gets a border of its own, the first and last line at once,
// then the first and last column of the others. The second one has no column on its left, and two on its right.

#id = affine_map<(i, j) -> (i, j)>

// Where launches cost more than writing it, the tensor is filled whole.
// WHOLE-LABEL: func.func @borders
// WHOLE: %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x10xf32>)
// WHOLE: linalg.yield %cst
// WHOLE: tensor.extract_slice %[[F]][1, 1] [4, 8] [1, 1]
// WHOLE: tensor.insert_slice %{{.*}} into %[[F]][1, 1] [4, 8] [1, 1]
// WHOLE-NOT: tensor<2x10xf32>

// CHECK-LABEL: func.func @borders
// CHECK-NOT: linalg.fill
// CHECK: %[[S:.*]] = tensor.extract_slice %[[E:.*]][0, 0] [2, 10] [5, 1]
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} outs(%[[S]] : tensor<2x10xf32>)
// CHECK: %[[T:.*]] = tensor.insert_slice %[[ROWS]] into %[[E]][0, 0] [2, 10] [5, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[T]][1, 0] [4, 2] [1, 9]
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}} outs(%[[S2]] : tensor<4x2xf32>)
// CHECK: %[[T2:.*]] = tensor.insert_slice %[[COLUMNS]] into %[[T]][1, 0] [4, 2] [1, 9]
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[T2]][1, 1] [4, 8] [1, 1]
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} outs(%[[PLACE]] : tensor<4x8xf32>)
// CHECK: tensor.insert_slice %[[COPY]] into %[[T2]][1, 1] [4, 8] [1, 1]
// CHECK: tensor.empty() : tensor<6x10xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 0] [2, 10] [5, 1]
// CHECK: tensor.extract_slice {{.*}}[1, 8] [4, 2] [1, 1]
// CHECK: tensor.extract_slice {{.*}}[1, 0] [4, 8] [1, 1]
func.func @borders(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<6x10xf32>, tensor<6x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x10xf32>) -> tensor<6x10xf32>
  %p = tensor.extract_slice %f[1, 1] [4, 8] [1, 1] : tensor<6x10xf32> to tensor<4x8xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%p : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  %r = tensor.insert_slice %c into %f[1, 1] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x10xf32>
  %q = tensor.extract_slice %f[1, 0] [4, 8] [1, 1] : tensor<6x10xf32> to tensor<4x8xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x8xf32>) outs(%q : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  %s = tensor.insert_slice %d into %f[1, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x10xf32>
  return %r, %s : tensor<6x10xf32>, tensor<6x10xf32>
}

// An operation that adds to what is there needs the whole fill.

// CHECK-LABEL: func.func @reads
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK: tensor.extract_slice %{{.*}}[1] [4] [1]
#one = affine_map<(i) -> (i)>
func.func @reads(%x: tensor<4xf32>) -> tensor<6xf32> {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %p = tensor.extract_slice %f[1] [4] [1] : tensor<6xf32> to tensor<4xf32>
  %c = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%p : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %r = tensor.insert_slice %c into %f[1] [4] [1] : tensor<4xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}

// Open sizes: the batch has no border, the height has one of a known width, since the slice is one less; the last
// dimension is padded by a number of the run.

#cube = affine_map<(i, j, k) -> (i, j, k)>

// CHECK-LABEL: func.func @open
// CHECK-SAME: (%{{.*}}, %[[N:.*]]: index, %[[H:.*]]: index, %[[P:.*]]: index)
// CHECK-NOT: linalg.fill
// CHECK: %[[ABOVE:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [%[[N]], 1, %[[W:.*]]] [1, 1, 1]
// CHECK: linalg.generic {{.*}} outs(%[[ABOVE]] : tensor<?x1x?xf32>)
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %{{.*}}[0, 1, 8] [%[[N]], %[[H]], %{{.*}}] [1, 1, 1]
// CHECK: linalg.generic {{.*}} outs(%[[RIGHT]] : tensor<?x?x?xf32>)
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %{{.*}}[0, 1, 0] [%[[N]], %[[H]], 8] [1, 1, 1]
// CHECK: linalg.generic {{.*}} outs(%[[PLACE]] : tensor<?x?x8xf32>)
// CHECK-NOT: linalg.generic
func.func @open(%x: tensor<?x?x8xf32>, %n: index, %h: index, %p: index) -> tensor<?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %height = affine.apply affine_map<()[h] -> (h + 1)>()[%h]
  %width = affine.apply affine_map<()[p] -> (p + 8)>()[%p]
  %e = tensor.empty(%n, %height, %width) : tensor<?x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %q = tensor.extract_slice %f[0, 1, 0] [%n, %h, 8] [1, 1, 1] : tensor<?x?x?xf32> to tensor<?x?x8xf32>
  %c = linalg.generic {indexing_maps = [#cube, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?x8xf32>) outs(%q : tensor<?x?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?x8xf32>
  %r = tensor.insert_slice %c into %f[0, 1, 0] [%n, %h, 8] [1, 1, 1] : tensor<?x?x8xf32> into tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
