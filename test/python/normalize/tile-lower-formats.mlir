// RUN: tile-opt %s --tile-lower-formats --split-input-file | FileCheck %s

// Codes of a row share a scale and a zero point: a generic decodes each.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: @rows
// CHECK-SAME: %[[C:.*]]: tensor<8x64xi8>, %[[S:.*]]: tensor<8x1xf32>, %[[Z:.*]]: tensor<8x1xi8>
// CHECK-NOT: sparse_tile.assemble
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ROW]], #[[$ID]]]
// CHECK-SAME: ins(%[[C]], %[[S]], %[[Z]]
// CHECK: ^bb0(%[[A:.*]]: i8, %[[T:.*]]: f32, %[[P:.*]]: i8, %{{.*}}: f16):
// CHECK: sparse_tile.decode unsigned %[[A]] zero_point %[[P]] : i8 scale %[[T]] : f32 : i8 to f16
#rows = #sparse_tile.tesa<dense : format<i8, unsigned, scales = f32, zero_points = i8, group = [1, ?]>>
func.func @rows(%c: tensor<8x64xi8>, %s: tensor<8x1xf32>, %z: tensor<8x1xi8>) -> tensor<8x64xf16> {
  %q = sparse_tile.assemble %c, %s, %z
      : tensor<8x64xi8>, tensor<8x1xf32>, tensor<8x1xi8> to tensor<8x64xf16, #rows>
  %x = sparse_tile.dequantize %q : tensor<8x64xf16, #rows> to tensor<8x64xf16>
  return %x : tensor<8x64xf16>
}

// -----

// Whole blocks are dimensions of their own; scales of ragged ones are repeated. One number is a constant.

// CHECK-DAG: #[[$BLOCK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$TIMES:.*]] = affine_map<(d0, d1) -> (d0 floordiv 5, d1)>
// CHECK-LABEL: @blocks
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [8, 4, 16]
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$BLOCK]], #{{.*}}]
// CHECK-SAME: ins(%[[SPLIT]], %{{.*}} : tensor<8x4x16xi8>, tensor<8x16xf32>)
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic {indexing_maps = [#[[$TIMES]], #{{.*}}]
// CHECK-LABEL: @whole
// CHECK: arith.constant 5.000000e-01 : f32
#blocks = #sparse_tile.tesa<dense : format<i4, scales = f32, group = [4, 1]>>
#ragged = #sparse_tile.tesa<dense : format<i4, scales = f32, group = [5, 1]>>
#whole = #sparse_tile.tesa<dense : format<f8E4M3FN, scales = f32>>
func.func @blocks(%c: tensor<32x16xi8>, %s: tensor<8x16xf32>, %t: tensor<7x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %q = sparse_tile.assemble %c, %s : tensor<32x16xi8>, tensor<8x16xf32> to tensor<32x16xf32, #blocks>
  %x = sparse_tile.dequantize %q : tensor<32x16xf32, #blocks> to tensor<32x16xf32>
  %r = sparse_tile.assemble %c, %t : tensor<32x16xi8>, tensor<7x16xf32> to tensor<32x16xf32, #ragged>
  %y = sparse_tile.dequantize %r : tensor<32x16xf32, #ragged> to tensor<32x16xf32>
  return %x, %y : tensor<32x16xf32>, tensor<32x16xf32>
}
func.func @whole(%c: tensor<?x16xf8E4M3FN>) -> tensor<?x16xf32> {
  %s = arith.constant dense<0.5> : tensor<1x1xf32>
  %q = sparse_tile.assemble %c, %s : tensor<?x16xf8E4M3FN>, tensor<1x1xf32> to tensor<?x16xf32, #whole>
  %x = sparse_tile.dequantize %q : tensor<?x16xf32, #whole> to tensor<?x16xf32>
  return %x : tensor<?x16xf32>
}

// -----

// Codes are rounded once, whoever takes them.

// CHECK-LABEL: @quantize
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: math.roundeven
// CHECK: arith.select
// CHECK: arith.select
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK-NOT: arith.divf
// CHECK: sparse_tile.decode
// CHECK-NOT: sparse_tile.quantize
#q = #sparse_tile.tesa<dense : format<i4, scales = f32>>
func.func @quantize(%x: tensor<4x8xf32>, %s: tensor<1x1xf32>) -> (tensor<4x8xi8>, tensor<4x8xf32>) {
  %q = sparse_tile.quantize %x scales %s : tensor<4x8xf32>, tensor<1x1xf32> to tensor<4x8xf32, #q>
  %c, %t = sparse_tile.parts %q : tensor<4x8xf32, #q> to tensor<4x8xi8>, tensor<1x1xf32>
  %y = sparse_tile.dequantize %q : tensor<4x8xf32, #q> to tensor<4x8xf32>
  return %c, %y : tensor<4x8xi8>, tensor<4x8xf32>
}
