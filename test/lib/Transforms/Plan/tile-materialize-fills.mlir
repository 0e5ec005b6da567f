// RUN: tile-opt %s --tile-materialize-fills | FileCheck %s

// CHECK-LABEL: func.func @padding
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK: linalg.yield %cst
func.func @padding(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %r = tensor.insert_slice %x into %f[1] [4] [1] : tensor<4xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}

// CHECK-LABEL: func.func @initial
// CHECK: linalg.fill
// CHECK-COUNT-1: linalg.generic
func.func @initial(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
