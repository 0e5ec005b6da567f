// RUN: tile-opt %s --tile-split-scans | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!list = !fractal.array<[9] of tensor<1x8xf32>>
!weight = tensor<8x8xf32>

// The projection with all that it needs; the sum with a bias stays with its user.
// CHECK-LABEL: @projection(
// CHECK: %[[PS:.*]] = fractal.map (%[[X:.*]] = %arg0)
// CHECK: linalg.fill
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[X]], %arg2
// CHECK: fractal.yield %[[P]]
// CHECK: fractal.scan left (%{{.*}} = %arg1) over (%[[OWN:.*]] = %arg0, %[[LIST:.*]] = %[[PS]])
// CHECK-NOT: linalg.matmul ins(%[[OWN]]
// CHECK: linalg.matmul ins(%{{.*}}, %arg3
// CHECK: arith.addf %[[LIST]]
func.func @projection(%xs: !list, %h0: !leaf, %w: !weight, %u: !weight) -> !list {
  %r = fractal.scan left (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !list {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : !leaf
    %i = linalg.fill ins(%zero : f32) outs(%e : !leaf) -> !leaf
    %p = linalg.matmul ins(%x, %w : !leaf, !weight) outs(%i : !leaf) -> !leaf
    %q = linalg.matmul ins(%h, %u : !leaf, !weight) outs(%i : !leaf) -> !leaf
    %n = arith.addf %p, %q : !leaf
    fractal.yield %n : !leaf
  }
  return %r : !list
}

// A recurrence in a map in a recurrence: the product of the inner elements moves in front of the inner one, and then,
// since it needs no outer state either, in front of the outer one.
// CHECK-LABEL: @nested(
// CHECK: fractal.map
// CHECK: fractal.map
// CHECK: linalg.matmul
// CHECK: fractal.fold
// CHECK-NOT: linalg.matmul
func.func @nested(%xss: !fractal.array<[5, 9] of tensor<1x8xf32>>, %h0: !leaf, %w: !weight, %z: !leaf) -> !leaf {
  %r = fractal.fold left (%o = %h0) over (%xs = %xss)
      : (!leaf, !fractal.array<[5, 9] of tensor<1x8xf32>>) -> !leaf {
    %s = fractal.fold left (%h = %o) over (%x = %xs) : (!leaf, !list) -> !leaf {
      %p = linalg.matmul ins(%x, %w : !leaf, !weight) outs(%z : !leaf) -> !leaf
      %n = arith.addf %p, %h : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %s : !leaf
  }
  return %r : !leaf
}

// Gates: a map over their weights in the scan, half of which needs the state. The other half is a map of its own, and
// then one over all elements.
// CHECK-LABEL: @gates(
// CHECK: %[[ALL:[^ ]*]] = fractal.map (%[[X:[^ ]*]] = %arg0)
// CHECK: %[[ONE:.*]] = fractal.map (%[[W:[^ ]*]] = %arg2, %{{[^ ]*}} = %arg3)
// CHECK: linalg.matmul ins(%[[X]], %[[W]]
// CHECK: fractal.yield %[[ONE]] : !fractal.array<[4] of tensor<1x8xf32>>
// CHECK: fractal.scan left (%[[H:[^ ]*]] = %arg1) over (%{{[^ ]*}} = %arg0, %[[PS:[^ ]*]] = %[[ALL]])
// CHECK: fractal.map (%{{[^ ]*}} = %arg2, %[[U:[^ ]*]] = %arg3, %[[P:[^ ]*]] = %[[PS]])
// CHECK-NOT: linalg.matmul ins(%[[X]]
// CHECK: %[[Q:.*]] = linalg.matmul ins(%[[H]], %[[U]]
// CHECK: arith.addf %[[P]], %[[Q]]
func.func @gates(%xs: !list, %h0: !leaf, %ws: !fractal.array<[4] of tensor<8x8xf32>>,
    %us: !fractal.array<[4] of tensor<8x8xf32>>, %z: !leaf) -> !list {
  %r = fractal.scan left (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !list {
    %gates = fractal.map (%w = %ws, %u = %us)
        : (!fractal.array<[4] of tensor<8x8xf32>>, !fractal.array<[4] of tensor<8x8xf32>>)
        -> !fractal.array<[4] of tensor<1x8xf32>> {
      %p = linalg.matmul ins(%x, %w : !leaf, !weight) outs(%z : !leaf) -> !leaf
      %q = linalg.matmul ins(%h, %u : !leaf, !weight) outs(%z : !leaf) -> !leaf
      %g = arith.addf %p, %q : !leaf
      fractal.yield %g : !leaf
    }
    %sum = fractal.reduce (%a, %b = %gates) init (%z) : (!fractal.array<[4] of tensor<1x8xf32>>, !leaf) -> !leaf {
      %s = arith.addf %a, %b : !leaf
      fractal.yield %s : !leaf
    }
    fractal.yield %sum : !leaf
  }
  return %r : !list
}

// Nothing to move: every product needs the state.
// CHECK-LABEL: @none(
// CHECK-NOT: fractal.map
func.func @none(%xs: !list, %h0: !leaf, %w: !weight, %z: !leaf) -> !leaf {
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !leaf {
    %s = arith.addf %x, %h : !leaf
    %p = linalg.matmul ins(%s, %w : !leaf, !weight) outs(%z : !leaf) -> !leaf
    fractal.yield %p : !leaf
  }
  return %r : !leaf
}
