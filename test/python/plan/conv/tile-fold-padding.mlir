// RUN: tile-opt %s --tile-fold-padding --split-input-file | FileCheck-22 %s

// A border of zeros around a copied image, which windows read: they read the image.

#id = affine_map<(i, j, c) -> (i, j, c)>
#image = affine_map<(i, j, o, p, q, c) -> (i + p, j + q, c)>
#filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>

// CHECK-LABEL: @copied
// CHECK-SAME: (%[[X:.*]]: tensor<14x14x32xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK: %[[P:.*]] = tensor.pad %[[X]] low[1, 1, 0] high[1, 1, 0] {
// CHECK: tensor.yield %{{.*}} : f32
// CHECK: } {tile.implicit_padding} : tensor<14x14x32xf32> to tensor<16x16x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<16x16x32xf32>, tensor<3x3x32x8xf32>)
func.func @copied(%x: tensor<14x14x32xf32>, %w: tensor<3x3x32x8xf32>) -> tensor<14x14x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16x32xf32>) -> tensor<16x16x32xf32>
  %s = tensor.extract_slice %f[1, 1, 0] [14, 14, 32] [1, 1, 1] : tensor<16x16x32xf32> to tensor<14x14x32xf32>
  %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<14x14x32xf32>) outs(%s : tensor<14x14x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<14x14x32xf32>
  %p = tensor.insert_slice %k into %f[1, 1, 0] [14, 14, 32] [1, 1, 1] : tensor<14x14x32xf32> into tensor<16x16x32xf32>
  %d = tensor.empty() : tensor<14x14x8xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<14x14x8xf32>) -> tensor<14x14x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<16x16x32xf32>, tensor<3x3x32x8xf32>) outs(%g : tensor<14x14x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<14x14x8xf32>
  return %y : tensor<14x14x8xf32>
}

// -----

// An image that is computed into the slice gets a tensor of its own; groups of channels are seen behind the border.

#id = affine_map<(i, c) -> (i, c)>
#image = affine_map<(i, g, o, p, c) -> (2 * i + p, g, c)>
#filter = affine_map<(i, g, o, p, c) -> (p, g, c, o)>
#result = affine_map<(i, g, o, p, c) -> (i, g, o)>

// CHECK-LABEL: @computed
// CHECK: %[[E:.*]] = tensor.empty() : tensor<14x32xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} outs(%[[E]] : tensor<14x32xf32>)
// CHECK: %[[R:.*]] = tensor.expand_shape %[[N]]
// CHECK-SAME: output_shape [14, 4, 8] : tensor<14x32xf32> into tensor<14x4x8xf32>
// CHECK: %[[P:.*]] = tensor.pad %[[R]] low[2, 0, 0] high[1, 0, 0] {
// CHECK: } {tile.implicit_padding} : tensor<14x4x8xf32> to tensor<17x4x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[P]],
func.func @computed(%x: tensor<14x32xf32>, %w: tensor<3x4x8x6xf32>) -> tensor<8x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<17x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<17x32xf32>) -> tensor<17x32xf32>
  %s = tensor.extract_slice %f[2, 0] [14, 32] [1, 1] : tensor<17x32xf32> to tensor<14x32xf32>
  %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<14x32xf32>) outs(%s : tensor<14x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<14x32xf32>
  %p = tensor.insert_slice %k into %f[2, 0] [14, 32] [1, 1] : tensor<14x32xf32> into tensor<17x32xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [17, 4, 8] : tensor<17x32xf32> into tensor<17x4x8xf32>
  %d = tensor.empty() : tensor<8x4x6xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%r, %w : tensor<17x4x8xf32>, tensor<3x4x8x6xf32>) outs(%g : tensor<8x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4x6xf32>
  return %y : tensor<8x4x6xf32>
}

// -----

// What is returned, or read by more than windows, has its border in memory; and so has a border of another number.

#id = affine_map<(i) -> (i)>
#window = affine_map<(i, p) -> (i + p)>
#tap = affine_map<(i, p) -> (p)>
#place = affine_map<(i, p) -> (i)>

// CHECK-LABEL: @returned
// CHECK-NOT: tensor.pad
// CHECK-COUNT-2: tensor.insert_slice
// CHECK-NOT: tensor.pad
func.func @returned(%x: tensor<14xf32>) -> (tensor<16xf32>, tensor<14xf32>, tensor<14xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %p = tensor.insert_slice %x into %f[1] [14] [1] : tensor<14xf32> into tensor<16xf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %p1 = tensor.insert_slice %x into %f1[1] [14] [1] : tensor<14xf32> into tensor<16xf32>
  %w = tensor.empty() : tensor<3xf32>
  %d = tensor.empty() : tensor<14xf32>
  %g = linalg.fill ins(%low : f32) outs(%d : tensor<14xf32>) -> tensor<14xf32>
  %y = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%p, %w : tensor<16xf32>, tensor<3xf32>) outs(%g : tensor<14xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<14xf32>
  %z = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%p1, %w : tensor<16xf32>, tensor<3xf32>) outs(%g : tensor<14xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<14xf32>
  return %p, %y, %z : tensor<16xf32>, tensor<14xf32>, tensor<14xf32>
}

// -----

// An image of a known size in a tensor whose size only a run knows: how wide the padding is, is not known.

#window = affine_map<(i, p) -> (i + p)>
#tap = affine_map<(i, p) -> (p)>
#place = affine_map<(i, p) -> (i)>

// CHECK-LABEL: @size_of_a_run
// CHECK-NOT: tensor.pad
// CHECK: tensor.insert_slice
// CHECK-NOT: tensor.pad
func.func @size_of_a_run(%x: tensor<14xf32>, %n: index) -> tensor<14xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %p = tensor.insert_slice %x into %f[1] [14] [1] : tensor<14xf32> into tensor<?xf32>
  %w = tensor.empty() : tensor<3xf32>
  %d = tensor.empty() : tensor<14xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<14xf32>) -> tensor<14xf32>
  %y = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%p, %w : tensor<?xf32>, tensor<3xf32>) outs(%g : tensor<14xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<14xf32>
  return %y : tensor<14xf32>
}
