// RUN: tile-opt %s --tile-lower-formats=lists=true --split-input-file | FileCheck %s
// RUN: tile-opt %s --tile-lower-formats=lists=true --convert-fractal-to-linalg --split-input-file \
// RUN: | FileCheck %s --check-prefix=LIFTED

// In bodies of functions of lists a format is a generic, which can be lifted; outside of them formats stay, to be
// carried.

// CHECK-LABEL: @map
// CHECK: sparse_tile.dequantize
// CHECK: fractal.map
// CHECK-NOT: sparse_tile.dequantize
// CHECK: linalg.generic
// CHECK: sparse_tile.decode unsigned
// LIFTED-LABEL: @map
// LIFTED: sparse_tile.dequantize
// LIFTED: linalg.generic
// LIFTED-SAME: iterator_types = ["parallel", "parallel", "parallel"]
// LIFTED-SAME: tensor<5x4x6xi8>, tensor<1x6xf32>
// LIFTED: sparse_tile.decode unsigned
#q = #sparse_tile.tesa<dense : format<i8, unsigned, scales = f32, group = [?, 1]>>
func.func @map(%codes: !fractal.array<[5] of tensor<4x6xi8>>, %other: tensor<4x6xi8>, %s: tensor<1x6xf32>)
    -> !fractal.array<[5] of tensor<4x6xf32>> {
  %a = sparse_tile.assemble %other, %s : tensor<4x6xi8>, tensor<1x6xf32> to tensor<4x6xf32, #q>
  %x = sparse_tile.dequantize %a : tensor<4x6xf32, #q> to tensor<4x6xf32>
  %r = fractal.map (%c = %codes)
      : (!fractal.array<[5] of tensor<4x6xi8>>) -> !fractal.array<[5] of tensor<4x6xf32>> {
    %b = sparse_tile.assemble %c, %s : tensor<4x6xi8>, tensor<1x6xf32> to tensor<4x6xf32, #q>
    %y = sparse_tile.dequantize %b : tensor<4x6xf32, #q> to tensor<4x6xf32>
    %z = arith.addf %x, %y : tensor<4x6xf32>
    fractal.yield %z : tensor<4x6xf32>
  }
  return %r : !fractal.array<[5] of tensor<4x6xf32>>
}

// -----

// A state that is quantized in each step.

// CHECK-LABEL: @scan
// CHECK: fractal.fold
// CHECK-NOT: sparse_tile.quantize
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: math.roundeven
// LIFTED-LABEL: @scan
// LIFTED: scf.for
// LIFTED: math.roundeven
#r = #sparse_tile.tesa<dense : format<i8, scales = f32>>
func.func @scan(%xs: !fractal.array<[5] of tensor<1x6xf32>>, %h: tensor<1x6xi8>, %s: tensor<1x1xf32>)
    -> tensor<1x6xi8> {
  %r = fractal.fold left (%c = %h) over (%x = %xs)
      : (tensor<1x6xi8>, !fractal.array<[5] of tensor<1x6xf32>>) -> tensor<1x6xi8> {
    %b = sparse_tile.assemble %c, %s : tensor<1x6xi8>, tensor<1x1xf32> to tensor<1x6xf32, #r>
    %y = sparse_tile.dequantize %b : tensor<1x6xf32, #r> to tensor<1x6xf32>
    %z = arith.addf %x, %y : tensor<1x6xf32>
    %q = sparse_tile.quantize %z scales %s : tensor<1x6xf32>, tensor<1x1xf32> to tensor<1x6xf32, #r>
    %d, %u = sparse_tile.parts %q : tensor<1x6xf32, #r> to tensor<1x6xi8>, tensor<1x1xf32>
    fractal.yield %d : tensor<1x6xi8>
  }
  return %r : tensor<1x6xi8>
}
