// RUN: tile-opt %s --tile-split-by-slices --split-input-file | FileCheck-22 %s

// The halves of a gated unit: the sum and the product behind them are made apart, from halves of bias and weights.
// CHECK-LABEL: @gated
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32>, %[[W:.*]]: tensor<128x16xf32>, %[[B:.*]]: tensor<128xf32>
// CHECK: %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0] [64, 16]
// CHECK: %[[P0:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]], %[[W0]] : tensor<4x16xf32>, tensor<64x16xf32>) outs({{.*}} : tensor<4x64xf32>)
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W]][64, 0] [64, 16]
// CHECK: %[[P1:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W1]]
// CHECK: %[[B0:.*]] = tensor.extract_slice %[[B]][0] [64]
// CHECK: %[[S0:.*]] = linalg.generic {{.*}} ins(%[[P0]], %[[B0]]
// CHECK: %[[B1:.*]] = tensor.extract_slice %[[B]][64] [64]
// CHECK: %[[S1:.*]] = linalg.generic {{.*}} ins(%[[P1]], %[[B1]]
// CHECK: linalg.generic {{.*}} ins(%[[S0]], %[[S1]]
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @gated(%x: tensor<4x16xf32>, %w: tensor<128x16xf32>, %b: tensor<128xf32>) -> tensor<4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x128xf32>) -> tensor<4x128xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x16xf32>, tensor<128x16xf32>) outs(%f : tensor<4x128xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x128xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<4x128xf32>, tensor<128xf32>) outs(%e : tensor<4x128xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.addf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<4x128xf32>
  %l = tensor.extract_slice %s[0, 0] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
  %r = tensor.extract_slice %s[0, 64] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
  %g = tensor.empty() : tensor<4x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%l, %r : tensor<4x64xf32>, tensor<4x64xf32>) outs(%g : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  return %z : tensor<4x64xf32>
}

// -----

// Slices that overlap, or that no operation reads together, are left as they are.
// CHECK-LABEL: @overlap
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
#id = affine_map<(m) -> (m)>
func.func @overlap(%x: tensor<128xf32>) -> tensor<80xf32> {
  %e = tensor.empty() : tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<128xf32>) outs(%e : tensor<128xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %l = tensor.extract_slice %y[0] [80] [1] : tensor<128xf32> to tensor<80xf32>
  %r = tensor.extract_slice %y[48] [80] [1] : tensor<128xf32> to tensor<80xf32>
  %g = tensor.empty() : tensor<80xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%l, %r : tensor<80xf32>, tensor<80xf32>) outs(%g : tensor<80xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<80xf32>
  return %z : tensor<80xf32>
}

// -----

// CHECK-LABEL: @apart
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
#id = affine_map<(m) -> (m)>
func.func @apart(%x: tensor<128xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<128xf32>) outs(%e : tensor<128xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %l = tensor.extract_slice %y[0] [64] [1] : tensor<128xf32> to tensor<64xf32>
  %r = tensor.extract_slice %y[64] [64] [1] : tensor<128xf32> to tensor<64xf32>
  return %l, %r : tensor<64xf32>, tensor<64xf32>
}

// -----

// Rows that a run brings: a slice of all of them is one along the columns. One of other rows is not known to be all.
// CHECK-LABEL: @open
// CHECK-SAME: %[[X:.*]]: tensor<?x128xf32>, %[[N:.*]]: index
// CHECK: tensor.extract_slice %[[X]][0, 0] [%[[N]], 64]
// CHECK: tensor.empty(%[[N]]) : tensor<?x64xf32>
// CHECK: math.exp
// CHECK: tensor.extract_slice %[[X]][0, 64] [%[[N]], 64]
// CHECK: math.exp
// CHECK-LABEL: @other_rows
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
#id = affine_map<(m, n) -> (m, n)>
func.func @open(%x: tensor<?x128xf32>, %n: index) -> tensor<?x64xf32> {
  %e = tensor.empty(%n) : tensor<?x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<?x128xf32>
  %l = tensor.extract_slice %y[0, 0] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %r = tensor.extract_slice %y[0, 64] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %g = tensor.empty(%n) : tensor<?x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%l, %r : tensor<?x64xf32>, tensor<?x64xf32>) outs(%g : tensor<?x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
func.func @other_rows(%x: tensor<?x128xf32>, %n: index, %m: index) -> tensor<?x64xf32> {
  %e = tensor.empty(%n) : tensor<?x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<?x128xf32>
  %l = tensor.extract_slice %y[0, 0] [%m, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %r = tensor.extract_slice %y[0, 64] [%m, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %g = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%l, %r : tensor<?x64xf32>, tensor<?x64xf32>) outs(%g : tensor<?x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
