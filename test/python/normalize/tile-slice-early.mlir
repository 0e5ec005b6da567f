// RUN: tile-opt %s --tile-slice-early -split-input-file | FileCheck-22 %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#id = affine_map<(b, s, n) -> (b, s, n)>

// The last row of a product of open sizes, through what follows it and what it reads, up to where all rows are read.
// CHECK-LABEL: func.func @main
// CHECK: %[[AT:.*]] = arith.subi
// CHECK: %[[ALL:.*]] = linalg.generic
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[ALL]][0, %[[AT]], 0] [%{{.*}}, 1, 8] [1, 1, 1]
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<?x1x16xf32>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[ROW]], {{.*}} outs(%[[F]]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[P]] {{.*}} into tensor<?x1x2x8xf32>
// CHECK: %[[T:.*]] = tensor.extract_slice %[[E]][0, 0, 1, 0] [%{{.*}}, 1, 1, 8] [1, 1, 1, 1]
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<?x1x8xf32>
// CHECK: return %[[ALL]], %[[C]]
func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<8x16xf32>) -> (tensor<?x?x8xf32>, tensor<?x1x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %ae = tensor.empty(%b, %s) : tensor<?x?x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?x8xf32>) outs(%ae : tensor<?x?x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = math.exp %p : f32
    linalg.yield %n : f32
  } -> tensor<?x?x8xf32>
  %e = tensor.empty(%b, %s) : tensor<?x?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<?x?x8xf32>, tensor<8x16xf32>) outs(%f : tensor<?x?x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x?x16xf32>
  %h = tensor.expand_shape %y [[0], [1], [2, 3]] output_shape [%b, %s, 2, 8]
      : tensor<?x?x16xf32> into tensor<?x?x2x8xf32>
  %u = tensor.extract_slice %h[0, 0, 1, 0] [%b, %s, 1, 8] [1, 1, 1, 1]
      : tensor<?x?x2x8xf32> to tensor<?x?x1x8xf32>
  %v = tensor.collapse_shape %u [[0], [1], [2, 3]] : tensor<?x?x1x8xf32> into tensor<?x?x8xf32>
  %last = arith.subi %s, %c1 : index
  %l = tensor.extract_slice %v[0, %last, 0] [%b, 1, 8] [1, 1, 1] : tensor<?x?x8xf32> to tensor<?x1x8xf32>
  return %a, %l : tensor<?x?x8xf32>, tensor<?x1x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Parts that are put together along other dimensions are cut each.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[2, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<1x8xf32>
// CHECK: %[[X:.*]] = tensor.insert_slice %[[A]] into %[[E]]
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[2, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
// CHECK: %[[Y:.*]] = tensor.insert_slice %[[B]] into %[[X]]
// CHECK: return %[[Y]]
func.func @main(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<1x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = tensor.insert_slice %x into %e[0, 0] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<8x8xf32>
  %b = tensor.insert_slice %y into %a[0, 4] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<8x8xf32>
  %l = tensor.extract_slice %b[2, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
  return %l : tensor<1x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A slice that lacks the dimension.
// CHECK-LABEL: func.func @main
// CHECK: tensor.extract_slice %{{.*}}[7, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
// CHECK: linalg.generic
// CHECK: %[[Y:.*]] = tensor.collapse_shape {{.*}} : tensor<1x4xf32> into tensor<4xf32>
// CHECK: return %[[Y]]
func.func @main(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = math.exp %p : f32
    linalg.yield %n : f32
  } -> tensor<8x4xf32>
  %l = tensor.extract_slice %a[7, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
  return %l : tensor<4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Most rows are read, or the body counts them: nothing changes.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = linalg.generic
// CHECK: tensor.extract_slice %[[A]][1, 0] [5, 4]
// CHECK: %[[C:.*]] = linalg.generic
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%[[C]]
// CHECK: linalg.index
// CHECK: tensor.extract_slice %[[D]][1, 0] [1, 4]
func.func @main(%x: tensor<8x4xf32>) -> (tensor<5x4xf32>, tensor<1x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = math.exp %p : f32
    linalg.yield %n : f32
  } -> tensor<8x4xf32>
  %l = tensor.extract_slice %a[1, 0] [5, 4] [1, 1] : tensor<8x4xf32> to tensor<5x4xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = math.sin %p : f32
    linalg.yield %n : f32
  } -> tensor<8x4xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i64
    %n = arith.sitofp %k : i64 to f32
    %r = arith.addf %p, %n : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %m = tensor.extract_slice %d[1, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
  return %l, %m : tensor<5x4xf32>, tensor<1x4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A division that might end the process stays behind the assertion that it relies on; one by a constant moves.
// CHECK-LABEL: func.func @main
// CHECK: %[[HALF:.*]] = arith.divui %{{.*}}, %c2
// CHECK: linalg.generic
// CHECK: cf.assert
// CHECK: %[[AT:.*]] = arith.divui
// CHECK: tensor.extract_slice %{{.*}}[%[[AT]], 0]
// CHECK: tensor.extract_slice %{{.*}}[%[[HALF]], 0]
// CHECK: linalg.generic
func.func @main(%x: tensor<?x4xf32>, %n: index) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %s = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%s) : tensor<?x4xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.exp %p : f32
    linalg.yield %m : f32
  } -> tensor<?x4xf32>
  %some = arith.cmpi ne, %n, %c0 : index
  cf.assert %some, "none"
  %at = arith.divui %s, %n : index
  %k = tensor.extract_slice %a[%at, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = math.sin %p : f32
    linalg.yield %m : f32
  } -> tensor<?x4xf32>
  %half = arith.divui %s, %c2 : index
  %l = tensor.extract_slice %b[%half, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
  return %k, %l : tensor<1x4xf32>, tensor<1x4xf32>
}
