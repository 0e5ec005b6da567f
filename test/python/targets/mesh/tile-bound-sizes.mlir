// RUN: tile-opt %s --tile-set-target=target=mesh:toy8x8 --tile-bound-sizes 2>&1 | FileCheck-22 %s

// CHECK: remark: outside of the grid: a run brings the size of dimension 0, and nothing says how large it may be
// CHECK: remark: outside of the grid: it may become 4096x1024xf32, which are 16,777,216 bytes, and all cores together
// CHECK-SAME: have 3,145,728

#one = affine_map<(i) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A loop counts no further than it runs; what an assertion says of that is exact. Elements may be read that nothing
// wrote, so they are zeros, and places that are made of them lie in the tensor.
// CHECK-LABEL: func.func @counted
// CHECK: cf.assert
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<5xi64>
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} outs(%[[EMPTY]] : tensor<5xi64>)
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[ZEROS]]) -> (index, tensor<5xi64>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<5xf32>)
// CHECK: tensor.extract %[[LOOP]]#1
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: %[[RESULT:.*]] = tensor.extract_slice %{{.*}}[0] [%{{.*}}] [1] : tensor<5xf32> to tensor<?xf32>
// CHECK: return %[[RESULT]]
func.func @counted(%x: tensor<8xf32>, %holds: tensor<8xi1>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %n = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %c0) -> index {
    %is = tensor.extract %holds[%i] : tensor<8xi1>
    %more = arith.select %is, %c1, %c0 : index
    %next = arith.addi %sum, %more : index
    scf.yield %next : index
  }
  %few = arith.cmpi slt, %n, %c6 : index
  cf.assert %few, "six or more hold"
  %e = tensor.empty(%n) : tensor<?xi64>
  %at:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%k = %c0, %t = %e) -> (index, tensor<?xi64>) {
    %is = tensor.extract %holds[%i] : tensor<8xi1>
    %next:2 = scf.if %is -> (index, tensor<?xi64>) {
      %j = arith.index_cast %i : index to i64
      %u = tensor.insert %j into %t[%k] : tensor<?xi64>
      %l = arith.addi %k, %c1 : index
      scf.yield %l, %u : index, tensor<?xi64>
    } else {
      scf.yield %k, %t : index, tensor<?xi64>
    }
    scf.yield %next#0, %next#1 : index, tensor<?xi64>
  }
  %d = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%d : tensor<?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %p = tensor.extract %at#1[%i] : tensor<?xi64>
    %q = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%q] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// What does not count is left out of sums, and is 0 in products.
// CHECK-LABEL: func.func @summed
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x8xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK: %[[COUNTS:.*]] = arith.cmpi slt
// CHECK: %[[TERM:.*]] = arith.select %[[COUNTS]], %{{.*}}, %{{.*}} : f32
// CHECK: arith.maximumf %{{.*}}, %[[TERM]]
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x3xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
func.func @summed(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %n: index) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[0, 0] [4, %n] [1, 1] : tensor<4x8xf32> to tensor<4x?xf32>
  %b = tensor.extract_slice %w[0, 0] [%n, 3] [1, 1] : tensor<8x3xf32> to tensor<?x3xf32>
  %c = tensor.empty() : tensor<4xf32>
  %c0 = linalg.fill ins(%low : f32) outs(%c : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x?xf32>) outs(%c0 : tensor<4xf32>) {
  ^bb0(%v: f32, %most: f32):
    %p = arith.maximumf %most, %v : f32
    linalg.yield %p : f32
  } -> tensor<4xf32>
  %d = tensor.empty() : tensor<4x3xf32>
  %d0 = linalg.fill ins(%zero : f32) outs(%d : tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x?xf32>, tensor<?x3xf32>) outs(%d0 : tensor<4x3xf32>) {
  ^bb0(%u: f32, %v: f32, %sum: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %sum, %p : f32
    linalg.yield %q : f32
  } -> tensor<4x3xf32>
  return %0, %1 : tensor<4xf32>, tensor<4x3xf32>
}

// Slices at places of a run, and reshapes, pick their elements.
// CHECK-LABEL: func.func @placed
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x3xf32>)
// CHECK: tensor.extract %{{.*}} : tensor<8x3xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<9x4xf32>) outs(%{{.*}} : tensor<9x4xf32>)
// CHECK: arith.select
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<8x3xf32> into tensor<24xf32>
// CHECK: tensor.extract_slice {{.*}} : tensor<24xf32> to tensor<?xf32>
func.func @placed(%x: tensor<8x3xf32>, %y: tensor<9x4xf32>, %at: index, %n: index)
    -> (tensor<9x4xf32>, tensor<?xf32>) {
  %a = tensor.extract_slice %x[%at, 0] [%n, 3] [1, 1] : tensor<8x3xf32> to tensor<?x3xf32>
  %b = tensor.insert_slice %a into %y[%at, 1] [%n, 3] [1, 1] : tensor<?x3xf32> into tensor<9x4xf32>
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
  return %b, %c : tensor<9x4xf32>, tensor<?xf32>
}

