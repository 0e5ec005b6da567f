// RUN: tile-opt %s --tile-plan-online=l2-bytes=262144 | FileCheck %s
// RUN: tile-opt %s --tile-plan-online=l2-bytes=16777216 | FileCheck %s --check-prefix=SHORT

// Rows whose tensors do not stay in the L2 cache run in blocks; what passes between nests decides.

// CHECK-LABEL: @log_of_sums
// CHECK: linalg.generic {{.*}}tile.online = array<i64: 1, 1024>
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}}tile.online = array<i64: 1, 1024>
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}tile.online = array<i64: 1, 1024>
// CHECK: arith.addf
// SHORT-NOT: tile.online
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @log_of_sums(%x: tensor<16x65536xf32>) -> tensor<16xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %h = tensor.empty() : tensor<16x65536xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rtile = #tile.rtile<l2 = [1, 65536], register = [1, 64]>}
      ins(%x : tensor<16x65536xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rtile = #tile.rtile<l2 = [1, 65536], register = [1, 32]>}
      ins(%x, %m : tensor<16x65536xf32>, tensor<16xf32>) outs(%h : tensor<16x65536xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<16x65536xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 2 : i64, tile.rtile = #tile.rtile<l2 = [1, 65536], register = [1, 64]>}
      ins(%p : tensor<16x65536xf32>) outs(%g : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}
