// RUN: tile-opt %s --convert-fractal-to-linalg=chunk=3 --canonicalize --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck-22 %s

!leaf = tensor<1x8xf32>

// Loops over chunks of leaves, then of nodes. A lane is for a node: behind the level's end, for its last one. The
// second loop carries which level it is in, and the next node.
// CHECK-LABEL: @trees(
// CHECK-SAME: %[[WORDS:.*]]: tensor<4x1x8xf32>, %[[CHILDREN:.*]]: tensor<7x2xi32>, %[[LEVELS:.*]]: tensor<4xi32>
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<9x1x8xf32>
// CHECK: %[[LEAVES:.*]] = scf.for %[[FIRST:.*]] = %c0 to %{{.*}} step %c3 iter_args(%[[S:.*]] = %[[ZEROS]])
// CHECK: linalg.generic
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK: arith.minsi %[[AT]], %[[LAST:.*]] : index
// CHECK: tensor.extract %[[WORDS]]
// CHECK: tensor.insert_slice %{{.*}} into %[[S]][%[[FIRST]], 0, 0] [3, 1, 8]
// CHECK: %[[CHUNKS:.*]] = scf.for {{.*}} -> (index)
// CHECK: %[[ALL:.*]]:3 = scf.for %{{.*}} = %c0 to %[[CHUNKS]] step %c1
// CHECK-SAME: iter_args(%[[S:.*]] = %[[LEAVES]], %[[LEVEL:.*]] = %c1, %[[AT:.*]] = %{{.*}})
// CHECK: %[[NODES:.*]] = linalg.generic
// CHECK: %[[LEFT:.*]] = linalg.generic {{.*}} ins(%[[NODES]] : tensor<3xi32>)
// CHECK: tensor.extract %[[CHILDREN]][%{{.*}}, %c0]
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: linalg.generic {{.*}} ins(%[[LEFT]]
// CHECK: tensor.extract %[[S]]
// CHECK: linalg.generic {{.*}} ins(%[[NODES]] : tensor<3xi32>)
// CHECK: tensor.extract %[[CHILDREN]][%{{.*}}, %c1]
// CHECK: arith.addf
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %{{.*}} into %[[S]][%{{.*}}, 0, 0] [3, 1, 8]
// CHECK: scf.yield %[[NEXT]], %{{.*}}, %{{.*}} : tensor<9x1x8xf32>, index, index
// CHECK: } -> tensor<1x1x8xf32>
func.func @trees(%words: !fractal.array<[4] of !leaf>, %children: tensor<7x2xi32>, %levels: tensor<4xi32>,
    %roots: tensor<1xi32>) -> !fractal.array<[1] of !leaf> {
  %r = fractal.recurse %children, %levels, %roots leaves(%words) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !fractal.array<[4] of !leaf>) -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    %0 = arith.addf %l, %m : !leaf
    fractal.yield %0 : !leaf
  }
  return %r : !fractal.array<[1] of !leaf>
}

// -----

!leaf = tensor<1x8xf32>

// A map around it: all its elements at once, in each lane. A value is read where its node stands.
// CHECK-LABEL: @in_map(
// CHECK-SAME: %[[TAGS:.*]]: tensor<7x1x8xf32>,
// CHECK: scf.for {{.*}} -> (tensor<9x5x1x8xf32>)
// CHECK: scf.for {{.*}} -> (tensor<9x5x1x8xf32>, index, index)
// CHECK: tensor.extract %[[TAGS]]
// CHECK: } -> tensor<3x5x1x8xf32>
func.func @in_map(%tags: !fractal.array<[7] of !leaf>, %children: tensor<7x2xi32>, %levels: tensor<4xi32>,
    %roots: tensor<2xi32>, %ws: !fractal.array<[5] of !leaf>) -> !fractal.array<[5, 2] of !leaf> {
  %r = fractal.map (%w = %ws) : (!fractal.array<[5] of !leaf>) -> !fractal.array<[5, 2] of !leaf> {
    %s = fractal.recurse %children, %levels, %roots leaves() nodes(%tags)
        : (tensor<7x2xi32>, tensor<4xi32>, tensor<2xi32>, !fractal.array<[7] of !leaf>)
        -> !fractal.array<[2] of !leaf>
    leaf () {
      fractal.yield %w : !leaf
    } node (%l, %m, %tag) {
      %0 = arith.mulf %l, %w : !leaf
      %1 = arith.addf %0, %m : !leaf
      %2 = arith.addf %1, %tag : !leaf
      fractal.yield %2 : !leaf
    }
    fractal.yield %s : !fractal.array<[2] of !leaf>
  }
  return %r : !fractal.array<[5, 2] of !leaf>
}
