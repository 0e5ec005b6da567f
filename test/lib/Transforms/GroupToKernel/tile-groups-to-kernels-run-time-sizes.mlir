// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse -split-input-file | FileCheck %s

// Rows known at run time only: tasks of up to 16 of them, as many as it takes. In each, whole tiles of 8 rows, then
// tiles of 4 and of 1 for what is left.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK: #[[$SIZE:.*]] = affine_map<()[s0, s1] -> (s0 * -16 + s1, 16)>
// CHECK: #[[$EIGHTS:.*]] = affine_map<(d0) -> ((d0 floordiv 8) * 8)>
// CHECK: #[[$FOURS:.*]] = affine_map<(d0) -> ((d0 floordiv 4) * 4)>
// CHECK: #[[$COUNT:.*]] = affine_map<()[s0] -> (s0 ceildiv 16)>
// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: (%[[A:.*]]: memref<?x64xf32>, %{{.*}}: memref<64x32xf32>, %[[Y:.*]]: memref<?x32xf32>) grid(%[[I:.*]])
// CHECK: %[[N:.*]] = memref.dim %[[A]], %c0
// CHECK: %[[HERE:.*]] = affine.min #[[$SIZE]]()[%[[I]], %[[N]]]
// CHECK-DAG: %[[END:.*]] = affine.apply #[[$EIGHTS]](%[[HERE]])
// CHECK-DAG: %[[NEXT:.*]] = affine.apply #[[$FOURS]](%[[HERE]])
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c8
// CHECK: tile.mma {{.*}} !tile.tile<8x32xf32>
// CHECK: scf.for %{{.*}} = %[[END]] to %[[NEXT]] step %c4
// CHECK: tile.mma {{.*}} !tile.tile<4x32xf32>
// CHECK: scf.for %{{.*}} = %[[NEXT]] to %[[HERE]] step %c1
// CHECK: tile.mma {{.*}} !tile.tile<1x32xf32>
// CHECK-NOT: tile.mma
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %{{.*}}: tensor<64x32xf32>, %[[ROWS:.*]]: index)
// CHECK-DAG: %[[TASKS:.*]] = affine.apply #[[$COUNT]]()[%{{.*}}]
// CHECK-DAG: %[[PLACE:.*]] = tensor.empty(%[[ROWS]]) : tensor<?x32xf32>
// CHECK: tile.launch @rows grid(%[[TASKS]])
func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x32xf32>, %n: index) -> tensor<?x32xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<?x64xf32>, %w1 = %w : tensor<64x32xf32>, %n1 = %n : index)
      -> (tensor<?x32xf32>) attributes {tile.kernel = "rows"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<?x64xf32>, %w2 = %w1 : tensor<64x32xf32>, %n2 = %n1 : index)
        -> (tensor<?x32xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%n2) : tensor<?x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<?x64xf32>, tensor<64x32xf32>) outs(%f : tensor<?x32xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [16, 32, 64], register = [8, 32, 1], order = [0, 1, 2]>,
                   tile.tails = [array<i64: 4, 1>, array<i64>, array<i64>]} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %m = arith.mulf %q, %s : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<?x32xf32>
      tile.yield %p : tensor<?x32xf32>
    }
    tile.yield %r : tensor<?x32xf32>
  }
  return %y : tensor<?x32xf32>
}

// -----

// What a task hands from nest to nest along a row of unknown length has no place in the task: the kernel gets a buffer
// of the host for it. The sum of the row stays in the task.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: tile.kernel @softmax
// CHECK-SAME: (%[[X:.*]]: memref<4x?xf32>, %[[Y:.*]]: memref<4x?xf32>, %[[E:.*]]: memref<4x?xf32>)
// CHECK: tile.alloc : memref<1xf32, #tile.level<"l2">>
// CHECK-NOT: tile.alloc
// CHECK: tile.store %{{.*}}, %[[E]]
// CHECK: tile.load %[[E]]
// CHECK: tile.store %{{.*}}, %[[Y]]
// CHECK-LABEL: func.func @main
// CHECK: %[[OUT:.*]]:2 = tile.launch @softmax
// CHECK: return %[[OUT]]#0
func.func @main(%x: tensor<4x?xf32>, %n: index) -> tensor<4x?xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<4x?xf32>, %n1 = %n : index) -> (tensor<4x?xf32>)
      attributes {tile.kernel = "softmax"} {
    %e:2 = tile.group "register" (%x2 = %x1 : tensor<4x?xf32>, %n2 = %n1 : index) -> (tensor<4x?xf32>, tensor<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty(%n2) : tensor<4x?xf32>
      %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x2 : tensor<4x?xf32>) outs(%empty : tensor<4x?xf32>) {
      ^bb0(%q: f32, %o: f32):
        %t = math.exp %q : f32
        linalg.yield %t : f32
      } -> tensor<4x?xf32>
      %small = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%small : tensor<4xf32>) -> tensor<4xf32>
      %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<4x?xf32>) outs(%f : tensor<4xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [1, ?], register = [1, 16], order = [0, 1]>} {
      ^bb0(%q: f32, %o: f32):
        %t = arith.addf %o, %q : f32
        linalg.yield %t : f32
      } -> tensor<4xf32>
      tile.yield %a, %s : tensor<4x?xf32>, tensor<4xf32>
    }
    %r = tile.group "register" (%a2 = %e#0 : tensor<4x?xf32>, %s2 = %e#1 : tensor<4xf32>, %n2 = %n1 : index)
        -> (tensor<4x?xf32>) {
      %empty = tensor.empty(%n2) : tensor<4x?xf32>
      %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%a2, %s2 : tensor<4x?xf32>, tensor<4xf32>) outs(%empty : tensor<4x?xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [1, ?], register = [1, 16], order = [0, 1]>} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %t = arith.divf %q, %s : f32
        linalg.yield %t : f32
      } -> tensor<4x?xf32>
      tile.yield %d : tensor<4x?xf32>
    }
    tile.yield %r : tensor<4x?xf32>
  }
  return %y : tensor<4x?xf32>
}

