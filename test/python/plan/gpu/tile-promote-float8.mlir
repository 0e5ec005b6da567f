// RUN: tile-opt %s --tile-promote-float8 --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-promote-float8=interval=256 --split-input-file | FileCheck-22 %s --check-prefix=MORE

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Products of two float8 of any kind; what a user has decided stays, and products of other types are none of it.

// CHECK-LABEL: func.func @main
// CHECK: attrs = {tile.promotion = 128 : i64}
// CHECK: attrs = {tile.promotion = 512 : i64}
// CHECK-NOT: tile.promotion
// CHECK: return
// MORE: attrs = {tile.promotion = 256 : i64}
func.func @main(%x: tensor<8x64xf8E4M3FN>, %w: tensor<32x64xf8E5M2>, %s: tensor<8x32xf32>, %h: tensor<8x64xf16>,
                %v: tensor<32x64xf16>) -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf8E4M3FN>, tensor<32x64xf8E5M2>) outs(%s : tensor<8x32xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E5M2, %o: f32):
    %u = arith.extf %p : f8E4M3FN to f32
    %g = arith.extf %q : f8E5M2 to f32
    %m = arith.mulf %u, %g : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf8E4M3FN>, tensor<32x64xf8E5M2>) outs(%s : tensor<8x32xf32>)
      attrs = {tile.promotion = 512 : i64} {
  ^bb0(%p: f8E4M3FN, %q: f8E5M2, %o: f32):
    %u = arith.extf %p : f8E4M3FN to f32
    %g = arith.extf %q : f8E5M2 to f32
    %m = arith.mulf %u, %g : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %n = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %v : tensor<8x64xf16>, tensor<32x64xf16>) outs(%s : tensor<8x32xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %g : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y, %z, %n : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
}
