// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!state = tensor<1x4xf32>

// Two states, three children, values at leaves and at nodes, a weight from above; sizes that only a run knows.
// CHECK-LABEL: func.func @several
// CHECK: %[[R:.*]]:2 = fractal.recurse %{{.*}}, %{{.*}}, %{{.*}} leaves(%[[XS:.*]]) nodes(%[[YS:.*]], %[[YS]])
// CHECK-SAME: : (tensor<?x3xi64>, tensor<?xi32>, tensor<?xi64>, !fractal.array<[?] of tensor<1x8xf32>>,
// CHECK-SAME: !fractal.array<[?] of tensor<1x4xf32>>, !fractal.array<[?] of tensor<1x4xf32>>)
// CHECK-SAME: -> (!fractal.array<[?] of tensor<1x4xf32>>, !fractal.array<[?] of tensor<f32>>)
// CHECK-SAME: attributes {note = "trees"}
// CHECK-NEXT: leaf (%[[X:.*]]) {
// CHECK-NEXT: fractal.yield %[[W:.*]], %{{.*}} : tensor<1x4xf32>, tensor<f32>
// CHECK-NEXT: } node (%[[A:.*]], %{{.*}}, %[[B:.*]], %{{.*}}, %{{.*}}, %[[C:.*]], %[[Y:.*]], %{{.*}}) {
// CHECK: arith.addf %[[A]], %[[B]] : tensor<1x4xf32>
// CHECK: arith.addf %{{.*}}, %[[Y]] : tensor<1x4xf32>
// CHECK: fractal.yield %{{.*}}, %[[C]] : tensor<1x4xf32>, tensor<f32>
func.func @several(%children: tensor<?x3xi64>, %levels: tensor<?xi32>, %roots: tensor<?xi64>,
    %xs: !fractal.array<[?] of !leaf>, %ys: !fractal.array<[?] of !state>, %w: !state, %z: tensor<f32>) {
  %r:2 = fractal.recurse %children, %levels, %roots leaves(%xs) nodes(%ys, %ys)
      : (tensor<?x3xi64>, tensor<?xi32>, tensor<?xi64>, !fractal.array<[?] of !leaf>, !fractal.array<[?] of !state>,
         !fractal.array<[?] of !state>)
      -> (!fractal.array<[?] of !state>, !fractal.array<[?] of tensor<f32>>) attributes {note = "trees"}
  leaf (%x) {
    fractal.yield %w, %z : !state, tensor<f32>
  } node (%a, %c, %b, %d, %e, %f, %y, %v) {
    %0 = arith.addf %a, %b : !state
    %1 = arith.addf %0, %y : !state
    fractal.yield %1, %f : !state, tensor<f32>
  }
  return
}

// No values: the shapes of trees alone. States that are lists.
// CHECK-LABEL: func.func @shapes
// CHECK: fractal.recurse %{{.*}}, %{{.*}}, %{{.*}} leaves() nodes()
// CHECK-SAME: -> !fractal.array<[5, 4] of tensor<1x8xf32>>
// CHECK-NEXT: leaf () {
// CHECK: } node (%[[S:.*]]) {
// CHECK-NEXT: fractal.reverse %[[S]]
func.func @shapes(%children: tensor<9x1xi32>, %levels: tensor<3xi32>, %roots: tensor<5xi32>,
    %zs: !fractal.array<[4] of !leaf>) {
  %r = fractal.recurse %children, %levels, %roots leaves() nodes()
      : (tensor<9x1xi32>, tensor<3xi32>, tensor<5xi32>) -> !fractal.array<[5, 4] of !leaf>
  leaf () {
    fractal.yield %zs : !fractal.array<[4] of !leaf>
  } node (%s) {
    %0 = fractal.reverse %s : !fractal.array<[4] of !leaf> -> !fractal.array<[4] of !leaf>
    fractal.yield %0 : !fractal.array<[4] of !leaf>
  }
  return
}
