// RUN: tile-opt %s --tile-carry-formats --split-input-file | FileCheck %s

// Codes are reshaped, and rounded to what they are.

// CHECK-LABEL: @again
// CHECK: %[[D:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1]] : tensor<4x6xi8> into tensor<24xi8>
// CHECK-NOT: sparse_tile.quantize
// CHECK: sparse_tile.assemble %[[D]]
#q = #sparse_tile.tesa<dense : format<i8, scales = f32>>
func.func @again(%c: tensor<4x6xi8>) -> tensor<24xi8> {
  %s = arith.constant dense<0.5> : tensor<1x1xf32>
  %t = arith.constant dense<0.5> : tensor<1xf32>
  %u = tensor.expand_shape %t [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
  %a = sparse_tile.assemble %c, %u : tensor<4x6xi8>, tensor<1x1xf32> to tensor<4x6xf32, #q>
  %x = sparse_tile.dequantize %a : tensor<4x6xf32, #q> to tensor<4x6xf32>
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %v = tensor.collapse_shape %u [[0, 1]] : tensor<1x1xf32> into tensor<1xf32>
  %b = sparse_tile.quantize %y scales %v : tensor<24xf32>, tensor<1xf32> to tensor<24xf32, #q>
  %d, %w = sparse_tile.parts %b : tensor<24xf32, #q> to tensor<24xi8>, tensor<1xf32>
  return %d : tensor<24xi8>
}

// Another scale: the codes are reshaped, and rounded anew.

// CHECK-LABEL: @anew
// CHECK: tensor.collapse_shape %arg0 {{.*}} : tensor<4x6xi8> into tensor<24xi8>
// CHECK: sparse_tile.dequantize
// CHECK: sparse_tile.quantize
func.func @anew(%c: tensor<4x6xi8>, %t: tensor<1xf32>) -> tensor<24xi8> {
  %s = arith.constant dense<0.5> : tensor<1x1xf32>
  %a = sparse_tile.assemble %c, %s : tensor<4x6xi8>, tensor<1x1xf32> to tensor<4x6xf32, #q>
  %x = sparse_tile.dequantize %a : tensor<4x6xf32, #q> to tensor<4x6xf32>
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %b = sparse_tile.quantize %y scales %t : tensor<24xf32>, tensor<1xf32> to tensor<24xf32, #q>
  %d, %w = sparse_tile.parts %b : tensor<24xf32, #q> to tensor<24xi8>, tensor<1xf32>
  return %d : tensor<24xi8>
}

// -----

// Rows of a product: scales of rows become those of blocks of a longer one, and are cut and transposed with the codes.
// Who wants elements gets them as they were.

// CHECK: #[[$BLOCKS:.*]] = #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, 8]>>
// CHECK-LABEL: @product
// CHECK-DAG: tensor.collapse_shape %arg0 {{.*}} : tensor<4x2x8xi8> into tensor<4x16xi8>
// CHECK-DAG: tensor.collapse_shape %arg1 {{.*}} : tensor<4x2x1xf32> into tensor<4x2xf32>
// CHECK: %[[X:.*]] = sparse_tile.dequantize %{{.*}} : tensor<4x16xf32, #[[$BLOCKS]]> to tensor<4x16xf32>
// CHECK: linalg.matmul ins(%[[X]]
// CHECK-LABEL: @elements
// CHECK: sparse_tile.dequantize
// CHECK: tensor.collapse_shape %{{.*}} : tensor<4x2x8xf32> into tensor<4x16xf32>
#rows = #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, 1, ?]>>
func.func @product(%c: tensor<4x2x8xi8>, %s: tensor<4x2x1xf32>, %w: tensor<16x3xf32>, %f: tensor<4x3xf32>)
    -> tensor<4x3xf32> {
  %a = sparse_tile.assemble %c, %s : tensor<4x2x8xi8>, tensor<4x2x1xf32> to tensor<4x2x8xf32, #rows>
  %x = sparse_tile.dequantize %a : tensor<4x2x8xf32, #rows> to tensor<4x2x8xf32>
  %y = tensor.collapse_shape %x [[0], [1, 2]] : tensor<4x2x8xf32> into tensor<4x16xf32>
  %m = linalg.matmul ins(%y, %w : tensor<4x16xf32>, tensor<16x3xf32>) outs(%f : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %m : tensor<4x3xf32>
}
func.func @elements(%c: tensor<4x2x8xi8>, %s: tensor<4x2x1xf32>) -> tensor<4x16xf32> {
  %a = sparse_tile.assemble %c, %s : tensor<4x2x8xi8>, tensor<4x2x1xf32> to tensor<4x2x8xf32, #rows>
  %x = sparse_tile.dequantize %a : tensor<4x2x8xf32, #rows> to tensor<4x2x8xf32>
  %y = tensor.collapse_shape %x [[0], [1, 2]] : tensor<4x2x8xf32> into tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
