// RUN: tile-opt %s --tile-sink-reshapes | FileCheck-22 %s

#id = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (j)>
#of_batch = affine_map<(b, i, j) -> (b, j)>
tile.kernel @zeros(%r: memref<32x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<32x16xf32>
  tile.return
}

// A bias, then a residual: both run over 32 rows; what one of each batch is added to, runs over batches.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = tile.launch @zeros
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[R]], %{{.*}} : tensor<32x16xf32>, tensor<16xf32>)
// CHECK: %[[Q:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[Q]] : tensor<32x16xf32>, tensor<32x16xf32>)
// CHECK: %[[X:.*]] = tensor.expand_shape %[[C]]
// CHECK: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<4x8x16xf32>, tensor<4x16xf32>)
func.func @main(%q: tensor<4x8x16xf32>, %b: tensor<16xf32>, %v: tensor<4x16xf32>) -> tensor<4x8x16xf32> {
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<32x16xf32>
  %r = tile.launch @zeros grid(%c32) outs(%e : tensor<32x16xf32>) -> (tensor<32x16xf32>)
  %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %f = tensor.empty() : tensor<4x8x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<4x8x16xf32>, tensor<16xf32>) outs(%f : tensor<4x8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %n = arith.addf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<4x8x16xf32>
  %c = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %q : tensor<4x8x16xf32>, tensor<4x8x16xf32>) outs(%f : tensor<4x8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %n = arith.addf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<4x8x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #of_batch, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %v : tensor<4x8x16xf32>, tensor<4x16xf32>) outs(%f : tensor<4x8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %n = arith.addf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// A column that every batch has of its own is one column, a number for all is one still.
// CHECK-LABEL: func.func @columns
// CHECK: %[[R:.*]] = tile.launch @zeros
// CHECK: %[[D:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<4x8x1xf32> into tensor<4x8xf32>
// CHECK: %[[N:.*]] = tensor.collapse_shape %{{.*}} [] : tensor<1x1x1xf32> into tensor<f32>
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[D]] {{\[\[}}0, 1]] : tensor<4x8xf32> into tensor<32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[R]], %[[C]], %[[N]] : tensor<32x16xf32>, tensor<32xf32>, tensor<f32>)
func.func @columns(%c: tensor<4x8x1xf32>, %n: tensor<1x1x1xf32>) -> tensor<4x8x16xf32> {
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<32x16xf32>
  %r = tile.launch @zeros grid(%c32) outs(%e : tensor<32x16xf32>) -> (tensor<32x16xf32>)
  %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %f = tensor.empty() : tensor<4x8x16xf32>
  %y = linalg.generic {indexing_maps = [#id, affine_map<(b, i, j) -> (b, i, 0)>, affine_map<(b, i, j) -> (0, 0, 0)>,
      #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %c, %n : tensor<4x8x16xf32>, tensor<4x8x1xf32>, tensor<1x1x1xf32>) outs(%f : tensor<4x8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %t: f32, %o: f32):
    %m = arith.mulf %p, %s : f32
    %z = arith.mulf %m, %t : f32
    linalg.yield %z : f32
  } -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// A sum is not element by element.
// CHECK-LABEL: func.func @sum
// CHECK: %[[X:.*]] = tensor.expand_shape
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<4x8x16xf32>)
func.func @sum(%f: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<32x16xf32>
  %r = tile.launch @zeros grid(%c32) outs(%e : tensor<32x16xf32>) -> (tensor<32x16xf32>)
  %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #of_batch], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.addf %p, %o : f32
    linalg.yield %n : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// What is read beside a sum stays with it: a norm would else be two kernels.
// CHECK-LABEL: func.func @norm
// CHECK: %[[X:.*]] = tensor.expand_shape
// CHECK: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<4x8x16xf32>, tensor<4x16xf32>)
func.func @norm(%f: tensor<4x16xf32>) -> tensor<4x8x16xf32> {
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<32x16xf32>
  %r = tile.launch @zeros grid(%c32) outs(%e : tensor<32x16xf32>) -> (tensor<32x16xf32>)
  %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %g = tensor.empty() : tensor<4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #of_batch], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.addf %p, %o : f32
    linalg.yield %n : f32
  } -> tensor<4x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #of_batch, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<4x8x16xf32>, tensor<4x16xf32>) outs(%g : tensor<4x8x16xf32>) {
  ^bb0(%p: f32, %t: f32, %o: f32):
    %n = arith.subf %p, %t : f32
    linalg.yield %n : f32
  } -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// Sizes of a run are those that were given: nothing asks what is stored for them.
// CHECK-LABEL: func.func @open
// CHECK: %[[B:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: %[[N:.*]] = tensor.dim %{{.*}}, %c1
// CHECK: %[[R:.*]] = tile.launch @open_zeros
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[R]],
// CHECK-NOT: tensor.dim %[[Y]]
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]],
// CHECK: tensor.expand_shape %[[Z]] {{\[\[}}0, 1], [2]] output_shape [%[[B]], %[[N]], 16]
tile.kernel @open_zeros(%r: memref<?x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<?x16xf32>
  tile.return
}
func.func @open(%q: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x16xf32>
  %n = tensor.dim %q, %c1 : tensor<?x?x16xf32>
  %bn = arith.muli %b, %n : index
  %e = tensor.empty(%bn) : tensor<?x16xf32>
  %r = tile.launch @open_zeros grid(%bn) outs(%e : tensor<?x16xf32>) -> (tensor<?x16xf32>)
  %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [%b, %n, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %f = tensor.empty(%b, %n) : tensor<?x?x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %q : tensor<?x?x16xf32>, tensor<?x?x16xf32>) outs(%f : tensor<?x?x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %m = arith.mulf %p, %s : f32
    linalg.yield %m : f32
  } -> tensor<?x?x16xf32>
  %y2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %q : tensor<?x?x16xf32>, tensor<?x?x16xf32>) outs(%f : tensor<?x?x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %m = arith.mulf %p, %s : f32
    linalg.yield %m : f32
  } -> tensor<?x?x16xf32>
  return %y2 : tensor<?x?x16xf32>
}
