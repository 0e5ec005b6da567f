// RUN: tile-opt %s --tile-allow-tf32 | FileCheck-22 %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
#id = affine_map<(m, n) -> (m, n)>

// Each product of two f32, with weights or without.
// CHECK-LABEL: func.func @main
// CHECK: attrs = {tile.tf32}
// CHECK: arith.mulf
// A sum of single numbers is no product.
// CHECK-NOT: tile.tf32
// CHECK: return
func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %s: tensor<8x32xf32>, %r: tensor<8xf32>,
                %h: tensor<8x64xf16>, %v: tensor<64x32xf16>) -> (tensor<8x32xf32>, tensor<8xf32>, tensor<8x32xf32>) {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%s : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %z = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%r : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  // Operands that are narrow already stay what they are.
  %n = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %v : tensor<8x64xf16>, tensor<64x32xf16>) outs(%s : tensor<8x32xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %g : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y, %z, %n : tensor<8x32xf32>, tensor<8xf32>, tensor<8x32xf32>
}
