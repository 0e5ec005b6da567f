// RUN: tile-opt %s --fractal-extract-graph -mlir-print-local-scope | FileCheck-22 %s

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>
!some = !fractal.array<[?] of tensor<8xf32>>

// A length that a run knows is a symbol. From the right, a state is read one iteration later. The last state of a list
// that may be empty is its init, where it is.
// CHECK-LABEL: fractal.graph @unknown_graph inputs ["xs", "arg1"] symbols ["length of xs at level 0"]
// CHECK: fractal.block ["scan right"] to affine_map<(d0)[s0] -> (s0)>
// CHECK-SAME: in affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>
// CHECK-SAME: reads (%arg1 for 0 at affine_map<(d0)[s0] -> ()> where affine_set<(d0)[s0] : (-d0 + s0 - 1 == 0)>
// CHECK-SAME: %0 for 0 at affine_map<(d0)[s0] -> (d0 + 1)> where affine_set<(d0)[s0] : (-d0 + s0 - 2 >= 0)>
// CHECK: distances = [array<i64: -1>]
// CHECK: fractal.block ["fold left"]
// CHECK: distances = [array<i64: 1>]
// CHECK: fractal.outputs
// CHECK-SAME: %1 for 1 at affine_map<()[s0] -> (s0 - 1)> where affine_set<()[s0] : (s0 - 1 >= 0)>
// CHECK-SAME: %arg1 for 1 at affine_map<()[s0] -> ()> where affine_set<()[s0] : (s0 == 0)>
func.func @unknown(%xs: !some {tile.name = "xs"}, %h0: !leaf) -> (!some, !leaf) {
  %r = fractal.scan right (%h = %h0) over (%x = %xs) : (!leaf, !some) -> !some {
    %n = arith.addf %h, %x : !leaf
    fractal.yield %n : !leaf
  }
  %s = fractal.fold left (%h = %h0) over (%x = %xs) : (!leaf, !some) -> !leaf {
    %n = arith.addf %h, %x : !leaf
    fractal.yield %n : !leaf
  }
  return %r, %s : !some, !leaf
}

// States that only change places are copied by a block of their own: nothing else would write them.
// CHECK-LABEL: fractal.graph @swapped_graph
// CHECK: %0 = fractal.block ["fold left"]
// CHECK-SAME: %0 for 0 at affine_map<(d0) -> (d0 - 2)> where affine_set<(d0) : (d0 - 2 >= 0)>
// CHECK-NEXT: ^bb0(%[[STATE:.*]]: tensor<8xf32>):
// CHECK-NEXT: fractal.yield %[[STATE]]
// CHECK: distances = [array<i64: 2>]
func.func @swapped(%xs: !list, %a0: !leaf, %b0: !leaf) -> !leaf {
  %r:2 = fractal.fold left (%a = %a0, %b = %b0) over (%x = %xs) : (!leaf, !leaf, !list) -> (!leaf, !leaf) {
    fractal.yield %b, %a : !leaf, !leaf
  }
  return %r#0 : !leaf
}

// A state that is the last one of another is read two iterations before.
// CHECK-LABEL: fractal.graph @fibonacci_graph
// CHECK: %arg2 for 0 at affine_map<(d0) -> ()> where affine_set<(d0) : (d0 - 1 == 0)>
// CHECK-SAME: %0 for 0 at affine_map<(d0) -> (d0 - 2)> where affine_set<(d0) : (d0 - 2 >= 0)>
// CHECK: distances = [array<i64: 2>, array<i64: 1>]
func.func @fibonacci(%xs: !list, %a0: !leaf, %b0: !leaf) -> !list {
  %r:2 = fractal.scan left (%a = %a0, %b = %b0) over (%x = %xs) : (!leaf, !leaf, !list) -> (!list, !list) {
    %n = arith.addf %a, %b : !leaf
    fractal.yield %b, %n : !leaf, !leaf
  }
  return %r#1 : !list
}

