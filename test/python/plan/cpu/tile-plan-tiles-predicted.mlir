// RUN: tile-opt %s --tile-set-target=target=amd-zen5 --tile-plan-tiles | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=amd-zen5 --tile-plan-tiles=choices=reduce_4096x3:5 \
// RUN:   | FileCheck-22 %s --check-prefix=CHOSEN

// With a device each root tells the predicted time and the runner-up. Short rows are summed side by side.

#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

// CHECK: linalg.generic
// CHECK-SAME: tile.prediction = {all_cores_ns = {{[0-9]+}} : i64, bound = "{{[a-z0-9]+}}",
// CHECK-SAME: {{^}} candidates = {{[0-9]+}} : i64, compute_ns
// CHECK-SAME: runner_up = #tile.rtile<l2 = [{{[0-9]+}}, 3]
// CHECK-SAME: tile.rtile = #tile.rtile<l2 = [[[TASK:[0-9]+]], 3], register =
// CHOSEN: linalg.generic
// CHOSEN-SAME: tile.rtile = #tile.rtile<
func.func @main(%x: tensor<4096x3xf32>) -> tensor<4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x : tensor<4096x3xf32>) outs(%f : tensor<4096xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  return %y : tensor<4096xf32>
}
