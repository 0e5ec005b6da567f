// RUN: tile-opt %s --tile-hoist-init --split-input-file | FileCheck-22 %s

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

ml_program.global private @w(#ml_program.extern<tensor<7x4x8xf32>>) : tensor<7x4x8xf32>
ml_program.global private @v(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>

// Rows of a list of weights are known, of each iteration; what all iterations share is made once.
// CHECK: func.func private @init() -> (tensor<7x8x4xf32> {tile.global = "p_0"}) {
// CHECK: %[[V:.*]] = ml_program.global_load_const @v
// CHECK: %[[SHARED:.*]] = linalg.generic {{.*}} ins(%[[V]]
// CHECK: %[[LIST:.*]] = scf.for %[[N:[a-z0-9]+]] = %c0{{.*}} to %c7{{.*}} iter_args(%[[DONE:.*]] = %{{.*}})
// CHECK: %[[ROW:.*]] = tensor.extract_slice %{{.*}}[%[[N]], 0, 0] [1, 4, 8]
// CHECK: %[[MADE:.*]] = linalg.generic {{.*}} ins(%[[ROW]], %[[SHARED]]
// CHECK: %[[MORE:.*]] = tensor.insert_slice %[[MADE]] into %[[DONE]][%[[N]], 0, 0] [1, 8, 4]
// CHECK: scf.yield %[[MORE]]
// CHECK: return %[[LIST]]

// The row itself is a view of a weight.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[N:[a-z0-9]+]] =
// CHECK-DAG: %[[P:[a-z0-9_]+]] = ml_program.global_load_const @p_0
// CHECK-DAG: %[[OWN:.*]] = tensor.extract_slice %[[P]][%[[N]], 0, 0] [1, 8, 4]
// CHECK-DAG: %[[VIEW:.*]] = tensor.extract_slice %{{.*}}[%[[N]], 0, 0] [1, 4, 8]
// CHECK: linalg.generic {{.*}} ins(%[[OWN]], %[[VIEW]], %arg
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %w = ml_program.global_load_const @w : tensor<7x4x8xf32>
  %v = ml_program.global_load_const @v : tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %r = scf.for %n = %c0 to %c7 step %c1 iter_args(%s = %x) -> (tensor<8x4xf32>) {
    %shared = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%v : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.tanh %a : f32
      linalg.yield %0 : f32
    } -> tensor<8x4xf32>
    %row = tensor.extract_slice %w[%n, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<7x4x8xf32> to tensor<4x8xf32>
    %made = linalg.generic {indexing_maps = [#t, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%row, %shared : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.mulf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x4xf32>
    %next = linalg.generic {indexing_maps = [#id, #t, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%made, %row, %s : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %0, %c : f32
      linalg.yield %1 : f32
    } -> tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

ml_program.global private @w(#ml_program.extern<tensor<7x8xf32>>) : tensor<7x8xf32>

// Each of these is of a run: rows at every second place, rows of two loops, and a loop whose length is not known.
// CHECK-NOT: @init
// CHECK-COUNT-3: linalg.generic
func.func @main(%x: tensor<8xf32>, %end: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %w = ml_program.global_load_const @w : tensor<7x8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %n = %c0 to %c7 step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %row = tensor.extract_slice %w[%n, 0] [1, 8] [1, 1] : tensor<7x8xf32> to tensor<8xf32>
    %q = scf.for %m = %c0 to %c7 step %c1 iter_args(%t = %s) -> (tensor<8xf32>) {
      %other = tensor.extract_slice %w[%m, 0] [1, 8] [1, 1] : tensor<7x8xf32> to tensor<8xf32>
      %both = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
          ins(%row, %other : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %0 = arith.mulf %a, %b : f32
        linalg.yield %0 : f32
      } -> tensor<8xf32>
      %u = tensor.insert_slice %both into %t[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
      scf.yield %u : tensor<8xf32>
    }
    scf.yield %q : tensor<8xf32>
  }
  %p = scf.for %n = %c0 to %c7 step %c2 iter_args(%s = %r) -> (tensor<8xf32>) {
    %row = tensor.extract_slice %w[%n, 0] [1, 8] [1, 1] : tensor<7x8xf32> to tensor<8xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%row : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.tanh %a : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  %z = scf.for %n = %c0 to %end step %c1 iter_args(%s = %p) -> (tensor<8xf32>) {
    %row = tensor.extract_slice %w[%n, 0] [1, 8] [1, 1] : tensor<7x8xf32> to tensor<8xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%row : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %z : tensor<8xf32>
}
