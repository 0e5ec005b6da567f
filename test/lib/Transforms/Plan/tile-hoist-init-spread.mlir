// RUN: tile-opt %s --tile-hoist-init --split-input-file --verify-diagnostics | FileCheck-22 %s

#row = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>

ml_program.global private @b(#ml_program.extern<tensor<8x512xf32>>) : tensor<8x512xf32>

// Eight rows of 512, each spread over 64: a list of them would take 1 MiB, no more than that is kept.
// CHECK-LABEL: func.func private @init() -> (tensor<8x64x512xf32>
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = ml_program.global_load_const @b : tensor<8x512xf32>
  %e = tensor.empty() : tensor<64x512xf32>
  %r = scf.for %n = %c0 to %c8 step %c1 iter_args(%s = %x) -> (tensor<64x512xf32>) {
    %row = tensor.extract_slice %b[%n, 0] [1, 512] [1, 1] : tensor<8x512xf32> to tensor<512xf32>
    %wide = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<512xf32>) outs(%e : tensor<64x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<64x512xf32>
    %next = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%s, %wide : tensor<64x512xf32>, tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %0 = arith.addf %a, %c : f32
      linalg.yield %0 : f32
    } -> tensor<64x512xf32>
    scf.yield %next : tensor<64x512xf32>
  }
  return %r : tensor<64x512xf32>
}

// -----

#row = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>

ml_program.global private @b(#ml_program.extern<tensor<8x512xf32>>) : tensor<8x512xf32>

// Over 65, it stays in the loop: who adds it reads the row.
// CHECK-NOT: @init
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-COUNT-2: linalg.generic
func.func @main(%x: tensor<65x512xf32>) -> tensor<65x512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = ml_program.global_load_const @b : tensor<8x512xf32>
  %e = tensor.empty() : tensor<65x512xf32>
  %r = scf.for %n = %c0 to %c8 step %c1 iter_args(%s = %x) -> (tensor<65x512xf32>) {
    %row = tensor.extract_slice %b[%n, 0] [1, 512] [1, 1] : tensor<8x512xf32> to tensor<512xf32>
    // expected-remark@+1 {{weights that are only spread stay with the loop: a list of them for all its iterations}}
    %wide = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<512xf32>) outs(%e : tensor<65x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<65x512xf32>
    %next = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%s, %wide : tensor<65x512xf32>, tensor<65x512xf32>) outs(%e : tensor<65x512xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %0 = arith.addf %a, %c : f32
      linalg.yield %0 : f32
    } -> tensor<65x512xf32>
    scf.yield %next : tensor<65x512xf32>
  }
  return %r : tensor<65x512xf32>
}
