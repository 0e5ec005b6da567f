// RUN: tile-opt %s --fractal-extract-graph --fractal-find-merges | FileCheck-22 %s

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>
// Two maps beside each other; one of them inside the sum; the last map waits for the sum, which reads the first one.
// CHECK-LABEL: fractal.graph @chain_graph
// CHECK: deep = [array<i64: 0, 2, 1>, array<i64: 1, 3, 1>]
// CHECK-SAME: refused = ["1 and 2: their dimensions are of other kinds", "0 and 3: another block stands between them",
// CHECK-SAME: "2 and 3: dimension 0 is reduce in one and map in the other"]
// CHECK-SAME: wide = [array<i64: 0, 1>]
func.func @chain(%xs: !list, %zero: !leaf) -> (!list, !leaf) {
  %a = fractal.map (%x = %xs) : (!list) -> !list {
    %n = math.exp %x : !leaf
    fractal.yield %n : !leaf
  }
  %b = fractal.map (%x = %xs) : (!list) -> !list {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  %sum = fractal.reduce (%l, %r = %a) init (%zero) : (!list, !leaf) -> !leaf {
    %n = arith.addf %l, %r : !leaf
    fractal.yield %n : !leaf
  }
  %c = fractal.map (%x = %a, %y = %b) : (!list, !list) -> !list {
    %n = arith.subf %x, %sum : !leaf
    %m = arith.addf %n, %y : !leaf
    fractal.yield %m : !leaf
  }
  return %c, %sum : !list, !leaf
}

// Neighbours: what stands before is there, what stands after is not. Recurrences in two directions do not mix.
// CHECK-LABEL: fractal.graph @ahead_graph
// CHECK: deep = [array<i64: 0, 2, 1>]
// CHECK-SAME: refused = ["0 and 1: read 0 is of a later iteration",
// CHECK-SAME: "0 and 3: dimension 0 is scan left in one and scan right in the other",
// CHECK-SAME: "1 and 3: their dimensions are of other kinds", "2 and 3: their dimensions are of other kinds"]
// CHECK-SAME: wide = [array<i64: 1, 2>]
func.func @ahead(%xs: !list, %zero: !leaf) -> (!list, !list, !list) {
  %a = fractal.scan left (%h = %zero) over (%x = %xs) : (!leaf, !list) -> !list {
    %n = arith.addf %h, %x : !leaf
    fractal.yield %n : !leaf
  }
  %later = fractal.shift %a by 1 fill %zero : !list, !leaf -> !list
  %b = fractal.map (%x = %later) : (!list) -> !list {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  %before = fractal.shift %a by -1 fill %zero : !list, !leaf -> !list
  %c = fractal.map (%x = %before) : (!list) -> !list {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  %d = fractal.scan right (%h = %zero) over (%x = %a) : (!leaf, !list) -> !list {
    %n = arith.addf %h, %x : !leaf
    fractal.yield %n : !leaf
  }
  return %b, %c, %d : !list, !list, !list
}

// CHECK-LABEL: fractal.graph @lengths_graph
// CHECK: refused = ["0 and 1: they have no dimension in common", "0 and 2: their domains differ",
// CHECK-SAME: "1 and 2: their domains differ"]
func.func @lengths(%xs: !list, %ys: !fractal.array<[3] of tensor<8xf32>>)
    -> (!fractal.array<[4] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>) {
  %a = fractal.map (%x = %xs) : (!list) -> !list {
    %n = math.exp %x : !leaf
    fractal.yield %n : !leaf
  }
  %first = fractal.slice %a [0] [4] [1] : !list -> !fractal.array<[4] of tensor<8xf32>>
  %b = fractal.map (%x = %first) : (!fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<8xf32>> {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  %c = fractal.map (%y = %ys) : (!fractal.array<[3] of tensor<8xf32>>) -> !fractal.array<[3] of tensor<8xf32>> {
    %n = arith.negf %y : !leaf
    fractal.yield %n : !leaf
  }
  return %b, %c : !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>
}
