// RUN: tile-opt %s --tile-form-groups -split-input-file -verify-diagnostics

#v = affine_map<(i) -> (i)>
// expected-error @below {{has tasks that depend on each other in a cycle: tile.task is no valid grouping}}
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a = linalg.generic {indexing_maps = [#v, #v],
      iterator_types = ["parallel"], tile.task = 0 : i64, tile.nest = 0 : i64}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#v, #v],
      iterator_types = ["parallel"], tile.task = 1 : i64, tile.nest = 1 : i64}
      ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [#v, #v],
      iterator_types = ["parallel"], tile.task = 0 : i64, tile.nest = 2 : i64}
      ins(%b : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  return %c : tensor<64xf32>
}

// -----

#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  // expected-error @below {{has tile.task but no tile.nest}}
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"], tile.task = 0 : i64}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  return %a : tensor<64xf32>
}