// Piece by piece, through a slice, a join and a shift; the fill is never read. Then elements that a run chooses.
// CHECK-LABEL: fractal.graph @accesses_graph
// CHECK: fractal.block ["map"]
// CHECK-SAME: reads (%arg0 for 0 at affine_map<(d0)[s0] -> (d0 * 2 + 1)>
// CHECK-SAME: where affine_set<(d0)[s0] : (d0 * -2 + 7 >= 0)>
// CHECK-SAME: %arg0 for 0 at affine_map<(d0)[s0] -> (d0 * 2 - 7)> where affine_set<(d0)[s0] : (d0 * 2 - 8 >= 0)>
// CHECK-SAME: writes
// CHECK: fractal.block [] to
// CHECK-SAME: %0 for 0 at affine_map<(d0)[s0] -> (d0)> where affine_set<(d0)[s0] : (d0 >= 0, -d0 + 7 >= 0)> indirect
func.func @accesses(%xs: !list, %v: !leaf, %i: tensor<?xi32>) -> !some {
  %a = fractal.shift %xs by 1 fill %v : !list, !leaf -> !list
  %j = fractal.join %xs, %a : !list, !list -> !fractal.array<[18] of tensor<8xf32>>
  %s = fractal.slice %j [1] [8] [2] : !fractal.array<[18] of tensor<8xf32>> -> !fractal.array<[8] of tensor<8xf32>>
  %m = fractal.map (%x = %s) : (!fractal.array<[8] of tensor<8xf32>>) -> !fractal.array<[8] of tensor<8xf32>> {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  %g = fractal.gather %m[%i] : !fractal.array<[8] of tensor<8xf32>>, tensor<?xi32> -> !some
  return %g : !some
}

// The state is a list whose neighbours are read: distances differ from place to place.
// CHECK-LABEL: fractal.graph @stencil_graph
// CHECK: fractal.block ["fold left", "map"]
// CHECK-SAME: %arg1 for 0 at affine_map<(d0, d1) -> (d1 - 1)>
// CHECK-SAME: where affine_set<(d0, d1) : (d0 == 0, d1 - 1 >= 0)>
// CHECK-SAME: %0 for 0 at affine_map<(d0, d1) -> (d0 - 1, d1 - 1)>
// CHECK-SAME: %arg2 for 0 at affine_map<(d0, d1) -> ()> where affine_set<(d0, d1) : (-d1 >= 0)>
// CHECK-SAME: %0 for 1 at affine_map<(d0, d1) -> (d0 - 1, 0)>
// CHECK: {distances = [array<i64: 1, 1>], nonuniform}
func.func @stencil(%times: !fractal.array<[5] of tensor<f32>>, %xs: !list, %v: !leaf) -> !list {
  %c0 = arith.constant 0 : index
  %r = fractal.fold left (%s = %xs) over (%t = %times) : (!list, !fractal.array<[5] of tensor<f32>>) -> !list {
    %left = fractal.shift %s by -1 fill %v : !list, !leaf -> !list
    %first = fractal.at %s[%c0] : !list -> !leaf
    %m = fractal.map (%x = %left) : (!list) -> !list {
      %n = arith.addf %x, %first : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %m : !list
  }
  return %r : !list
}

// Two loops in a recurrence are its body, and a level that they take whole is a dimension of the read.
// CHECK-LABEL: fractal.graph @whole_graph
// CHECK: fractal.block ["fold left"]
// CHECK-SAME: %0 for 0 at affine_map<(d0, d1) -> (d0 - 1, d1)>
// CHECK-SAME: where affine_set<(d0, d1) : (d0 - 1 >= 0, d1 >= 0, -d1 + 8 >= 0)>
// CHECK-SAME: writes [affine_map<(d0, d1) -> (d0, d1)>] -> !fractal.array<[5, 9] of tensor<8xf32>>
// CHECK: fractal.map
// CHECK: fractal.map
// CHECK: distances = [array<i64: 1>]
func.func @whole(%times: !fractal.array<[5] of tensor<f32>>, %xs: !list) -> !list {
  %r = fractal.fold left (%s = %xs) over (%t = %times) : (!list, !fractal.array<[5] of tensor<f32>>) -> !list {
    %a = fractal.map (%x = %s) : (!list) -> !list {
      %n = arith.negf %x : !leaf
      fractal.yield %n : !leaf
    }
    %b = fractal.map (%x = %a) : (!list) -> !list {
      %n = math.exp %x : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %b : !list
  }
  return %r : !list
}

// Groups of unequal length: how long a group is depends on which it is.
// CHECK-LABEL: fractal.graph @dilated_graph
// CHECK: fractal.block ["map", "scan left"] to affine_map<(d0, d1) -> (2, (-d0) floordiv 2 + 5)>
// CHECK-SAME: %arg0 for 1 at affine_map<(d0, d1) -> (d1 * 2 + d0)>
// CHECK-SAME: -> !fractal.array<[2, ragged] of tensor<8xf32>>
// CHECK: fractal.outputs (%0 for 0 at affine_map<(d0) -> (d0 mod 2, d0 floordiv 2)>
func.func @dilated(%xs: !list, %h0: !leaf) -> !list {
  %g = fractal.interleave %xs by 2 : !list -> !fractal.array<[2, ragged] of tensor<8xf32>>
  %m = fractal.map (%y = %g) : (!fractal.array<[2, ragged] of tensor<8xf32>>)
      -> !fractal.array<[2, ragged] of tensor<8xf32>> {
    %s = fractal.scan left (%h = %h0) over (%x = %y) : (!leaf, !some) -> !some {
      %n = arith.addf %h, %x : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %s : !some
  }
  %d = fractal.deinterleave %m : !fractal.array<[2, ragged] of tensor<8xf32>> -> !list
  return %d : !list
}

// An index that is computed: any element may be the one.
// CHECK-LABEL: fractal.graph @chosen_graph
// CHECK: fractal.block ["map"]
// CHECK-SAME: at affine_map<(d0, d1) -> (d1)> where affine_set<(d0, d1) : (d1 >= 0, -d1 + 8 >= 0)> indirect
func.func @chosen(%xs: !list, %i: !fractal.array<[9] of tensor<i32>>) -> !list {
  %m = fractal.map (%k = %i) : (!fractal.array<[9] of tensor<i32>>) -> !list {
    %s = tensor.extract %k[] : tensor<i32>
    %p = arith.index_cast %s : i32 to index
    %x = fractal.at %xs[%p] : !list -> !leaf
    fractal.yield %x : !leaf
  }
  return %m : !list
}

// A state that goes through lists which may be empty: where there is an element, it is the last result of the list
// before. What no element at all gives, a block of its own copies.
// CHECK-LABEL: fractal.graph @chain_graph
// CHECK: %0 = fractal.block ["fold left", "fold left"]
// CHECK-SAME: %0 for 0 at affine_map<(d0, d1)[s0, s1] -> (d0 - 1, s1 - 1)>
// CHECK-SAME: where affine_set<(d0, d1)[s0, s1] : (d0 - 1 >= 0, d1 == 0)>
// CHECK: {distances = [array<i64: 0, 1>], nonuniform}
// CHECK: %1 = fractal.block ["fold left"]
func.func @chain(%xss: !fractal.array<[?, ?] of tensor<8xf32>>, %zero: !leaf) -> !leaf {
  %r = fractal.fold left (%outer = %zero) over (%xs = %xss) : (!leaf, !fractal.array<[?, ?] of tensor<8xf32>>)
      -> !leaf {
    %s = fractal.fold left (%h = %outer) over (%x = %xs) : (!leaf, !some) -> !leaf {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %s : !leaf
  }
  return %r : !leaf
}

// A fold that yields its state as it found it: nobody reads what the body makes, which is no block.
// CHECK-LABEL: fractal.graph @unread_graph
// CHECK-NOT: fractal.block
// CHECK: fractal.outputs (%arg1 for 0 at affine_map<() -> ()>
func.func @unread(%xs: !fractal.array<[0] of tensor<8xf32>>, %zero: !leaf) -> !leaf {
  %r = fractal.fold right (%h = %zero) over (%x = %xs) : (!leaf, !fractal.array<[0] of tensor<8xf32>>) -> !leaf {
    %m = fractal.map (%y = %xs) : (!fractal.array<[0] of tensor<8xf32>>) -> !fractal.array<[0] of tensor<8xf32>> {
      %0 = arith.addf %y, %x : !leaf
      fractal.yield %0 : !leaf
    }
    %1 = fractal.reduce (%a, %b = %m) init (%zero) : (!fractal.array<[0] of tensor<8xf32>>, !leaf) -> !leaf {
      %2 = arith.addf %a, %b : !leaf
      fractal.yield %2 : !leaf
    }
    fractal.yield %h : !leaf
  }
  return %r : !leaf
}

// Rows of a leaf as elements of a list: a level more than the buffer has.
// CHECK-LABEL: fractal.graph @rows_graph
// CHECK: %0 = fractal.block ["map"]
// CHECK: %1 = fractal.block ["map", "map"]
// CHECK-SAME: reads (%0 for 0 at affine_map<(d0, d1) -> (d0, d1)> : !fractal.array<[9] of tensor<8xf32>>)
func.func @rows(%xs: !list) -> !fractal.array<[9, 8] of tensor<f32>> {
  %r = fractal.map (%x = %xs) : (!list) -> !fractal.array<[9, 8] of tensor<f32>> {
    %0 = arith.addf %x, %x : !leaf
    %cut = fractal.from_tensor %0 : !leaf -> !fractal.array<[8] of tensor<f32>>
    %m = fractal.map (%y = %cut) : (!fractal.array<[8] of tensor<f32>>) -> !fractal.array<[8] of tensor<f32>> {
      %1 = arith.mulf %y, %y : tensor<f32>
      fractal.yield %1 : tensor<f32>
    }
    fractal.yield %m : !fractal.array<[8] of tensor<f32>>
  }
  return %r : !fractal.array<[9, 8] of tensor<f32>>
}
