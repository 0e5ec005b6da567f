// RUN: tile-opt %s --tile-set-target=target=nvidia-h200 --tile-im2col-rows --split-input-file | FileCheck-22 %s

// The 7x7 convolution of a picture whose channels come first: the copy that turns them writes the taps of each place
// side by side, eight for seven, with zeros for the eighth; the border above and below stays no memory.

#image = affine_map<(n, i, j, o, p, q, c) -> (n, i * 2 + p, j * 2 + q, c)>
#filter = affine_map<(n, i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(n, i, j, o, p, q, c) -> (n, i, j, o)>
#first = affine_map<(n, i, j, c) -> (n, c, i, j)>
#last = affine_map<(n, i, j, c) -> (n, i, j, c)>

// CHECK: #[[$TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d1, d2 * 2 + d3)>
// CHECK: #[[$ROWS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2, d5)>
// CHECK: #[[$FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d3, d5)>
// CHECK-LABEL: @stem
// CHECK: %[[X:.*]] = tensor.pad %arg0 low[0, 0, 0, 3] high
// CHECK: %[[G:.*]] = linalg.generic {indexing_maps = [#[[$TAPS]], {{.*}} ins(%[[X]] : tensor<32x3x224x{{.*}}xf16>)
// CHECK: linalg.index 3
// CHECK: arith.select
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[G]]
// CHECK: %[[P:.*]] = tensor.pad %[[J]] low[0, 3, 0, 0] high[0, 2, 0, 0]
// CHECK: %[[Z:.*]] = tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 1, 0]
// CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%[[Z]] :
// CHECK: %[[W:.*]] = tensor.collapse_shape %[[F]]
// CHECK: linalg.generic {indexing_maps = [#[[$ROWS]], #[[$FILTER]], {{.*}} ins(%[[P]], %[[W]]
ml_program.global private @w(#ml_program.extern<tensor<7x7x3x64xf16>>) : tensor<7x7x3x64xf16>
func.func @stem(%x: tensor<32x3x224x224xf16>) -> tensor<32x112x112x64xf32> {
  %w = ml_program.global_load_const @w : tensor<7x7x3x64xf16>
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %d = tensor.empty() : tensor<32x224x224x3xf16>
  %t = linalg.generic {indexing_maps = [#first, #last],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<32x3x224x224xf16>) outs(%d : tensor<32x224x224x3xf16>) {
  ^bb0(%a: f16, %o: f16):
    linalg.yield %a : f16
  } -> tensor<32x224x224x3xf16>
  %b = tensor.pad %t low[0, 3, 3, 0] high[0, 2, 2, 0] {
  ^bb0(%h: index, %i: index, %j: index, %k: index):
    tensor.yield %none : f16
  } {tile.implicit_padding} : tensor<32x224x224x3xf16> to tensor<32x229x229x3xf16>
  %e = tensor.empty() : tensor<32x112x112x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x112x112x64xf32>) -> tensor<32x112x112x64xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel",
      "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%b, %w : tensor<32x229x229x3xf16>, tensor<7x7x3x64xf16>) outs(%f : tensor<32x112x112x64xf32>) {
  ^bb0(%a: f16, %g: f16, %o: f32):
    %u = arith.extf %a : f16 to f32
    %v = arith.extf %g : f16 to f32
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x112x112x64xf32>
  return %y : tensor<32x112x112x64xf32>
}

// -----

// Channels that copies move as they lie stay where they are.

#image = affine_map<(i, j, o, p, q, c) -> (i + p, j + q, c)>
#filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>

// CHECK-LABEL: @many
// CHECK-NOT: tensor.collapse_shape
ml_program.global private @w(#ml_program.extern<tensor<3x3x64x64xf16>>) : tensor<3x3x64x64xf16>
func.func @many(%x: tensor<58x58x64xf16>) -> tensor<56x56x64xf32> {
  %w = ml_program.global_load_const @w : tensor<3x3x64x64xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<56x56x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<56x56x64xf32>) -> tensor<56x56x64xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel",
      "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<58x58x64xf16>, tensor<3x3x64x64xf16>) outs(%f : tensor<56x56x64xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %u = arith.extf %a : f16 to f32
    %v = arith.extf %b : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<56x56x64xf32>
  return %y : tensor<56x56x64xf32>
}
