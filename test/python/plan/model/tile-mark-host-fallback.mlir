// RUN: tile-opt %s --tile-mark-host-fallback | FileCheck-22 %s

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
#half = affine_map<(d0) -> (d0 floordiv 2)>

// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: tile.host
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%x : tensor<?xf32>) {
  ^bb0(%o: f32):
    %n = arith.negf %o : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @f64
// CHECK: tile.host = "math.exp on f64 calls a library"
// CHECK-NOT: tile.host
func.func @f64(%x: tensor<4xf64>, %e: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %n = math.exp %a : f64
    linalg.yield %n : f64
  } -> tensor<4xf64>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %n = math.sqrt %a : f64
    linalg.yield %n : f64
  } -> tensor<4xf64>
  return %y, %z : tensor<4xf64>, tensor<4xf64>
}

// CHECK-LABEL: func.func @maps
// CHECK: tile.host = "it reads through (d0) -> (d0 floordiv 2), which is not linear"
func.func @maps(%x: tensor<2xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %y = linalg.generic {indexing_maps = [#half, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @outside
// CHECK: tile.host = "its body uses a scalar from outside"
func.func @outside(%e: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduction
// CHECK: tile.host = "it reduces by something else than combiner(accumulator, term)"
func.func @reduction(%x: tensor<4xf32>, %e: tensor<f32>) -> tensor<f32> {
  %y = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.subf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// CHECK-LABEL: func.func @empty
// CHECK: tile.host = "it has no elements"
func.func @empty(%e: tensor<0xf32>) -> tensor<0xf32> {
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<0xf32>) {
  ^bb0(%o: f32):
    linalg.yield %o : f32
  } -> tensor<0xf32>
  return %y : tensor<0xf32>
}
