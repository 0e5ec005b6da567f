// RUN: tile-opt %s '--tile-set-target=target=cpu:znver5' --tile-lower-sparse 2>&1 | FileCheck %s
// RUN: tile-opt %s '--tile-set-target=target=cpu:x86-64-v3' --tile-lower-sparse 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PLAIN

// Where there are instructions for bf16 that panels do not use, the user is told.

// CHECK: remark: bf16 is widened and multiplied as f32; dense products of it have faster instructions here
// PLAIN-NOT: remark
// PLAIN: tile.launch @sparse_right_64x32

#w = #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [1, 32]>>
ml_program.global private @w(#ml_program.extern<tensor<64x32xbf16>>) : tensor<64x32xbf16>
func.func @main(%x: tensor<48x64xbf16>, %c: tensor<48x32xf32>) -> tensor<48x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xbf16>
  %p = sparse_tile.pack %w : tensor<64x32xbf16> to tensor<64x32xbf16, #w>
  %y = sparse_tile.matmul %x, %p, %c {kernel = "panels"}
      : tensor<48x64xbf16>, tensor<64x32xbf16, #w>, tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}