// What branches in a body is left as it is: what does not count might divide by 0 there.
// CHECK-LABEL: func.func @branching
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<?xi32>) outs(%{{.*}} : tensor<?xi32>)
func.func @branching(%x: tensor<8xi32>, %n: index) -> tensor<?xi32> {
  %a = tensor.extract_slice %x[0] [%n] [1] : tensor<8xi32> to tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%a : tensor<?xi32>) outs(%e : tensor<?xi32>) {
  ^bb0(%v: i32, %out: i32):
    %c7 = arith.constant 7 : i32
    %is = arith.cmpi slt, %v, %c7 : i32
    %s = scf.if %is -> i32 {
      %q = arith.divsi %c7, %v : i32
      scf.yield %q : i32
    } else {
      scf.yield %v : i32
    }
    linalg.yield %s : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}

// One of two sizes, as a branch is taken.
// CHECK-LABEL: func.func @either
// CHECK: %[[SIZE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK: %[[RESULT:.*]] = scf.if {{.*}} -> (tensor<6xf32>)
// CHECK: tensor.insert_slice {{.*}} : tensor<4xf32> into tensor<6xf32>
// CHECK: tensor.extract_slice %[[RESULT]][0] [%[[SIZE]]] [1]
func.func @either(%x: tensor<6xf32>, %is: i1) -> tensor<?xf32> {
  %0 = scf.if %is -> tensor<?xf32> {
    %all = tensor.cast %x : tensor<6xf32> to tensor<?xf32>
    scf.yield %all : tensor<?xf32>
  } else {
    %few = tensor.extract_slice %x[2] [4] [1] : tensor<6xf32> to tensor<4xf32>
    %cast = tensor.cast %few : tensor<4xf32> to tensor<?xf32>
    scf.yield %cast : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// What one value of a loop hands to another has the size that it has got by then: of the first loop they change places
// and keep theirs, of the others one is cut in each turn, and the next turn hands that on.
// CHECK-LABEL: func.func @handed_on
// CHECK: scf.for {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: scf.for {{.*}} -> (tensor<?xf32>, tensor<?xf32>)
// CHECK: scf.while {{.*}} : (tensor<?xf32>, tensor<?xf32>, index) -> (tensor<?xf32>, tensor<?xf32>, index)
func.func @handed_on(%x: tensor<8xf32>, %n: index, %m: index) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = tensor.extract_slice %x[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
  %0:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %a) -> (tensor<?xf32>, tensor<?xf32>) {
    scf.yield %q, %p : tensor<?xf32>, tensor<?xf32>
  }
  %1:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %a) -> (tensor<?xf32>, tensor<?xf32>) {
    %s = tensor.extract_slice %p[0] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.yield %s, %p : tensor<?xf32>, tensor<?xf32>
  }
  %2:3 = scf.while (%p = %a, %q = %a, %k = %c0) : (tensor<?xf32>, tensor<?xf32>, index)
      -> (tensor<?xf32>, tensor<?xf32>, index) {
    %more = arith.cmpi slt, %k, %c3 : index
    scf.condition(%more) %p, %q, %k : tensor<?xf32>, tensor<?xf32>, index
  } do {
  ^bb0(%p: tensor<?xf32>, %q: tensor<?xf32>, %k: index):
    %s = tensor.extract_slice %p[0] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    %l = arith.addi %k, %c1 : index
    scf.yield %s, %p, %l : tensor<?xf32>, tensor<?xf32>, index
  }
  return %0#1, %1#1, %2#1 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// A size that becomes known behind a loop: what the loop gives is read as it is.
// CHECK-LABEL: func.func @known
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} -> (tensor<6xi64>)
// CHECK: %[[RESULT:.*]] = tensor.cast %[[LOOP]] : tensor<6xi64> to tensor<6xi64>
// CHECK: return %[[RESULT]] : tensor<6xi64>
func.func @known(%n: index) -> tensor<6xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %is = arith.cmpi eq, %n, %c6 : index
  cf.assert %is, "not six"
  %e = tensor.empty(%n) : tensor<?xi64>
  %0 = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %e) -> tensor<?xi64> {
    %j = arith.index_cast %i : index to i64
    %u = tensor.insert %j into %t[%i] : tensor<?xi64>
    scf.yield %u : tensor<?xi64>
  }
  %1 = tensor.cast %0 : tensor<?xi64> to tensor<6xi64>
  return %1 : tensor<6xi64>
}

// What has no bound stays as it is, and says so; so does what grows from turn to turn.
// CHECK-LABEL: func.func @unbounded
// CHECK: tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf32>)
// CHECK: scf.for {{.*}} -> (tensor<?xf32>)
func.func @unbounded(%n: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%out: f32):
    linalg.yield %one : f32
  } -> tensor<?xf32>
  %s = tensor.empty(%c1) : tensor<?xf32>
  %g = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %s) -> tensor<?xf32> {
    %d = tensor.dim %t, %c0 : tensor<?xf32>
    %m = arith.addi %d, %c1 : index
    %u = tensor.empty(%m) : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  return %r, %g : tensor<?xf32>, tensor<?xf32>
}

// So does what is too large for all cores together.
// CHECK-LABEL: func.func @large
// CHECK: tensor.extract_slice %{{.*}} : tensor<4096x1024xf32> to tensor<?x1024xf32>
func.func @large(%x: tensor<4096x1024xf32>, %n: index) -> tensor<?x1024xf32> {
  %0 = tensor.extract_slice %x[0, 0] [%n, 1024] [1, 1] : tensor<4096x1024xf32> to tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}
