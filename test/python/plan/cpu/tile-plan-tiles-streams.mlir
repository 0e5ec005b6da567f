// RUN: tile-opt %s --tile-plan-tiles="l2-bytes=1048576 l3-bytes=33554432 l3-rate=60 memory-rate=20" | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-tiles="l2-bytes=1048576 l3-bytes=268435456 l3-rate=60 memory-rate=20" \
// RUN:   | FileCheck-22 %s --check-prefix=LARGE

// 16 MiB are written while 16 MiB are read: a cache of 32 MiB would lose some of either before they are used again, so
// that what is written goes past it; one of 256 MiB keeps both.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @main
// CHECK: tile.stream
// LARGE-LABEL: @main
// LARGE-NOT: tile.stream
func.func @main(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %e = tensor.empty() : tensor<4096x1024xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x : tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
