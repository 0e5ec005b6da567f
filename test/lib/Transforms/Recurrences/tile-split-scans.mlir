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
