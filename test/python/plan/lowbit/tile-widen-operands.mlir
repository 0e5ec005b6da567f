// RUN: tile-opt %s --tile-widen-operands | FileCheck %s
// RUN: tile-opt %s --tile-widen-operands="keep=bf16,i8" | FileCheck %s --check-prefix=KEEP

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// Both operands are used often, the weight too: it is widened at compile time.

// CHECK-LABEL: @rows
// CHECK-DAG: %[[W:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64x32xf16>) outs(%{{.*}} : tensor<64x32xf32>)
// CHECK-DAG: %[[X:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<16x64xf16>) outs(%{{.*}} : tensor<16x64xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X]], %[[W]] : tensor<16x64xf32>, tensor<64x32xf32>)
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[P]], %[[Q]] : f32
// CHECK-NEXT: arith.addf %[[O]], %[[M]] : f32
ml_program.global private @w(#ml_program.extern<tensor<64x32xf16>>) : tensor<64x32xf16>
func.func @rows(%x: tensor<16x64xf16>, %e: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xf16>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16>) outs(%f : tensor<16x32xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// One row: the weights are read as they are, half as many bytes.

// CHECK-LABEL: @row
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<1x64xf32>, tensor<64x32xf16>)
func.func @row(%x: tensor<1x64xf16>, %w: tensor<64x32xf16>, %e: tensor<1x32xf32>) -> tensor<1x32xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32xf32>) -> tensor<1x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x64xf16>, tensor<64x32xf16>) outs(%f : tensor<1x32xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

// An operand that is reshaped is widened where it is made, once for both products; sizes may be those of the run. A
// machine with instructions for the type takes it as it is.

// CHECK-LABEL: @shared
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x64xbf16>)
// CHECK: tensor.dim %[[ROUNDED]]
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[ROUNDED]] : tensor<?x64xbf16>) outs(%{{.*}} : tensor<?x64xf32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[WIDE]] {{.*}} : tensor<?x64xf32> into tensor<?xf32>
// CHECK-COUNT-2: linalg.generic {{.*}}"reduction"]} ins(%[[FLAT]],
// KEEP-LABEL: @shared
// KEEP-NOT: xf32>) outs
// KEEP: return
#v = affine_map<(n, k) -> (k)>
#t = affine_map<(n, k) -> (k, n)>
#n = affine_map<(n, k) -> (n)>
func.func @shared(%x: tensor<?x64xbf16>, %s: tensor<?x64xbf16>, %w: tensor<?x32xbf16>, %e: tensor<32xf32>)
    -> (tensor<32xf32>, tensor<32xf32>) {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xbf16>) outs(%s : tensor<?x64xbf16>) {
  ^bb0(%p: bf16, %o: bf16):
    %q = arith.negf %p : bf16
    linalg.yield %q : bf16
  } -> tensor<?x64xbf16>
  %flat = tensor.collapse_shape %r [[0, 1]] : tensor<?x64xbf16> into tensor<?xbf16>
  %y = linalg.generic {indexing_maps = [#v, #t, #n], iterator_types = ["parallel", "reduction"]}
      ins(%flat, %w : tensor<?xbf16>, tensor<?x32xbf16>) outs(%e : tensor<32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  %z = linalg.generic {indexing_maps = [#v, #t, #n], iterator_types = ["parallel", "reduction"]}
      ins(%flat, %w : tensor<?xbf16>, tensor<?x32xbf16>) outs(%y : tensor<32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %y, %z : tensor<32xf32>, tensor<32xf32>
}

// No instruction multiplies windows: their factors are widened all the same.

// KEEP-LABEL: @window
// KEEP: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<66xf32>, tensor<3x32xf32>)
#image = affine_map<(n, m, k) -> (n + k)>
#taps = affine_map<(n, m, k) -> (k, m)>
#out = affine_map<(n, m, k) -> (n, m)>
func.func @window(%x: tensor<66xbf16>, %w: tensor<3x32xbf16>, %e: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %y = linalg.generic {indexing_maps = [#image, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<66xbf16>, tensor<3x32xbf16>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}
