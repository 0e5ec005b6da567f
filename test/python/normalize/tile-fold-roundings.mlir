// RUN: tile-opt %s --tile-fold-roundings --split-input-file | FileCheck-22 %s

// A sum is no element: its rounding stays. So does that of a maximum that starts from a number which is none of them.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#id = affine_map<(i) -> (i)>
// CHECK-LABEL: @others
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK: arith.maximumf
// CHECK: arith.truncf
func.func @others(%x: tensor<4x8xbf16>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %third = arith.constant 0.333333 : f32
  %e = tensor.empty() : tensor<4xf32>
  %g = tensor.empty() : tensor<4xbf16>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %w : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%g : tensor<4xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%r : tensor<4xbf16>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %t = arith.extf %a : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %h = linalg.fill ins(%third : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%h : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %w : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%m : tensor<4xf32>) outs(%g : tensor<4xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4xbf16>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%n : tensor<4xbf16>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %t = arith.extf %a : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// The lowest finite number of the narrow type is one of its numbers, too.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#id = affine_map<(i) -> (i)>
// CHECK-LABEL: @lowest
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"]}
// CHECK-NOT: arith.truncf
// CHECK: linalg.generic {{.*}}ins(%{{.*}}, %[[M]] : tensor<4x8xbf16>, tensor<4xf32>)
func.func @lowest(%x: tensor<4x8xbf16>) -> tensor<4x8xf32> {
  %low = arith.constant 0xFF7F0000 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %w : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %g = tensor.empty() : tensor<4xbf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%m : tensor<4xf32>) outs(%g : tensor<4xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4xbf16>
  %h = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<4x8xbf16>, tensor<4xbf16>) outs(%h : tensor<4x8xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %v = arith.extf %a : bf16 to f32
    %w = arith.extf %b : bf16 to f32
    %d = arith.subf %v, %w : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
