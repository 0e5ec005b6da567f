// RUN: tile-opt %s --convert-fractal-to-linalg --canonicalize --cse --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck-22 %s

!x = tensor<8xf32>

// A fold of each list of a batch is one loop to the longest length of the run; a list that has ended keeps its state.
// CHECK-LABEL: @folds(
// CHECK-SAME: %[[FLAT:[a-z0-9]+]]: tensor<12x8xf32>, %{{.*}}: tensor<4xi64>
// CHECK: %[[COUNTS:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<3xi64>) {
// CHECK:   arith.subi
// CHECK:   arith.maxsi
// CHECK:   arith.minsi
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<3x4x8xf32>) {
// CHECK:   tensor.extract %[[FLAT]]
// CHECK: %[[MOST:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[COUNTS]] : tensor<3xi64>)
// CHECK:   arith.maxsi
// CHECK: tensor.extract %[[MOST]][]
// CHECK: arith.maxsi
// CHECK: %[[STEPS:.*]] = arith.minsi {{.*}}%c4
// CHECK: scf.for %[[T:.*]] = %c0 to %[[STEPS]] step %c1 iter_args(%[[S:.*]] = {{.*}}) -> (tensor<3x8xf32>) {
// CHECK:   %[[X:.*]] = tensor.extract_slice %[[ROWS]][0, %[[T]], 0] [3, 1, 8]
// CHECK:   %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[X]] : tensor<3x8xf32>, tensor<3x8xf32>)
// CHECK:   %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[S]] :
// CHECK:   %[[KEPT:.*]] = linalg.generic {{.*}} ins(%[[COUNTS]], %[[NEXT]], %[[S]] :
// CHECK:     arith.cmpi slt
// CHECK:     arith.select
// CHECK:   scf.yield %[[KEPT]]
func.func @folds(%flat: !fractal.array<[12] of !x>, %off: tensor<4xi64>, %zero: !x) -> !fractal.array<[3] of !x> {
  %xss = fractal.from_ragged %flat, %off most [4] : !fractal.array<[12] of !x>, tensor<4xi64>
      -> !fractal.array<[3, ragged] of !x>
  %r = fractal.map (%xs = %xss) : (!fractal.array<[3, ragged] of !x>) -> !fractal.array<[3] of !x> {
    %s = fractal.fold left (%h = %zero) over (%x = %xs) : (!x, !fractal.array<[?] of !x>) -> !x {
      %0 = arith.addf %h, %x : !x
      %1 = arith.mulf %0, %h : !x
      fractal.yield %1 : !x
    }
    fractal.yield %s : !x
  }
  return %r : !fractal.array<[3] of !x>
}

// -----

!x = tensor<8xf32>

// Elements that a filter leaves out are the neutral one in a sum; nothing is moved.
// CHECK-LABEL: @kept(
// CHECK-SAME: %[[XS:[a-z0-9]+]]: tensor<5x8xf32>, %[[IS:[a-z0-9]+]]: tensor<5xi1>
// CHECK: arith.constant 0.000000e+00 : f32
// CHECK: %[[MASKED:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[XS]] : tensor<5xi1>, tensor<5x8xf32>)
// CHECK:   arith.select
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[MASKED]]
// CHECK:   arith.addf
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @kept(%xs: !fractal.array<[5] of !x>, %is: !fractal.array<[5] of tensor<i1>>, %zero: !x) -> !x {
  %c0 = arith.constant 0 : index
  %some = fractal.filter (%x = %xs) : (!fractal.array<[5] of !x>) -> !fractal.array<[?] of !x> {
    %v = fractal.at %is[%c0] : !fractal.array<[5] of tensor<i1>> -> tensor<i1>
    fractal.yield %v : tensor<i1>
  }
  %r = fractal.reduce (%a, %b = %some) init (%zero) : (!fractal.array<[?] of !x>, !x) -> !x {
    %0 = arith.addf %a, %b : !x
    fractal.yield %0 : !x
  }
  return %r : !x
}

// -----

!x = tensor<8xf32>

// Groups of 3, 2 and 2 elements: how many each has is a constant, and what is dealt back has all seven.
// CHECK-LABEL: @dealt(
// CHECK-DAG: arith.constant dense<[3, 2, 2]> : tensor<3xi64>
// CHECK: tensor<3x3x8xf32>
// CHECK: return %{{.*}} : tensor<7x8xf32>
func.func @dealt(%xs: !fractal.array<[7] of !x>, %zero: !x) -> !fractal.array<[7] of !x> {
  %g = fractal.interleave %xs by 3 : !fractal.array<[7] of !x> -> !fractal.array<[3, ragged] of !x>
  %h = fractal.map (%ys = %g) : (!fractal.array<[3, ragged] of !x>) -> !fractal.array<[3, ragged] of !x> {
    %s = fractal.scan left (%h = %zero) over (%y = %ys)
        : (!x, !fractal.array<[?] of !x>) -> !fractal.array<[?] of !x> {
      %0 = arith.mulf %h, %y : !x
      fractal.yield %0 : !x
    }
    fractal.yield %s : !fractal.array<[?] of !x>
  }
  %r = fractal.deinterleave %h : !fractal.array<[3, ragged] of !x> -> !fractal.array<[7] of !x>
  return %r : !fractal.array<[7] of !x>
}

