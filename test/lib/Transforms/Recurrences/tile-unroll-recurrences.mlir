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

// -----

!row = tensor<8xf32>
!list = !fractal.array<[7] of tensor<8xf32>>

// Three of seven are an iteration, and one stands behind the loop: the last one, from the left.
// CHECK-LABEL: @groups(
// CHECK: %[[PART:.*]] = fractal.slice %arg1 [0] [6] [1]
// CHECK: %[[LISTS:.*]] = fractal.split %[[PART]] into 2
// CHECK: %[[R:.*]] = fractal.fold left (%[[H:.*]] = %arg0) over (%[[X:.*]] = %[[LISTS]])
// CHECK-COUNT-3: arith.addf
// CHECK: fractal.yield
// CHECK: %[[C6:.*]] = arith.constant 6 : index
// CHECK: %[[LAST:.*]] = fractal.at %arg1[%[[C6]]]
// CHECK: %[[END:.*]] = arith.addf %[[R]], %[[LAST]]
// CHECK: return %[[END]]
func.func @groups(%h0: !row, %xs: !list) -> !row {
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!row, !list) -> !row
      attributes {tile.unroll = 3 : i64} {
    %0 = arith.addf %h, %x : !row
    fractal.yield %0 : !row
  }
  return %r : !row
}

// -----

!row = tensor<8xf32>
!list = !fractal.array<[7] of tensor<8xf32>>

// From the right, the first one is left. All states of a group are handed on: they are what a scan gives.
// CHECK-LABEL: @states(
// CHECK: fractal.slice %arg1 [1] [6] [1]
// CHECK: %[[INIT:.*]] = fractal.repeat %arg0 times 3
// CHECK: %[[ALL:.*]] = fractal.scan right (%[[H:.*]] = %[[INIT]])
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: fractal.at %[[H]][%[[C0]]]
// CHECK-COUNT-3: arith.addf
// CHECK: %[[FLAT:.*]] = fractal.flatten %[[ALL]]
// CHECK: %[[ONE:.*]] = fractal.repeat %{{.*}} times 1
// CHECK: %[[FIRST:.*]] = fractal.join %[[ONE]] :
// CHECK: fractal.join %[[FIRST]], %[[FLAT]]
func.func @states(%h0: !row, %xs: !list) -> !list {
  %r = fractal.scan right (%h = %h0) over (%x = %xs) : (!row, !list) -> !list
      attributes {tile.unroll = 3 : i64} {
    %0 = arith.addf %h, %x : !row
    fractal.yield %0 : !row
  }
  return %r : !list
}

// -----

!row = tensor<8xf32>
!list = !fractal.array<[7] of tensor<8xf32>>

func.func @none(%h0: !row, %xs: !list) -> !row {
  // expected-error@+1 {{has a 'tile.unroll' of 0: an iteration has one step or more}}
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!row, !list) -> !row attributes {tile.unroll = 0 : i64} {
    %0 = arith.addf %h, %x : !row
    fractal.yield %0 : !row
  }
  return %r : !row
}
