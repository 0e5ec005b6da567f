// RUN: tile-opt %s --tile-plan-tiles --split-input-file --verify-diagnostics

// What the plan's attributes hold was taken for granted.

#id = affine_map<(i) -> (i)>
func.func @task(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{attribute tile.task must be an i64, got "first"}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
      tile.task = "first", tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @rows(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{has a `tile.rows` that is no array of its loops}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 1>}
      ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
