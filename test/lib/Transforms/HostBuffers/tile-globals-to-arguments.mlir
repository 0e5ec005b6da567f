// RUN: tile-opt %s -tile-globals-to-arguments -split-input-file -verify-diagnostics | FileCheck-22 %s

// Arguments follow the order of the globals; what nothing reads goes.
// CHECK-NOT: ml_program.global
// CHECK-NOT: @init
// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32> {bufferization.writable = false},
// CHECK-SAME: %[[A:.*]]: tensor<4xf32> {bufferization.writable = false, tile.global = "w_a"},
// CHECK-SAME: %[[B:.*]]: tensor<4xf32> {bufferization.writable = false, tile.global = "w_b"})
// CHECK: return %[[B]], %[[A]], %[[B]]
ml_program.global private @w_a(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
ml_program.global private @w_unused(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
ml_program.global private @w_b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
func.func @init() -> tensor<4xf32> {
  %0 = ml_program.global_load_const @w_unused : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = ml_program.global_load_const @w_b : tensor<4xf32>
  %1 = ml_program.global_load_const @w_a : tensor<4xf32>
  %2 = ml_program.global_load_const @w_b : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{holds no host function @main}}
module {
}
