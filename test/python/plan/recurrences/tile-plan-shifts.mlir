// RUN: tile-opt %s --split-input-file --tile-set-target=target=nvidia-h100 --tile-plan-shifts 2> %t \
// RUN:   | FileCheck-22 %s --check-prefixes=CHECK,GPU
// RUN: FileCheck-22 %s --check-prefix=SAID-GPU < %t
// RUN: tile-opt %s --split-input-file --tile-set-target=target=cpu:icelake-server --tile-plan-shifts 2> %t \
// RUN:   | FileCheck-22 %s --check-prefixes=CHECK,CPU
// RUN: FileCheck-22 %s --check-prefix=SAID-CPU < %t
// RUN: tile-opt %s --split-input-file --tile-plan-shifts 2> %t | FileCheck-22 %s --check-prefixes=CHECK,CPU
// RUN: FileCheck-22 %s --check-prefix=SAID-NONE < %t

!row = tensor<256xf32>
!rows = tensor<64x256xf32>
!weight = tensor<256x256xf32>
#state = affine_map<(d0, d1) -> (d1)>
#weight = affine_map<(d0, d1) -> (d0, d1)>
#next = affine_map<(d0, d1) -> (d0)>
#row = affine_map<(d0, d1, d2) -> (d0, d2)>
#all = affine_map<(d0, d1, d2) -> (d1, d2)>
#sum = affine_map<(d0, d1, d2) -> (d0, d1)>

// Two layers: a GPU saves half of the barriers, a core nothing.
// SAID-GPU: remark: 2 loops of 64 iterations run as one, of 65 iterations: predicted are {{[0-9]+}} us in turn
// SAID-CPU: remark: 2 loops of 64 iterations run in turn: predicted are {{[0-9]+}} us in turn
// SAID-NONE: remark: 2 loops of 64 iterations run in turn: the module names no device
// CHECK-LABEL: @layers(
// GPU: {tile.shift = 1 : i64}
// CPU-NOT: tile.shift
// CHECK: return
func.func @layers(%h0: !row, %u: !weight, %w: !weight) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !rows
  %a:2 = scf.for %t = %c0 to %c64 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
    %n = linalg.generic {indexing_maps = [#state, #weight, #next], iterator_types = ["parallel", "reduction"]}
        ins(%h, %u : !row, !weight) outs(%h0 : !row) {
    ^bb0(%x: f32, %v: f32, %s: f32):
      %0 = arith.mulf %x, %v : f32
      %1 = arith.addf %0, %s : f32
      linalg.yield %1 : f32
    } -> !row
    %i = tensor.insert_slice %n into %y[%t, 0] [1, 256] [1, 1] : !row into !rows
    scf.yield %n, %i : !row, !rows
  }
  %z = linalg.fill ins(%zero : f32) outs(%e : !rows) -> !rows
  %p = linalg.generic {indexing_maps = [#row, #all, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a#1, %w : !rows, !weight) outs(%z : !rows) {
  ^bb0(%x: f32, %v: f32, %s: f32):
    %0 = arith.mulf %x, %v : f32
    %1 = arith.addf %0, %s : f32
    linalg.yield %1 : f32
  } -> !rows
  %b = scf.for %t = %c0 to %c64 step %c1 iter_args(%h = %h0) -> (!row) {
    %x = tensor.extract_slice %p[%t, 0] [1, 256] [1, 1] : !rows to !row
    %n = arith.addf %h, %x : !row
    scf.yield %n : !row
  } {tile.shift = 1 : i64}
  return %b : !row
}

// -----

!row = tensor<8xf32>

// No more than four become one: the fifth would begin a group of its own, and is alone.
// SAID-GPU: remark: 4 loops of 9 iterations run as one, of 9 iterations
// SAID-GPU-NOT: remark
// SAID-CPU: remark: 4 loops of 9 iterations run in turn
// CHECK-LABEL: @branches(
// GPU-COUNT-3: tile.shift
// CHECK-NOT: tile.shift
// CHECK: return
func.func @branches(%h0: !row) -> (!row, !row, !row, !row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %a = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.tanh %h : !row
    scf.yield %n : !row
  }
  %b = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.exp %h : !row
    scf.yield %n : !row
  } {tile.shift = 0 : i64}
  %c = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.sin %h : !row
    scf.yield %n : !row
  } {tile.shift = 0 : i64}
  %d = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.cos %h : !row
    scf.yield %n : !row
  } {tile.shift = 0 : i64}
  %f = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (!row) {
    %n = math.atan %h : !row
    scf.yield %n : !row
  } {tile.shift = 0 : i64}
  return %a, %b, %c, %d, %f : !row, !row, !row, !row, !row
}
