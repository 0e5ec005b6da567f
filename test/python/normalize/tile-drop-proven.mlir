// RUN: tile-opt %s --tile-drop-proven --split-input-file | FileCheck-22 %s

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> (0)>

// The number of an iteration, as a tensor, with a constant added; the check reduces over all indices. One step more,
// and it stays.
// CHECK-LABEL: func.func @main
// CHECK-NOT: cf.assert %{{.*}}, "holds"
// CHECK: cf.assert %{{.*}}, "may fail"
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %low = arith.constant -9 : i64
  %four = arith.constant 4 : i64
  %eight = arith.constant 8 : i64
  %nine = arith.constant 9 : i64
  %none = arith.constant 0 : i32
  %least = arith.constant -2147483648 : i32
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %x) -> tensor<5xf32> {
    %n = arith.index_cast %i : index to i64
    %given = tensor.from_elements %n : tensor<1xi64>
    %e = tensor.empty() : tensor<6xi64>
    %place = linalg.generic {indexing_maps = [#one, #id], iterator_types = ["parallel"]}
        ins(%given : tensor<1xi64>) outs(%e : tensor<6xi64>) {
    ^bb0(%a: i64, %o: i64):
      %p = arith.addi %a, %four : i64
      linalg.yield %p : i64
    } -> tensor<6xi64>
    %w = tensor.empty() : tensor<6xi32>
    %wrong:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%place : tensor<6xi64>) outs(%w, %w : tensor<6xi32>, tensor<6xi32>) {
    ^bb0(%a: i64, %o: i32, %q: i32):
      %below = arith.cmpi slt, %a, %low : i64
      %above = arith.cmpi sge, %a, %nine : i64
      %outside = arith.ori %below, %above : i1
      %r = arith.extui %outside : i1 to i32
      %last = arith.cmpi sge, %a, %eight : i64
      %s = arith.extui %last : i1 to i32
      linalg.yield %r, %s : i32, i32
    } -> (tensor<6xi32>, tensor<6xi32>)
    %m = tensor.empty() : tensor<1xi32>
    %f = linalg.fill ins(%least : i32) outs(%m : tensor<1xi32>) -> tensor<1xi32>
    %most:2 = linalg.generic {indexing_maps = [#id, #id, #one, #one], iterator_types = ["reduction"]}
        ins(%wrong#0, %wrong#1 : tensor<6xi32>, tensor<6xi32>) outs(%f, %f : tensor<1xi32>, tensor<1xi32>) {
    ^bb0(%a: i32, %b: i32, %o: i32, %p: i32):
      %r = arith.maxsi %o, %a : i32
      %s = arith.maxsi %p, %b : i32
      linalg.yield %r, %s : i32, i32
    } -> (tensor<1xi32>, tensor<1xi32>)
    %v0 = tensor.extract %most#0[%c0] : tensor<1xi32>
    %v1 = tensor.extract %most#1[%c0] : tensor<1xi32>
    %ok0 = arith.cmpi eq, %v0, %none : i32
    %ok1 = arith.cmpi eq, %v1, %none : i32
    cf.assert %ok0, "holds"
    cf.assert %ok1, "may fail"
    scf.yield %t : tensor<5xf32>
  }
  return %y : tensor<5xf32>
}

// -----

// A counter of a loop that may end early: its condition bounds it. Without that it may overflow.
// CHECK-LABEL: func.func @main
// CHECK-NOT: cf.assert %{{.*}}, "from 0 to 8"
// CHECK: cf.assert %{{.*}}, "from 0 to 7"
// CHECK: cf.assert %{{.*}}, "no end"
func.func @main(%more: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %r = scf.while (%i = %c0, %go = %more) : (index, i1) -> index {
    %in = arith.cmpi slt, %i, %c9 : index
    %both = arith.andi %go, %in : i1
    scf.condition(%both) %i : index
  } do {
  ^bb0(%i: index):
    %low = arith.cmpi sge, %i, %c0 : index
    %high = arith.cmpi slt, %i, %c9 : index
    %ok = arith.andi %low, %high : i1
    cf.assert %ok, "from 0 to 8"
    %less = arith.cmpi slt, %i, %c8 : index
    cf.assert %less, "from 0 to 7"
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %more : index, i1
  }
  %s = scf.while (%i = %c0) : (index) -> index {
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %low = arith.cmpi sge, %i, %c0 : index
    cf.assert %low, "no end"
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  return
}

// -----

// Sums may overflow; a maximum of no elements is what it began with.
// CHECK-LABEL: func.func @main
// CHECK: cf.assert %{{.*}}, "overflow"
// CHECK: cf.assert %{{.*}}, "no element"
func.func @main(%n: tensor<i32>, %x: tensor<?xi1>) {
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %v = tensor.extract %n[] : tensor<i32>
  %most = arith.maxsi %v, %zero : i32
  %sum = arith.addi %most, %one : i32
  %a = arith.cmpi sge, %sum, %zero : i32
  cf.assert %a, "overflow"
  %e = tensor.empty() : tensor<1xi32>
  %least = arith.constant -2147483648 : i32
  %f = linalg.fill ins(%least : i32) outs(%e : tensor<1xi32>) -> tensor<1xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>],
      iterator_types = ["reduction"]} ins(%x : tensor<?xi1>) outs(%f : tensor<1xi32>) {
  ^bb0(%b: i1, %o: i32):
    %w = arith.extui %b : i1 to i32
    %m = arith.maxsi %o, %w : i32
    linalg.yield %m : i32
  } -> tensor<1xi32>
  %c0 = arith.constant 0 : index
  %g = tensor.extract %r[%c0] : tensor<1xi32>
  %ok = arith.cmpi sge, %g, %zero : i32
  cf.assert %ok, "no element"
  return
}
