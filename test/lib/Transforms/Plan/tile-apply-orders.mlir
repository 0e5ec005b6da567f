// RUN: tile-opt %s -tile-apply-orders -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK-DAG: #[[ID:[a-z0-9]+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[SWAP:[a-z0-9]+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK: func.func @main
// CHECK: %[[A:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[SWAP]]], {{.*}} outs(%{{.*}} : tensor<8x4xf32>)
// CHECK-NOT: tile.order
// CHECK: linalg.generic {indexing_maps = [#[[SWAP]], #[[ID]]], {{.*}} ins(%[[A]] : tensor<8x4xf32>)
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.order = array<i64: 1, 0>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @seen(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // expected-error @below {{has a tile.order, but a result that func.return reads}}
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.order = array<i64: 1, 0>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @no_order(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // expected-error @below {{has a tile.order that permutes no dimensions of its only result}}
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.order = array<i64: 1, 1>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}
