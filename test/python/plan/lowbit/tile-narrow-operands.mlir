// RUN: tile-opt %s --tile-narrow-operands --split-input-file | FileCheck-22 %s

// A convolution whose image is widened and has a border, and whose filters are reordered and scaled for each channel
// that they make: units multiply what memory has, and the sums are scaled.

#id = affine_map<(i, j, c) -> (i, j, c)>
#image = affine_map<(i, j, o, p, q, c) -> (i + p, j + q, c)>
#filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>
#stored = affine_map<(p, q, c, o) -> (o, c, p, q)>
#channel = affine_map<(p, q, c, o) -> (o)>
#same = affine_map<(p, q, c, o) -> (p, q, c, o)>

// CHECK-LABEL: @convolution
// CHECK-SAME: (%[[X:.*]]: tensor<14x14x32xf16>, %[[W:.*]]: tensor<8x32x3x3xf16>, %[[S:.*]]: tensor<8xf32>)
// CHECK: %[[P:.*]] = tensor.pad %[[X]] low[1, 1, 0] high[1, 1, 0] {
// CHECK: } {tile.implicit_padding} : tensor<14x14x32xf16> to tensor<16x16x32xf16>
// CHECK: %[[NARROW:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<8x32x3x3xf16>) outs(%{{.*}} : tensor<3x3x32x8xf16>)
// CHECK-NOT: tensor<14x14x32xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[NARROW]] : tensor<16x16x32xf16>, tensor<3x3x32x8xf16>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f16, %[[B:.*]]: f16, %{{.*}}: f32):
// CHECK-DAG: %[[U:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-DAG: %[[V:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK: arith.mulf %[[U]], %[[V]] : f32
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[S]] : tensor<14x14x8xf32>, tensor<8xf32>)
// CHECK: arith.mulf
// CHECK: return %[[Z]]
func.func @convolution(%x: tensor<14x14x32xf16>, %w: tensor<8x32x3x3xf16>, %s: tensor<8xf32>) -> tensor<14x14x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<14x14x32xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<14x14x32xf16>) outs(%e : tensor<14x14x32xf32>) {
  ^bb0(%a: f16, %o: f32):
    %u = arith.extf %a : f16 to f32
    linalg.yield %u : f32
  } -> tensor<14x14x32xf32>
  %p = tensor.pad %wide low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } {tile.implicit_padding} : tensor<14x14x32xf32> to tensor<16x16x32xf32>
  %e1 = tensor.empty() : tensor<8x32x3x3xf32>
  %w1 = linalg.generic {indexing_maps = [#same, #same],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w : tensor<8x32x3x3xf16>) outs(%e1 : tensor<8x32x3x3xf32>) {
  ^bb0(%a: f16, %o: f32):
    %u = arith.extf %a : f16 to f32
    linalg.yield %u : f32
  } -> tensor<8x32x3x3xf32>
  %e2 = tensor.empty() : tensor<3x3x32x8xf32>
  %w2 = linalg.generic {indexing_maps = [#stored, #channel, #same],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w1, %s : tensor<8x32x3x3xf32>, tensor<8xf32>) outs(%e2 : tensor<3x3x32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<3x3x32x8xf32>
  %d = tensor.empty() : tensor<14x14x8xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<14x14x8xf32>) -> tensor<14x14x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w2 : tensor<16x16x32xf32>, tensor<3x3x32x8xf32>) outs(%g : tensor<14x14x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<14x14x8xf32>
  return %y : tensor<14x14x8xf32>
}

// -----

// Groups of scaled channels; windows in steps over an image without a border end where the image ends; zeros that
// stand in memory are narrow, too.

#image = affine_map<(i, g, o, c) -> (i * 2, g, c)>
#filter = affine_map<(i, g, o, c) -> (g, c, o)>
#result = affine_map<(i, g, o, c) -> (i, g, o)>
#same = affine_map<(c, o) -> (c, o)>
#channel = affine_map<(c, o) -> (c)>

// CHECK-LABEL: @groups
// CHECK-SAME: (%[[X:.*]]: tensor<13x32xbf16>, %[[W:.*]]: tensor<32x6xbf16>, %[[S:.*]]: tensor<4xf32>
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<15x32xbf16>
// CHECK: %[[T:.*]] = tensor.extract_slice %[[Z]][2, 0] [13, 32] [1, 1]
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<13x32xbf16>) outs(%[[T]] : tensor<13x32xbf16>)
// CHECK: %[[I:.*]] = tensor.insert_slice %[[C]] into %[[Z]]
// CHECK: %[[R:.*]] = tensor.expand_shape %[[I]] {{.*}} into tensor<15x4x8xbf16>
// CHECK: %[[P:.*]] = tensor.pad %[[R]] low[0, 0, 0] high[1, 0, 0] {
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<16x4x8xbf16>, tensor<4x8x6xbf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[S]] : tensor<8x4x6xf32>, tensor<4xf32>)
func.func @groups(%x: tensor<13x32xbf16>, %w: tensor<32x6xbf16>, %s: tensor<4xf32>) -> tensor<8x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<15x32xf32>) -> tensor<15x32xf32>
  %e0 = tensor.empty() : tensor<13x32xf32>
  %wide = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<13x32xbf16>) outs(%e0 : tensor<13x32xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %u = arith.extf %a : bf16 to f32
    linalg.yield %u : f32
  } -> tensor<13x32xf32>
  %t = tensor.extract_slice %f[2, 0] [13, 32] [1, 1] : tensor<15x32xf32> to tensor<13x32xf32>
  %k = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<13x32xf32>) outs(%t : tensor<13x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<13x32xf32>
  %p = tensor.insert_slice %k into %f[2, 0] [13, 32] [1, 1] : tensor<13x32xf32> into tensor<15x32xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [15, 4, 8] : tensor<15x32xf32> into tensor<15x4x8xf32>
  %v = tensor.expand_shape %w [[0, 1], [2]] output_shape [4, 8, 6] : tensor<32x6xbf16> into tensor<4x8x6xbf16>
  %e1 = tensor.empty() : tensor<4x8x6xf32>
  %w1 = linalg.generic {indexing_maps = [affine_map<(g, c, o) -> (g, c, o)>, affine_map<(g, c, o) -> (g)>,
      affine_map<(g, c, o) -> (g, c, o)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v, %s : tensor<4x8x6xbf16>, tensor<4xf32>) outs(%e1 : tensor<4x8x6xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %u = arith.extf %a : bf16 to f32
    %m = arith.mulf %u, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x8x6xf32>
  %d = tensor.empty() : tensor<8x4x6xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%r, %w1 : tensor<15x4x8xf32>, tensor<4x8x6xf32>) outs(%g : tensor<8x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %o, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x4x6xf32>
  return %y : tensor<8x4x6xf32>
}

// -----

// One operand is f32: both stay. So they do where the scale differs in a sum, or where the other operand has another
// narrow type.

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: @stays
// CHECK-COUNT-3: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<64x32xf32>)
func.func @stays(%x: tensor<8x64xf16>, %w: tensor<64x32xf32>, %v: tensor<64x32xf16>, %u: tensor<64x32xbf16>,
                 %s: tensor<64xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<8x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf16>) outs(%d : tensor<8x64xf32>) {
  ^bb0(%p: f16, %o: f32):
    %l = arith.extf %p : f16 to f32
    linalg.yield %l : f32
  } -> tensor<8x64xf32>
  %d1 = tensor.empty() : tensor<64x32xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %s : tensor<64x32xf16>, tensor<64xf32>) outs(%d1 : tensor<64x32xf32>) {
  ^bb0(%p: f16, %q: f32, %o: f32):
    %l = arith.extf %p : f16 to f32
    %m = arith.mulf %l, %q : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %other = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u : tensor<64x32xbf16>) outs(%d1 : tensor<64x32xf32>) {
  ^bb0(%p: bf16, %o: f32):
    %l = arith.extf %p : bf16 to f32
    linalg.yield %l : f32
  } -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %y1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %scaled : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %y2 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %other : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y, %y1, %y2 : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
}

// -----

// Known numbers that all have the narrow type are rounded at compile time.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @known
// CHECK-DAG: %[[EXACT:.*]] = arith.constant dense<{{.*}}> : tensor<2x2xf32>
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<8x2xf16>, tensor<2x2xf16>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<8x2xf32>, tensor<2x2xf32>)
func.func @known(%x: tensor<8x2xf16>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 0.5], [-3.25, 2048.0]]> : tensor<2x2xf32>
  %v = arith.constant dense<[[1.0, 0.1], [-3.25, 2048.0]]> : tensor<2x2xf32>
  %d = tensor.empty() : tensor<8x2xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x2xf16>) outs(%d : tensor<8x2xf32>) {
  ^bb0(%p: f16, %o: f32):
    %l = arith.extf %p : f16 to f32
    linalg.yield %l : f32
  } -> tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %w : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x2xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %v : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x2xf32>
  return %y, %z : tensor<8x2xf32>, tensor<8x2xf32>
}
