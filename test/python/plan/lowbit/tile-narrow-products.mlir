// RUN: tile-opt %s --tile-narrow-products | FileCheck %s --check-prefix=BF16
// RUN: tile-opt %s --tile-narrow-products="pairs=true" | FileCheck %s --check-prefix=PAIRS
// RUN: tile-opt %s --tile-narrow-products="ranges=-1.0:1.55" | FileCheck %s --check-prefix=BYTES

// The activation is rounded where it is used, the weight too; sums are wide.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// BF16-LABEL: @main
// BF16: arith.truncf {{.*}} : f32 to bf16
// BF16: linalg.generic {{.*}}"reduction"]}
// BF16-SAME: {{^}} ins(%{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<64x32xbf16>)
// BF16-SAME: {{^}} outs(%{{.*}} : tensor<8x32xf32>)

// 2.55 / 255 is the scale, 100 the zero point; each column of the weight has a scale of its own.
// BYTES-LABEL: @main
// BYTES: math.roundeven
// BYTES: arith.maximumf
// BYTES: linalg.generic {{.*}}"reduction"]}
// BYTES-SAME: {{^}} ins(%{{.*}}, %{{.*}} : tensor<8x64xi8>, tensor<64x32xi8>) outs(%{{.*}} : tensor<8x32xi32>)
// BYTES: arith.sitofp {{.*}} : i32 to f32
ml_program.global private @w(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// Two activations are rounded where matrix units multiply them.

// BF16-LABEL: @pair
// BF16-NOT: truncf
// BYTES-LABEL: @pair
// PAIRS-LABEL: @pair
// PAIRS-COUNT-2: arith.truncf %{{.*}} : f32 to bf16
// PAIRS: linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<64x32xbf16>)
func.func @pair(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
