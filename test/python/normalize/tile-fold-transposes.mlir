// RUN: tile-opt %s --tile-fold-transposes --split-input-file | FileCheck-22 %s

// A product that only a transposing copy reads writes the transposed order itself.

#q = affine_map<(h, m, n, k) -> (h, m, k)>
#v = affine_map<(h, m, n, k) -> (h, k, n)>
#o = affine_map<(h, m, n, k) -> (h, m, n)>
#from = affine_map<(m, h, n) -> (h, m, n)>
#id = affine_map<(m, h, n) -> (m, h, n)>

// CHECK: #[[$O:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2)>
// CHECK-LABEL: @producer
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8x2x16xf32>
// CHECK: %[[F:.*]] = linalg.fill {{.*}} outs(%[[E]]
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[$O]]]{{.*}} outs(%[[F]] : tensor<8x2x16xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]
func.func @producer(%q: tensor<2x8x4xf32>, %v: tensor<2x4x16xf32>) -> tensor<8x2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %p = linalg.generic {indexing_maps = [#q, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %v : tensor<2x8x4xf32>, tensor<2x4x16xf32>) outs(%f : tensor<2x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x8x16xf32>
  %t = tensor.empty() : tensor<8x2x16xf32>
  %r = linalg.generic {indexing_maps = [#from, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<2x8x16xf32>) outs(%t : tensor<8x2x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x2x16xf32>
  return %r : tensor<8x2x16xf32>
}

// -----

// The input of the function cannot be written transposed: its reader reads it so.

#swap = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK: #[[$SWAP:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: @consumer
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$SWAP]], #{{.*}}]{{.*}} ins(%[[X]] : tensor<4x8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.exp
// CHECK-NOT: linalg.generic
func.func @consumer(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// A convolution keeps the layout that it was given: the copy stays.

#last = affine_map<(h, c) -> (c, h)>
#id = affine_map<(h, c) -> (h, c)>
#x = affine_map<(o, c, k, i) -> (o + k, i)>
#w = affine_map<(o, c, k, i) -> (k, i, c)>
#y = affine_map<(o, c, k, i) -> (o, c)>

// CHECK-LABEL: @convolution
// CHECK-COUNT-2: linalg.generic
func.func @convolution(%x: tensor<3x8xf32>, %w: tensor<3x3x4xf32>, %y: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<8x3xf32>
  %t = linalg.generic {indexing_maps = [#last, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x3xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%t, %w : tensor<8x3xf32>, tensor<3x3x4xf32>) outs(%y : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// What a loop reads in every step is copied once, before it.

#swap = affine_map<(k, n) -> (n, k)>
#id = affine_map<(k, n) -> (k, n)>
#x = affine_map<(n, k) -> (k)>
#w = affine_map<(n, k) -> (k, n)>
#y = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @loop
// CHECK: %[[T:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<8x8xf32>)
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] : tensor<8xf32>, tensor<8x8xf32>)
func.func @loop(%w: tensor<8x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %y) -> tensor<8xf32> {
    %n = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%n : tensor<8xf32>) -> tensor<8xf32>
    %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
        ins(%s, %t : tensor<8xf32>, tensor<8x8xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %acc, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    scf.yield %p : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Blocks of channels become places, and channels come last again: one transposing copy, through what lies between.

#from = affine_map<(c, h, i, w, j) -> (h, w, c, i, j)>
#five = affine_map<(c, h, i, w, j) -> (c, h, i, w, j)>
#id = affine_map<(h, w, c) -> (h, w, c)>
#bias = affine_map<(c, h, w) -> (c)>
#last = affine_map<(h, w, c) -> (c, h, w)>

// CHECK-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4, d1, d3)>
// CHECK-DAG: #[[$FIVE:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$BIAS:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-LABEL: @blocks
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$FROM]], #[[$FIVE]]]
// CHECK-SAME: outs(%{{.*}} : tensor<4x2x6x2x8xf32>)
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[P]] {{\[}}[0, 1], [2, 3], [4]] : tensor<4x2x6x2x8xf32>
// CHECK-SAME: {{^}} into tensor<8x12x8xf32>
// CHECK: %[[B:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$BIAS]], #[[$ID]]]
// CHECK-SAME: ins(%[[C]], %{{.*}} outs(%{{.*}} : tensor<8x12x8xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ID]]]
// CHECK-SAME: ins(%[[B]] : tensor<8x12x8xf32>) outs(%{{.*}} : tensor<8x12x8xf32>)
func.func @blocks(%x: tensor<4x6x8x2x2xf32>, %b: tensor<8xf32>, %whole: tensor<8x12x16xf32>) -> tensor<8x12x16xf32> {
  %e = tensor.empty() : tensor<8x4x2x6x2xf32>
  %p = linalg.generic {indexing_maps = [#from, #five],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8x2x2xf32>) outs(%e : tensor<8x4x2x6x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x4x2x6x2xf32>
  %c = tensor.collapse_shape %p [[0], [1, 2], [3, 4]] : tensor<8x4x2x6x2xf32> into tensor<8x8x12xf32>
  %f = tensor.empty() : tensor<8x8x12xf32>
  %s = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %b : tensor<8x8x12xf32>, tensor<8xf32>) outs(%f : tensor<8x8x12xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %t = arith.addf %a, %d : f32
    linalg.yield %t : f32
  } -> tensor<8x8x12xf32>
  %place = tensor.extract_slice %whole[0, 0, 8] [8, 12, 8] [1, 1, 1] : tensor<8x12x16xf32> to tensor<8x12x8xf32>
  %l = linalg.generic {indexing_maps = [#last, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<8x8x12xf32>) outs(%place : tensor<8x12x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x12x8xf32>
  %r = tensor.insert_slice %l into %whole[0, 0, 8] [8, 12, 8] [1, 1, 1] : tensor<8x12x8xf32> into tensor<8x12x16xf32>
  return %r : tensor<8x12x16xf32>
}

// -----

// Two transpositions that undo each other around a collapse: neither is left.

#swap = affine_map<(c, h, w) -> (h, w, c)>
#three = affine_map<(c, h, w) -> (c, h, w)>
#two = affine_map<(p, c) -> (c, p)>
#plain = affine_map<(p, c) -> (p, c)>

// CHECK-LABEL: @undone
// CHECK-SAME: %[[X:.*]]: tensor<4x6x8xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]]
// CHECK: return %[[C]]
func.func @undone(%x: tensor<4x6x8xf32>) -> tensor<24x8xf32> {
  %e = tensor.empty() : tensor<8x4x6xf32>
  %p = linalg.generic {indexing_maps = [#swap, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%e : tensor<8x4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x4x6xf32>
  %c = tensor.collapse_shape %p [[0], [1, 2]] : tensor<8x4x6xf32> into tensor<8x24xf32>
  %f = tensor.empty() : tensor<24x8xf32>
  %t = linalg.generic {indexing_maps = [#two, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<8x24xf32>) outs(%f : tensor<24x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<24x8xf32>
  return %t : tensor<24x8xf32>
}

// -----

// A convolution reads channels side by side. Written by places it would gather them: the transposition stays, and is
// the last step of its kernel.

#image = affine_map<(h, w, f, i, j, c) -> (h + i, w + j, c)>
#weights = affine_map<(h, w, f, i, j, c) -> (i, j, c, f)>
#places = affine_map<(h, w, f, i, j, c) -> (h, w, f)>
#by_place = affine_map<(f, h, w) -> (h, w, f)>
#planes = affine_map<(f, h, w) -> (f, h, w)>

// CHECK-LABEL: @convolution
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"{{.*}} outs({{.*}} : tensor<8x8x16xf32>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]]
// CHECK: return %[[T]]
func.func @convolution(%x: tensor<10x10x4xf32>, %w: tensor<3x3x4x16xf32>) -> tensor<16x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %s = linalg.generic {indexing_maps = [#image, #weights, #places],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<10x10x4xf32>, tensor<3x3x4x16xf32>) outs(%i : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x8x16xf32>
  %f = tensor.empty() : tensor<16x8x8xf32>
  %t = linalg.generic {indexing_maps = [#by_place, #planes], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<8x8x16xf32>) outs(%f : tensor<16x8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<16x8x8xf32>
  return %t : tensor<16x8x8xf32>
}
