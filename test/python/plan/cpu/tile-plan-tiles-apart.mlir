// RUN: tile-opt %s --tile-plan-tiles="l2-bytes=524288 lanes=8 registers=16" | FileCheck-22 %s

// Of two products in a task, each reads its second operand as it lies, wherever the caller has it. So many rows read
// them again that a copy into panels before all tasks costs nothing; of fewer rows it is left out. Threads share each
// copy: it is cut into tasks.

#a = affine_map<(i, m, n, k) -> (i, m, k)>
#b = affine_map<(i, m, n, k) -> (k, n)>
#c = affine_map<(i, m, n, k) -> (i, m, n)>

// CHECK-LABEL: @many
// CHECK: linalg.generic {{.*}}tile.pack_apart, tile.pack_rtiles = [unit, #tile.rtile<l2 = [32, 64]
// CHECK: linalg.generic {{.*}}tile.pack_apart
func.func @many(%x: tensor<64x64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>, tile.block = 64 : i64}
      ins(%x, %b : tensor<64x64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64x64xf32>) {
  ^bb0(%s: f32, %w: f32, %o: f32):
    %m = arith.mulf %s, %w : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x64x64xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 0>, tile.block = 1 : i64}
      ins(%y, %c : tensor<64x64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64x64xf32>) {
  ^bb0(%s: f32, %w: f32, %o: f32):
    %m = arith.mulf %s, %w : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x64x64xf32>
  return %z : tensor<64x64x64xf32>
}
