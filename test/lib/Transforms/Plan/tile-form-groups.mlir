// RUN: tile-opt %s --tile-form-groups -split-input-file | FileCheck %s

// Two operations of one nest meet in registers: one inner group, and the fill is made again inside it.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg
// CHECK: tile.group "l2" (%{{.*}} = %{{.*}} : tensor<8x64xf32>)
// CHECK: tile.group "register"
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK-SAME: tile.rtile
// CHECK-NOT: tile.task
// CHECK: linalg.generic
// CHECK: tile.yield
// CHECK: tile.yield
func.func @main(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64,
      tile.rtile = #tile.rtile<l2 = [8, 64], register = [1, 64], order = [0, 1]>}
      ins(%x : tensor<8x64xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %o, %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64}
      ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A value that one nest makes and another of the task reads passes between their groups; a view of an early result is
// moved behind the group.

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK: %[[G:.*]]:2 = tile.group "l2"
// CHECK: %[[A:.*]] = tile.group "register"
// CHECK: tile.group "register" (%{{.*}} = %[[A]] : tensor<64xf32>)
// CHECK: tensor.expand_shape %[[G]]#0
func.func @main(%x: tensor<64xf32>) -> (tensor<8x8xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %a = linalg.generic {indexing_maps = [#v, #v],
      iterator_types = ["parallel"], tile.task = 3 : i64, tile.nest = 1 : i64,
      tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %view = tensor.expand_shape %a [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %b = linalg.generic {indexing_maps = [#v, #v],
      iterator_types = ["parallel"], tile.task = 3 : i64, tile.nest = 2 : i64,
      tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>}
      ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = math.absf %p : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %view, %b : tensor<8x8xf32>, tensor<64xf32>
}

// -----

// A border that is not in memory: the group takes the image, and makes the border for itself.

#window = affine_map<(i, k) -> (i + k)>
#tap = affine_map<(i, k) -> (k)>
#place = affine_map<(i, k) -> (i)>

// CHECK-LABEL: func.func @border
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<3xf32>)
// CHECK: tile.group {{.*}}(%[[X0:.*]] = %[[X]] : tensor<64xf32>, %[[W0:.*]] = %[[W]] : tensor<3xf32>)
// CHECK: tile.group "register" (%[[X1:.*]] = %[[X0]] : tensor<64xf32>,
// CHECK: %[[P:.*]] = tensor.pad %[[X1]] low[1] high[1] {
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<66xf32>, tensor<3xf32>)
func.func @border(%x: tensor<64xf32>, %w: tensor<3xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } {tile.implicit_padding} : tensor<64xf32> to tensor<66xf32>
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"],
      tile.task = 0, tile.nest = 0}
      ins(%p, %w : tensor<66xf32>, tensor<3xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
