// RUN: tile-opt %s --tile-hoist-invariants --split-input-file | FileCheck-22 %s

!list = !fractal.array<[4] of tensor<8xf32>>

// What a scan begins with, made with the shape of its first element, follows from no element.
// CHECK-LABEL: @initial(
// CHECK-NOT: fractal.at
// CHECK: %[[ZERO:.*]] = arith.constant
// CHECK: %[[R:.*]] = fractal.repeat %[[ZERO]] times 4
// CHECK-NOT: fractal.map
// CHECK: return %[[R]]
func.func @initial(%xss: !fractal.array<[3, 4] of tensor<8xf32>>, %i: index) -> !list {
  %xs = fractal.at %xss[%i] : !fractal.array<[3, 4] of tensor<8xf32>> -> !list
  %r = fractal.map (%x = %xs) : (!list) -> !list {
    %zero = arith.constant dense<0.0> : tensor<8xf32>
    fractal.yield %zero : tensor<8xf32>
  }
  return %r : !list
}

// -----

!list = !fractal.array<[4] of tensor<8xf32>>

// Out of both bodies; what depends on an element or a state stays.
// CHECK-LABEL: @nested(
// CHECK: %[[N:.*]] = arith.negf %arg1
// CHECK: fractal.map (%[[XS:.*]] = %arg0)
// CHECK: fractal.fold left (%[[S:.*]] = %arg1) over (%[[X:.*]] = %[[XS]])
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[N]]
// CHECK: arith.addf %[[S]], %[[P]]
func.func @nested(%xss: !fractal.array<[3, 4] of tensor<8xf32>>, %v: tensor<8xf32>)
    -> !fractal.array<[3] of tensor<8xf32>> {
  %r = fractal.map (%xs = %xss) : (!fractal.array<[3, 4] of tensor<8xf32>>) -> !fractal.array<[3] of tensor<8xf32>> {
    %s = fractal.fold left (%h = %v) over (%x = %xs) : (tensor<8xf32>, !list) -> tensor<8xf32> {
      %n = arith.negf %v : tensor<8xf32>
      %p = arith.mulf %x, %n : tensor<8xf32>
      %t = arith.addf %h, %p : tensor<8xf32>
      fractal.yield %t : tensor<8xf32>
    }
    fractal.yield %s : tensor<8xf32>
  }
  return %r : !fractal.array<[3] of tensor<8xf32>>
}
