// RUN: tile-opt %s --tile-unroll-recurrences --split-input-file --verify-diagnostics | FileCheck-22 %s

!row = tensor<8xf32>
!list = !fractal.array<[2] of tensor<8xf32>>

// From the right: the last element first; the list of all states is in the order of the elements.
// CHECK-LABEL: @main(
// CHECK: %[[LAST:.*]] = arith.constant 1 : index
// CHECK: %[[X1:.*]] = fractal.at %arg1[%[[LAST]]]
// CHECK: %[[H1:.*]] = arith.addf %arg0, %[[X1]]
// CHECK: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK: %[[X0:.*]] = fractal.at %arg1[%[[FIRST]]]
// CHECK: %[[H0:.*]] = arith.addf %[[H1]], %[[X0]]
// CHECK: %[[A:.*]] = fractal.repeat %[[H0]] times 1
// CHECK: %[[B:.*]] = fractal.repeat %[[H1]] times 1
// CHECK: %[[R:.*]] = fractal.join %[[A]], %[[B]]
// CHECK: return %[[R]]
func.func @main(%h0: !row, %xs: !list) -> !list {
  %r = fractal.scan right (%h = %h0) over (%x = %xs) : (!row, !list) -> !list
      attributes {tile.unroll} {
    %0 = arith.addf %h, %x : !row
    fractal.yield %0 : !row
  }
  return %r : !list
}

// -----

!row = tensor<8xf32>
!list = !fractal.array<[?] of tensor<8xf32>>

func.func @unknown(%h0: !row, %xs: !list) -> !row {
  // expected-error@+1 {{cannot be unrolled, as 'tile.unroll' asks: its length is zero or not known}}
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!row, !list) -> !row attributes {tile.unroll} {
    %0 = arith.addf %h, %x : !row
    fractal.yield %0 : !row
  }
  return %r : !row
}
