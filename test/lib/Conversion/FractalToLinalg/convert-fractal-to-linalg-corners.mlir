// RUN: tile-opt %s --convert-fractal-to-linalg --canonicalize --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck-22 %s

// A scalar that becomes a tensor of ones: the new dimensions go with those of the map.
// CHECK-LABEL: @scalars(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1, 2]] output_shape [4, 1, 1] : tensor<4xf32> into tensor<4x1x1xf32>
func.func @scalars(%xs: !fractal.array<[4] of tensor<f32>>) -> !fractal.array<[4] of tensor<1x1xf32>> {
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<f32>>) -> !fractal.array<[4] of tensor<1x1xf32>> {
    %y = tensor.expand_shape %x [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
    fractal.yield %y : tensor<1x1xf32>
  }
  return %r : !fractal.array<[4] of tensor<1x1xf32>>
}

// -----

// CHECK-LABEL: @to_scalars(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2]] : tensor<4x1x1xf32> into tensor<4xf32>
func.func @to_scalars(%xs: !fractal.array<[4] of tensor<1x1xf32>>) -> !fractal.array<[4] of tensor<f32>> {
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<1x1xf32>>) -> !fractal.array<[4] of tensor<f32>> {
    %y = tensor.collapse_shape %x [] : tensor<1x1xf32> into tensor<f32>
    fractal.yield %y : tensor<f32>
  }
  return %r : !fractal.array<[4] of tensor<f32>>
}

// -----

// An element that has no elements is no slice: none has an offset that the op allows.
// CHECK-LABEL: @element_is_empty(
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<0x8xf32>
// CHECK-NEXT: return %[[NONE]]
func.func @element_is_empty(%xss: !fractal.array<[4, 0] of tensor<8xf32>>) -> !fractal.array<[0] of tensor<8xf32>> {
  %c1 = arith.constant 1 : index
  %r = fractal.at %xss[%c1] : !fractal.array<[4, 0] of tensor<8xf32>> -> !fractal.array<[0] of tensor<8xf32>>
  return %r : !fractal.array<[0] of tensor<8xf32>>
}

// -----

// All that is read of an empty list is the fill.
// CHECK-LABEL: @windows_of_nothing(
// CHECK-SAME: %[[FILL:[a-z0-9]+]]: tensor<8xf32>)
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic {{.*}} ins(%[[FILL]] : tensor<8xf32>)
func.func @windows_of_nothing(%xs: !fractal.array<[0] of tensor<8xf32>>, %fill: tensor<8xf32>)
    -> !fractal.array<[2, 2] of tensor<8xf32>> {
  %r = fractal.window %xs size 2 stride 1 dilation 1 padding [1, 2] fill %fill
      : !fractal.array<[0] of tensor<8xf32>>, tensor<8xf32> -> !fractal.array<[2, 2] of tensor<8xf32>>
  return %r : !fractal.array<[2, 2] of tensor<8xf32>>
}

// -----

// CHECK-LABEL: @split_nothing(
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<3x0x8xf32>
// CHECK-NEXT: return %[[NONE]]
func.func @split_nothing(%xs: !fractal.array<[0] of tensor<8xf32>>) -> !fractal.array<[3, 0] of tensor<8xf32>> {
  %r = fractal.split %xs into 3 : !fractal.array<[0] of tensor<8xf32>> -> !fractal.array<[3, 0] of tensor<8xf32>>
  return %r : !fractal.array<[3, 0] of tensor<8xf32>>
}

// -----

// CHECK-LABEL: @join_nothing(
// CHECK-SAME: %[[YS:[a-z0-9]+]]: tensor<2x8xf32>)
// CHECK-NEXT: return %[[YS]]
func.func @join_nothing(%xs: !fractal.array<[0] of tensor<8xf32>>, %ys: !fractal.array<[2] of tensor<8xf32>>)
    -> !fractal.array<[2] of tensor<8xf32>> {
  %r = fractal.join %xs, %ys : !fractal.array<[0] of tensor<8xf32>>, !fractal.array<[2] of tensor<8xf32>>
      -> !fractal.array<[2] of tensor<8xf32>>
  return %r : !fractal.array<[2] of tensor<8xf32>>
}

// -----

// A list of one element: the slice keeps which dimension it drops, though others have size one as well.
// CHECK-LABEL: @one_step(
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 4, 1, 17] [1, 1, 1, 1]
// CHECK-SAME: tensor<1x4x1x17xf32> to tensor<1x4x17xf32>
// CHECK: arith.subf
func.func @one_step(%xss: !fractal.array<[1, 4, 1] of tensor<17xf32>>, %init: tensor<17xf32>)
    -> !fractal.array<[1, 4] of tensor<17xf32>> {
  %r = fractal.map (%xs = %xss)
      : (!fractal.array<[1, 4, 1] of tensor<17xf32>>) -> !fractal.array<[1, 4] of tensor<17xf32>> {
    %s = fractal.map (%x = %xs) : (!fractal.array<[4, 1] of tensor<17xf32>>) -> !fractal.array<[4] of tensor<17xf32>> {
      %f = fractal.fold left (%h = %init) over (%e = %x)
          : (tensor<17xf32>, !fractal.array<[1] of tensor<17xf32>>) -> tensor<17xf32> {
        %n = arith.subf %h, %e : tensor<17xf32>
        fractal.yield %n : tensor<17xf32>
      }
      fractal.yield %f : tensor<17xf32>
    }
    fractal.yield %s : !fractal.array<[4] of tensor<17xf32>>
  }
  return %r : !fractal.array<[1, 4] of tensor<17xf32>>
}

// -----

!list = !fractal.array<[4] of tensor<8xf32>>

// The first element: it does not combine both sides, so that it is no reduction loop of that operation.
// CHECK-LABEL: @first(
// CHECK: scf.for
// CHECK: arith.maximumf %[[LEFT:.*]], %[[LEFT]]
func.func @first(%xs: !list, %init: tensor<8xf32>) -> tensor<8xf32> {
  %r = fractal.reduce (%a, %b = %xs) init (%init) : (!list, tensor<8xf32>) -> tensor<8xf32> {
    %m = arith.maximumf %a, %a : tensor<8xf32>
    fractal.yield %m : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
