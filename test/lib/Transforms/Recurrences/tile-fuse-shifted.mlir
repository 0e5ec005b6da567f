// RUN: tile-opt %s --tile-fuse-shifted --canonicalize --split-input-file --verify-diagnostics | FileCheck-22 %s

!row = tensor<8xf32>
!rows = tensor<9x8xf32>
#row = affine_map<(d0, d1, d2) -> (d0, d2)>
#weight = affine_map<(d0, d1, d2) -> (d1, d2)>
#sum = affine_map<(d0, d1, d2) -> (d0, d1)>

// The product of a sequence becomes one of a row, the state that the first layer wrote last. The first iteration of the
// first layer stands in front, the last one of the second layer behind.
// CHECK-LABEL: @stack(
// CHECK: %[[FIRST:.*]] = math.tanh %arg0
// CHECK: %[[ALL:.*]]:4 = scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK-SAME: iter_args(%[[H:.*]] = %[[FIRST]], %{{.*}}, %[[G:.*]] = %arg0
// CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[H]], %arg1 : tensor<8xf32>, tensor<8x8xf32>)
// CHECK: arith.addf %[[G]], %[[P]]
// CHECK: math.tanh %[[H]]
// CHECK: scf.yield
// CHECK: linalg.generic {{.*}} ins(%[[ALL]]#0, %arg1
// CHECK: arith.addf %[[ALL]]#2
func.func @stack(%h0: !row, %w: tensor<8x8xf32>) -> (!rows, !rows) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = math.tanh %h : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %z = linalg.fill ins(%zero : f32) outs(%e : !rows) -> !rows
  %p = linalg.generic {indexing_maps = [#row, #weight, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a#1, %w : !rows, tensor<8x8xf32>) outs(%z : !rows) {
  ^bb0(%x: f32, %v: f32, %s: f32):
    %0 = arith.mulf %x, %v : f32
    %1 = arith.addf %0, %s : f32
    linalg.yield %1 : f32
  } -> !rows
  %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %x = tensor.extract_slice %p[%t, 0] [1, 8] [1, 1] : !rows to !row
    %n = arith.addf %h, %x : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  } {tile.shift = 1 : i64}
  return %a#1, %b#1 : !rows, !rows
}

// -----

!row = tensor<8xf32>
!rows = tensor<9x8xf32>

// What is written is no state: it is read where it was written.
// CHECK-LABEL: @written(
// CHECK: scf.for %[[T:.*]] = %c0 to %c8 step %c1 iter_args(%{{.*}}, %[[Y:.*]] = %{{.*}}, %{{.*}})
// CHECK: tensor.extract_slice %[[Y]][%[[T]], 0]
// CHECK: %[[U:.*]] = arith.addi %[[T]], %c1
// CHECK: tensor.insert_slice %{{.*}} into %[[Y]][%[[U]], 0]
func.func @written(%h0: !row) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = math.tanh %h : !row
    %m = math.exp %n : !row
    %i = tensor.insert_slice %m into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %b = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %x = tensor.extract_slice %a#1[%t, 0] [1, 8] [1, 1] : !rows to !row
    %n = arith.addf %h, %x : !row
    scf.yield %n : !row
  } {tile.shift = 1 : i64}
  return %b : !row
}

// -----

!row = tensor<8xf32>

// Both directions: no iteration stands apart, and what follows from the first loop moves behind.
// CHECK-LABEL: @beside(
// CHECK: %[[ALL:.*]]:2 = scf.for %{{.*}} = %c0 to %arg1 step %c1
// CHECK: math.exp
// CHECK: math.tanh
// CHECK: }
// CHECK: arith.negf %[[ALL]]#0
func.func @beside(%h0: !row, %n: index) -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0) -> (!row) {
    %v = math.tanh %h : !row
    scf.yield %v : !row
  }
  %m = arith.negf %a : !row
  %b = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0) -> (!row) {
    %v = math.exp %h : !row
    scf.yield %v : !row
  } {tile.shift = 0 : i64}
  return %m, %b : !row, !row
}

// -----

!row = tensor<8xf32>
!rows = tensor<9x8xf32>
#all = affine_map<(d0) -> (d0)>

// CHECK-LABEL: @main(
// CHECK: scf.for {{.*}} = %c0 to %c8
func.func @main(%h0: !row) -> (!rows, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %o = tensor.empty() : !row
    %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%h : !row) outs(%o : !row) {
    ^bb0(%x: f32, %s: f32):
      %v = math.tanh %x : f32
      linalg.yield %v : f32
    } -> !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %b = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %x = tensor.extract_slice %a#1[%t, 0] [1, 8] [1, 1] : !rows to !row
    %o = tensor.empty() : !row
    %n = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel"]}
        ins(%h, %x : !row, !row) outs(%o : !row) {
    ^bb0(%g: f32, %r: f32, %s: f32):
      %v = arith.addf %g, %r : f32
      linalg.yield %v : f32
    } -> !row
    scf.yield %n : !row
  } {tile.shift = 1 : i64}
  return %a#1, %b : !rows, !row
}

// -----

!row = tensor<8xf32>

func.func @wrong(%h0: !row, %n: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0) -> (!row) {
    %v = math.tanh %h : !row
    scf.yield %v : !row
  }
  // expected-error @+1 {{cannot follow the loop in front of it by 0 iterations, as 'tile.shift' asks: it starts}}
  %b = scf.for %t = %c0 to %n step %c1 iter_args(%h = %a) -> (!row) {
    %v = math.exp %h : !row
    scf.yield %v : !row
  } {tile.shift = 0 : i64}
  return %b : !row
}

// -----

!row = tensor<1x8xf32>
!rows = tensor<9x8x1xf32>

// Rows whose dimension of size one stands elsewhere.
// CHECK-LABEL: func.func @rows_of_columns(
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @rows_of_columns(%h0: !row, %g0: !row) -> (!rows, !rows) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = math.tanh %h : !row
    %i = tensor.insert_slice %n into %y[%t, 0, 0] [1, 8, 1] [1, 1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%g = %g0, %y = %e) -> (!row, !rows) {
    %x = tensor.extract_slice %a#1[%t, 0, 0] [1, 8, 1] [1, 1, 1] : !rows to !row
    %n = arith.addf %g, %x : !row
    %i = tensor.insert_slice %n into %y[%t, 0, 0] [1, 8, 1] [1, 1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  } {tile.shift = 1 : i64}
  return %a#1, %b#1 : !rows, !rows
}
