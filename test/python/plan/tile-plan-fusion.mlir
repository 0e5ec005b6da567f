// RUN: tile-opt %s --tile-plan-fusion | FileCheck-22 %s

// A chain of elementwise operations shares a nest; its root states the rows that tasks may cut.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @chain
// CHECK: linalg.generic {{.*}}attrs = {tile.nest = 0 : i64, tile.rows = array<i64: 0, 1>, tile.task = 0 : i64}
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}attrs = {tile.nest = 0 : i64, tile.task = 0 : i64}
// CHECK: arith.negf
func.func @chain(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}
