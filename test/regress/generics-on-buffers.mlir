// RUN: tile-opt %s --tile-mark-host-fallback --tile-plan-fusion --tile-plan-tiles | FileCheck-22 %s

// The first result of each generic was asked for: one on buffers has none.

#id = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic
// CHECK-NOT: tile.task
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}
