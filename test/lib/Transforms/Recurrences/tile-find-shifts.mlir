// RUN: tile-opt %s --tile-find-shifts --split-input-file | FileCheck-22 %s

!row = tensor<8xf32>
!rows = tensor<9x8xf32>
#row = affine_map<(d0, d1, d2) -> (d0, d2)>
#weight = affine_map<(d0, d1, d2) -> (d1, d2)>
#sum = affine_map<(d0, d1, d2) -> (d0, d1)>

// The second layer reads rows of a product of the first one's rows; the third loop needs neither.
// CHECK-LABEL: @stack(
// CHECK-NOT: tile.shift
// CHECK: } {tile.shift = 1 : i64}
// CHECK: } {tile.shift = 0 : i64}
func.func @stack(%h0: !row, %w: tensor<8x8xf32>) -> (!rows, !rows, !row) {
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
  }
  %c = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.exp %h : !row
    scf.yield %n : !row
  }
  return %a#1, %b#1, %c : !rows, !rows, !row
}

// -----

!row = tensor<8xf32>
!rows = tensor<9x8xf32>

// From the end: what the first one writes first is read last.
// CHECK-LABEL: @reversed(
// CHECK-NOT: tile.shift
func.func @reversed(%h0: !row) -> !rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = math.tanh %h : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %s = arith.subi %c8, %t : index
    %x = tensor.extract_slice %a#1[%s, 0] [1, 8] [1, 1] : !rows to !row
    %n = arith.addf %h, %x : !row
    %i = tensor.insert_slice %n into %y[%s, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  return %b#1 : !rows
}

// -----

!row = tensor<8xf32>

// The last state, an other number of iterations, too few iterations.
// CHECK-LABEL: @others(
// CHECK-NOT: tile.shift
func.func @others(%h0: !row) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<1x8xf32>
  %a = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.tanh %h : !row
    scf.yield %n : !row
  }
  %b = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %a) -> (!row) {
    %n = math.tanh %h : !row
    scf.yield %n : !row
  }
  %c = scf.for %t = %c0 to %c8 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.tanh %h : !row
    scf.yield %n : !row
  }
  %d:2 = scf.for %t = %c0 to %c1 step %c1 iter_args(%h = %b, %y = %e) -> (!row, tensor<1x8xf32>) {
    %n = arith.addf %h, %c : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into tensor<1x8xf32>
    scf.yield %n, %i : !row, tensor<1x8xf32>
  }
  %f = scf.for %t = %c0 to %c1 step %c1 iter_args(%h = %h0) -> (!row) {
    %x = tensor.extract_slice %d#1[%t, 0] [1, 8] [1, 1] : tensor<1x8xf32> to !row
    %n = arith.addf %h, %x : !row
    scf.yield %n : !row
  }
  return %f : !row
}

// -----

!row = tensor<8xf32>

// Without results that are needed, any number of iterations will do, if it is the same.
// CHECK-LABEL: @open(
// CHECK: tile.shift = 0
func.func @open(%h0: !row, %n: index) -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0) -> (!row) {
    %v = math.tanh %h : !row
    scf.yield %v : !row
  }
  %b = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0) -> (!row) {
    %v = math.exp %h : !row
    scf.yield %v : !row
  }
  return %a, %b : !row, !row
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!row = tensor<8xf32>
!rows = tensor<9x8xf32>

// What is between the loops reads another row, in its body.
// CHECK-LABEL: func.func @a_row_in_a_body(
// CHECK-NOT: tile.shift
// CHECK: return
func.func @a_row_in_a_body(%h0: !row, %g0: !row) -> (!rows, !rows) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c7 = arith.constant 7 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = math.tanh %h : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
     ins(%a#1 : !rows) outs(%e : !rows) {
  ^bb0(%u: f32, %o: f32):
     %last = tensor.extract %a#1[%c8, %c7] : !rows
     %s = arith.addf %u, %last : f32
     linalg.yield %s : f32
  } -> !rows
  %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%g = %g0, %y = %e) -> (!row, !rows) {
    %x = tensor.extract_slice %p[%t, 0] [1, 8] [1, 1] : !rows to !row
    %n = arith.addf %g, %x : !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  return %a#1, %b#1 : !rows, !rows
}
