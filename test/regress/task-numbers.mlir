// RUN: tile-opt %s --tile-form-groups --verify-diagnostics

// The largest integer is no key that LLVM's maps take.

#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{numbers its task or its nest}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
      tile.task = 9223372036854775807 : i64, tile.nest = 0 : i64}
      ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
