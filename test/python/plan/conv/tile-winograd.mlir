// RUN: tile-opt %s --tile-winograd --split-input-file | FileCheck-22 %s
// RUN: not tile-opt %s --tile-winograd="tiles=3" --split-input-file 2>&1 | FileCheck-22 %s --check-prefix=NONE

// NONE: tile-winograd has no tiles of 3: choose from [2, 4]

// 56 x 56 points are 28 x 28 tiles. The bias and the place in the next layer's border run over tiles, too.

// CHECK-LABEL: @even
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x4x28x28x64xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x4x64x64xf32>)
// CHECK: linalg.generic {{.*}}"parallel", "reduction"]
// CHECK-SAME: ins({{.*}} : tensor<4x4x28x28x64xf32>, tensor<4x4x64x64xf32>) outs({{.*}} : tensor<4x4x28x28x64xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<28x2x28x2x64xf32>)
// CHECK: linalg.index 3
// CHECK: arith.select
// CHECK: linalg.index 1
// CHECK: %[[PLACE:.*]] = tensor.extract_slice
// CHECK: %[[TILES:.*]] = tensor.expand_shape %[[PLACE]] {{\[\[}}0, 1], [2, 3], [4]]
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} outs(%[[TILES]] : tensor<28x2x28x2x64xf32>)
// CHECK: arith.addf
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[Y]] {{\[\[}}0, 1], [2, 3], [4]]
// CHECK: tensor.insert_slice %[[FLAT]]
#x = affine_map<(h, w, k, r, s, c) -> (h + r, w + s, c)>
#f = affine_map<(h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(h, w, k, r, s, c) -> (h, w, k)>
#id = affine_map<(h, w, k) -> (h, w, k)>
#k = affine_map<(h, w, k) -> (k)>
ml_program.global private @f(#ml_program.extern : tensor<3x3x64x64xf32>) : tensor<3x3x64x64xf32>
func.func @even(%x: tensor<58x58x64xf32>, %bias: tensor<64xf32>) -> tensor<58x58x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = ml_program.global_load_const @f : tensor<3x3x64x64xf32>
  %e = tensor.empty() : tensor<56x56x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<56x56x64xf32>) -> tensor<56x56x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #f, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : tensor<58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%i : tensor<56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<56x56x64xf32>
  %g = tensor.empty() : tensor<58x58x64xf32>
  %n = linalg.fill ins(%zero : f32) outs(%g : tensor<58x58x64xf32>) -> tensor<58x58x64xf32>
  %s = tensor.extract_slice %n[1, 1, 0] [56, 56, 64] [1, 1, 1] : tensor<58x58x64xf32> to tensor<56x56x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #k, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %bias : tensor<56x56x64xf32>, tensor<64xf32>) outs(%s : tensor<56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<56x56x64xf32>
  %r = tensor.insert_slice %z into %n[1, 1, 0] [56, 56, 64] [1, 1, 1]
      : tensor<56x56x64xf32> into tensor<58x58x64xf32>
  return %r : tensor<58x58x64xf32>
}

// -----

// 57 x 57 points are the first of 58 x 58, for which the border of zeros is one wider.

// CHECK-LABEL: @odd
// CHECK: linalg.fill {{.*}} outs({{.*}} : tensor<60x60x64xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x4x29x29x64xf32>)
// CHECK: linalg.generic {{.*}}"parallel", "reduction"]
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<29x2x29x2x64xf32>)
// CHECK: tensor.collapse_shape {{.*}} into tensor<58x58x64xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 0, 0] [57, 57, 64] [1, 1, 1]
#x = affine_map<(h, w, k, r, s, c) -> (h + r, w + s, c)>
#f = affine_map<(h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(h, w, k, r, s, c) -> (h, w, k)>
#id = affine_map<(h, w, k) -> (h, w, k)>
ml_program.global private @f(#ml_program.extern : tensor<3x3x64x64xf32>) : tensor<3x3x64x64xf32>
func.func @odd(%x: tensor<57x57x64xf32>) -> tensor<57x57x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = ml_program.global_load_const @f : tensor<3x3x64x64xf32>
  %g = tensor.empty() : tensor<59x59x64xf32>
  %n = linalg.fill ins(%zero : f32) outs(%g : tensor<59x59x64xf32>) -> tensor<59x59x64xf32>
  %s = tensor.extract_slice %n[1, 1, 0] [57, 57, 64] [1, 1, 1] : tensor<59x59x64xf32> to tensor<57x57x64xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<57x57x64xf32>) outs(%s : tensor<57x57x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<57x57x64xf32>
  %p = tensor.insert_slice %c into %n[1, 1, 0] [57, 57, 64] [1, 1, 1]
      : tensor<57x57x64xf32> into tensor<59x59x64xf32>
  %e = tensor.empty() : tensor<57x57x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<57x57x64xf32>) -> tensor<57x57x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #f, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %f : tensor<59x59x64xf32>, tensor<3x3x64x64xf32>) outs(%i : tensor<57x57x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<57x57x64xf32>
  return %y : tensor<57x57x64xf32>
}

// -----

// A step of two, and filters that are not known before: as they were.

// CHECK-LABEL: @strided
// CHECK-NOT: arith.select
// CHECK-LABEL: @given
// CHECK-NOT: arith.select
#x2 = affine_map<(h, w, k, r, s, c) -> (2 * h + r, 2 * w + s, c)>
#x = affine_map<(h, w, k, r, s, c) -> (h + r, w + s, c)>
#f = affine_map<(h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(h, w, k, r, s, c) -> (h, w, k)>
ml_program.global private @f(#ml_program.extern : tensor<3x3x64x64xf32>) : tensor<3x3x64x64xf32>
func.func @strided(%x: tensor<59x59x64xf32>) -> tensor<29x29x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = ml_program.global_load_const @f : tensor<3x3x64x64xf32>
  %e = tensor.empty() : tensor<29x29x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<29x29x64xf32>) -> tensor<29x29x64xf32>
  %y = linalg.generic {indexing_maps = [#x2, #f, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : tensor<59x59x64xf32>, tensor<3x3x64x64xf32>) outs(%i : tensor<29x29x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<29x29x64xf32>
  return %y : tensor<29x29x64xf32>
}
func.func @given(%x: tensor<58x58x64xf32>, %f: tensor<3x3x64x64xf32>) -> tensor<56x56x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<56x56x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<56x56x64xf32>) -> tensor<56x56x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #f, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : tensor<58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%i : tensor<56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<56x56x64xf32>
  return %y : tensor<56x56x64xf32>
}
