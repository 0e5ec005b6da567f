// RUN: tile-opt %s --tile-read-packed=device=nvidia-h200 --split-input-file | FileCheck-22 %s

// Bytes with a zero point and a scale of each column are dequantized in the product with a vector.

#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> (j)>
#a = affine_map<(n, k) -> (k)>
#b = affine_map<(n, k) -> (k, n)>
#c = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @vector
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<4096xf32>, tensor<4096x4096xi8>, tensor<4096xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[B:.*]]: i8, %[[S:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT: %[[U:.*]] = arith.sitofp %[[B]] : i8 to f32
// CHECK-NEXT: %[[V:.*]] = arith.mulf %[[U]], %[[S]] : f32
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %[[V]] : f32
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[O]], %[[M]] : f32
// CHECK-NEXT: linalg.yield %[[T]]
ml_program.global private @w(#ml_program.extern<tensor<4096x4096xi8>>) : tensor<4096x4096xi8>
ml_program.global private @s(#ml_program.extern<tensor<4096xf32>>) : tensor<4096xf32>
func.func @vector(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %w = ml_program.global_load_const @w : tensor<4096x4096xi8>
  %s = ml_program.global_load_const @s : tensor<4096xf32>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<4096x4096xf32>
  %g = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<4096x4096xi8>, tensor<4096xf32>) outs(%d : tensor<4096x4096xf32>) {
  ^bb0(%p: i8, %q: f32, %o: f32):
    %u = arith.sitofp %p : i8 to f32
    %v = arith.mulf %u, %q : f32
    linalg.yield %v : f32
  } -> tensor<4096x4096xf32>
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%x, %g : tensor<4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// -----

// Functions are computed once, at compile time.

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(n, k) -> (k)>
#b = affine_map<(n, k) -> (k, n)>
#c = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @wide
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[G]] : tensor<512xf32>, tensor<512x512xf32>)
ml_program.global private @w(#ml_program.extern<tensor<512x512xf16>>) : tensor<512x512xf16>
func.func @wide(%x: tensor<512xf32>) -> tensor<512xf32> {
  %w = ml_program.global_load_const @w : tensor<512x512xf16>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<512x512xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<512x512xf16>) outs(%d : tensor<512x512xf32>) {
  ^bb0(%p: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = math.exp %u : f32
    linalg.yield %v : f32
  } -> tensor<512x512xf32>
  %e = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%x, %g : tensor<512xf32>, tensor<512x512xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}