// -----

// A division runs for elements that are not there, too: by one where it has no result.
// CHECK-LABEL: @divided(
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[BY:.*]], %c0_i32
// CHECK: %[[MINUS:.*]] = arith.cmpi eq, %[[BY]], %c-1_i32
// CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %c1_i32, %[[BY]]
// CHECK: arith.divsi %{{.*}}, %[[SAFE]] : i32
func.func @divided(%flat: !fractal.array<[12] of tensor<i32>>, %off: tensor<4xi64>, %n: tensor<i32>)
    -> (!fractal.array<[12] of tensor<i32>>, tensor<4xi64>) {
  %xss = fractal.from_ragged %flat, %off most [4] : !fractal.array<[12] of tensor<i32>>, tensor<4xi64>
      -> !fractal.array<[3, ragged] of tensor<i32>>
  %r = fractal.map (%xs = %xss)
      : (!fractal.array<[3, ragged] of tensor<i32>>) -> !fractal.array<[3, ragged] of tensor<i32>> {
    %s = fractal.map (%x = %xs) : (!fractal.array<[?] of tensor<i32>>) -> !fractal.array<[?] of tensor<i32>> {
      %0 = arith.divsi %n, %x : tensor<i32>
      fractal.yield %0 : tensor<i32>
    }
    fractal.yield %s : !fractal.array<[?] of tensor<i32>>
  }
  %f, %o = fractal.to_ragged %r : !fractal.array<[3, ragged] of tensor<i32>>
      -> !fractal.array<[12] of tensor<i32>>, tensor<4xi64>
  return %f, %o : !fractal.array<[12] of tensor<i32>>, tensor<4xi64>
}

// -----

!x = tensor<8xf32>

// Places are computed with a number from outside.
// CHECK-LABEL: func.func @gen(
// CHECK: arith.muli
func.func @gen(%xs: !fractal.array<[5] of !x>, %is: !fractal.array<[5] of tensor<i1>>, %k: i64, %zero: !x) -> !x {
  %c0 = arith.constant 0 : index
  %some = fractal.filter (%x = %xs) : (!fractal.array<[5] of !x>) -> !fractal.array<[?] of !x> {
    %v = fractal.at %is[%c0] : !fractal.array<[5] of tensor<i1>> -> tensor<i1>
    fractal.yield %v : tensor<i1>
  }
  %n = fractal.length %some : !fractal.array<[?] of !x>
  %pl = tensor.generate %n {
  ^bb0(%i: index):
    %w = arith.index_cast %i : index to i64
    %u = arith.muli %w, %k : i64
    tensor.yield %u : i64
  } : tensor<?xi64>
  %g = fractal.gather %xs[%pl] : !fractal.array<[5] of !x>, tensor<?xi64> -> !fractal.array<[?] of !x>
  %r = fractal.reduce (%a, %b = %g) init (%zero) : (!fractal.array<[?] of !x>, !x) -> !x {
    %0 = arith.addf %a, %b : !x
    fractal.yield %0 : !x
  }
  return %r : !x
}

// -----

#id = affine_map<(i) -> (i)>
!x = tensor<8xf32>

// A body reads a number that each list has its own of: an input.
// CHECK-LABEL: func.func @cap(
// CHECK: arith.divf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
func.func @cap(%flat: !fractal.array<[12] of !x>, %off: tensor<5xi64>, %zero: !x) -> !fractal.array<[4] of !x> {
  %xss = fractal.from_ragged %flat, %off most [3] : !fractal.array<[12] of !x>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of !x>
  %r = fractal.map (%xs = %xss) : (!fractal.array<[4, ragged] of !x>) -> !fractal.array<[4] of !x> {
    %n = fractal.length %xs : !fractal.array<[?] of !x>
    %w = arith.index_cast %n : index to i64
    %f = arith.sitofp %w : i64 to f32
    %s = fractal.reduce (%a, %b = %xs) init (%zero) : (!fractal.array<[?] of !x>, !x) -> !x {
      %0 = arith.addf %a, %b : !x
      fractal.yield %0 : !x
    }
    %e = tensor.empty() : !x
    %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : !x) outs(%e : !x) {
    ^bb0(%a: f32, %o: f32):
      %q = arith.divf %a, %f : f32
      linalg.yield %q : f32
    } -> !x
    fractal.yield %m : !x
  }
  return %r : !fractal.array<[4] of !x>
}
