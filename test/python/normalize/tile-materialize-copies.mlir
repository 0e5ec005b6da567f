// RUN: tile-opt %s --tile-materialize-copies --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-materialize-copies --tile-materialize-copies --split-input-file | FileCheck-22 %s

// CHECK-LABEL: @slice
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[T:.*]]: tensor<6x8xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[T]][1, 0] [4, 8] [1, 1]
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>) outs(%[[S]] : tensor<4x8xf32>)
// CHECK: tensor.insert_slice %[[C]] into %[[T]][1, 0] [4, 8] [1, 1]
// CHECK-NOT: linalg.generic
func.func @slice(%x: tensor<4x8xf32>, %t: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %r = tensor.insert_slice %x into %t[1, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

// -----

// The state gets a tensor of its own. What is made in a tensor of the iteration is handed on as it is: bufferization
// and tile-ping-pong-buffers find its place. Another value is copied into the state.

// CHECK-LABEL: @loop
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[INIT:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[E]] : tensor<8xf32>)
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %[[INIT]], %[[T:.*]] = %{{.*}})
// CHECK: %[[NEXT:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[T]] : tensor<8xf32>)
// CHECK: scf.yield %[[NEXT]], %[[COPY]]
// CHECK-NOT: linalg.generic
#id = affine_map<(d0) -> (d0)>
func.func @loop(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x, %t = %x) -> (tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    scf.yield %n, %x : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// The results of a choice have one layout: a slice is copied in its branch.
// CHECK-LABEL: func.func @choice
// CHECK: scf.if
// CHECK-NEXT: %[[S:.*]] = tensor.extract_slice
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[S]]
// CHECK: scf.yield %[[C]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %arg1
func.func @choice(%x: tensor<4x7xf32>, %y: tensor<4x3xf32>, %c: i1) -> tensor<4x3xf32> {
  %r = scf.if %c -> tensor<4x3xf32> {
    %s = tensor.extract_slice %x[0, 1] [4, 3] [1, 1] : tensor<4x7xf32> to tensor<4x3xf32>
    scf.yield %s : tensor<4x3xf32>
  } else {
    scf.yield %y : tensor<4x3xf32>
  }
  return %r : tensor<4x3xf32>
}

// -----

// An inner loop writes into the state of the outer one, which nothing reads later: no copy, though it is undefined at
// first. The second inner loop leaves the state that is still read alone.

// CHECK-LABEL: @inner
// CHECK: scf.for {{.*}} iter_args(%[[S:[^ ]*]] = %{{[^ ]*}}, %[[T:[^ ]*]] = %{{[^ ]*}}, {{.*}}) ->
// CHECK-NEXT: %[[OLD:.*]] = tensor.extract %[[S]]
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{[^ ]*}} = %[[S]])
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<8xf32>)
// CHECK: scf.for {{.*}} iter_args(%{{[^ ]*}} = %[[COPY]])
func.func @inner(%v: f32, %t0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8xf32>
  %u0 = tensor.empty() : tensor<8xf32>
  %r:3 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %e, %t = %t0, %u = %u0)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %old = tensor.extract %s[%i] : tensor<8xf32>
    %p = scf.for %j = %c0 to %c8 step %c1 iter_args(%x = %s) -> (tensor<8xf32>) {
      %y = tensor.insert %v into %x[%j] : tensor<8xf32>
      scf.yield %y : tensor<8xf32>
    }
    %q = scf.for %j = %c0 to %c8 step %c1 iter_args(%x = %t) -> (tensor<8xf32>) {
      %y = tensor.insert %old into %x[%j] : tensor<8xf32>
      scf.yield %y : tensor<8xf32>
    }
    %late = tensor.extract %t[%i] : tensor<8xf32>
    %w = tensor.insert %late into %u[%i] : tensor<8xf32>
    scf.yield %p, %q, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Two tensors that begin with the same part: each is put together in a place of its own.

// CHECK-LABEL: @parts
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3xf32>
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %[[E]][0]
// CHECK: %[[OWN:.*]] = tensor.empty() : tensor<3xf32>
// CHECK: %[[AGAIN:.*]] = tensor.insert_slice %{{.*}} into %[[OWN]][0]
// CHECK: tensor.insert_slice %{{.*}} into %[[AGAIN]][1]
// CHECK: tensor.insert_slice %{{.*}} into %[[A]][1]
func.func @parts(%x: tensor<1xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %a = tensor.insert_slice %x into %e[0] [1] [1] : tensor<1xf32> into tensor<3xf32>
  %b = tensor.insert_slice %y into %a[1] [2] [1] : tensor<2xf32> into tensor<3xf32>
  %c = tensor.insert_slice %z into %a[1] [2] [1] : tensor<2xf32> into tensor<3xf32>
  return %b, %c : tensor<3xf32>, tensor<3xf32>
}

// A part that is filled is one of them, and what follows may be made by an operation whose last operand is no tensor.

// CHECK-LABEL: @filled_part
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3xi64>
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %[[E]][0]
// CHECK: %[[OWN:.*]] = tensor.empty() : tensor<3xi64>
// CHECK: %[[CUT:.*]] = tensor.extract_slice %[[OWN]][0]
// CHECK: %[[FILL:.*]] = linalg.fill {{.*}} outs(%[[CUT]] : tensor<1xi64>)
// CHECK: %[[AGAIN:.*]] = tensor.insert_slice %[[FILL]] into %[[OWN]][0]
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[AGAIN]][1]
// CHECK: %[[B:.*]] = tensor.insert %{{.*}} into %[[PLACE]][%{{.*}}] : tensor<2xi64>
// CHECK: tensor.insert_slice %[[B]] into %[[AGAIN]][1]
// CHECK: tensor.insert_slice %{{.*}} into %[[A]][1]
func.func @filled_part(%n: i64, %z: tensor<2xi64>, %at: index) -> (tensor<3xi64>, tensor<3xi64>) {
  %c16 = arith.constant 16 : i64
  %e = tensor.empty() : tensor<3xi64>
  %s = tensor.extract_slice %e[0] [1] [1] : tensor<3xi64> to tensor<1xi64>
  %f = linalg.fill ins(%c16 : i64) outs(%s : tensor<1xi64>) -> tensor<1xi64>
  %a = tensor.insert_slice %f into %e[0] [1] [1] : tensor<1xi64> into tensor<3xi64>
  %p = tensor.extract_slice %a[1] [2] [1] : tensor<3xi64> to tensor<2xi64>
  %y = tensor.insert %n into %p[%at] : tensor<2xi64>
  %b = tensor.insert_slice %y into %a[1] [2] [1] : tensor<2xi64> into tensor<3xi64>
  %c = tensor.insert_slice %z into %a[1] [2] [1] : tensor<2xi64> into tensor<3xi64>
  return %b, %c : tensor<3xi64>, tensor<3xi64>
}

// -----

// In a loop no tensor is in two results of a branch, and two tensors from before are not one result: to bufferization
// they would be one.

// CHECK-LABEL: @apart
// CHECK: scf.for
// CHECK: %[[R:.*]]:2 = scf.if
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.tanh
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[E]]
// CHECK: scf.yield %[[E]], %[[COPY]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[A:.*]], %[[B:.*]] :
// CHECK: scf.if
// CHECK-NEXT: scf.yield %[[R]]#0
// CHECK: } else {
// CHECK: %[[OTHER:.*]] = linalg.generic {{.*}} ins(%[[R]]#1
// CHECK: scf.yield %[[OTHER]]
#id = affine_map<(m) -> (m)>
func.func @apart(%x: tensor<8xf32>, %n: index, %on: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (tensor<8xf32>, tensor<8xf32>) {
    %r:2 = scf.if %on -> (tensor<8xf32>, tensor<8xf32>) {
      %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%p: f32, %o: f32):
        %h = math.tanh %p : f32
        linalg.yield %h : f32
      } -> tensor<8xf32>
      scf.yield %t, %t : tensor<8xf32>, tensor<8xf32>
    } else {
      scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
    }
    %q = scf.if %on -> (tensor<8xf32>) {
      scf.yield %r#0 : tensor<8xf32>
    } else {
      scf.yield %r#1 : tensor<8xf32>
    }
    scf.yield %q, %r#0 : tensor<8xf32>, tensor<8xf32>
  }
  return %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A tensor that dimensions of 1 are added to is copied without them: its maker can write there. One whose other
// dimensions are cut, too, is copied as it is inserted.

// CHECK-LABEL: @ones
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<4x2x1x4xf32>, %[[T:.*]]: tensor<4x3x8xf32>,
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[S:.*]] = tensor.extract_slice %[[T]][0, 1, 0] [4, 1, 8] [1, 1, 1] : tensor<4x3x8xf32> to tensor<4x8xf32>
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>) outs(%[[S]] : tensor<4x8xf32>)
// CHECK: tensor.insert_slice %[[C]] into %[[T]][0, 1, 0] [4, 1, 8] [1, 1, 1]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[X]]
// CHECK: linalg.generic {{.*}} ins(%[[E]] : tensor<4x2x1x4xf32>)
func.func @ones(%x: tensor<4x8xf32>, %y: tensor<4x2x1x4xf32>, %t: tensor<4x3x8xf32>, %u: tensor<4x2x3x4xf32>)
    -> (tensor<4x3x8xf32>, tensor<4x2x3x4xf32>) {
  %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 1, 8] : tensor<4x8xf32> into tensor<4x1x8xf32>
  %r = tensor.insert_slice %e into %t[0, 1, 0] [4, 1, 8] [1, 1, 1] : tensor<4x1x8xf32> into tensor<4x3x8xf32>
  %f = tensor.expand_shape %x [[0], [1, 2, 3]] output_shape [4, 2, 1, 4] : tensor<4x8xf32> into tensor<4x2x1x4xf32>
  %s = tensor.insert_slice %f into %u[0, 0, 1, 0] [4, 2, 1, 4] [1, 1, 1, 1]
      : tensor<4x2x1x4xf32> into tensor<4x2x3x4xf32>
  return %r, %s : tensor<4x3x8xf32>, tensor<4x2x3x4xf32>
}

// Sizes of a run: what is inserted is made in its place, or copied there.

// CHECK-LABEL: func.func @open
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[T:.*]]: tensor<?x8xf32>, %[[N:.*]]: index, %[[AT:.*]]: index)
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[T]][%[[AT]], 0] [%[[N]], 8] [1, 1]
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<?x8xf32>) outs(%[[PLACE]] : tensor<?x8xf32>)
// CHECK: tensor.insert_slice %[[COPY]] into %[[T]][%[[AT]], 0] [%[[N]], 8] [1, 1]
func.func @open(%x: tensor<?x8xf32>, %t: tensor<?x8xf32>, %n: index, %at: index) -> tensor<?x8xf32> {
  %r = tensor.insert_slice %x into %t[%at, 0] [%n, 8] [1, 1] : tensor<?x8xf32> into tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Sizes that are chosen: bufferization would compare them for minutes.

// CHECK-LABEL: func.func @chosen
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @chosen(%x: tensor<?x8xf32>, %t: tensor<?x8xf32>, %n: index, %m: index, %c: i1) -> tensor<?x8xf32> {
  %k = arith.select %c, %n, %m : index
  %r = tensor.insert_slice %x into %t[0, 0] [%k, 8] [1, 1] : tensor<?x8xf32> into tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// A place that is chosen, for a part whose sizes are known: copied there.

// CHECK-LABEL: func.func @chosen_place
// CHECK-SAME: (%[[X:.*]]: tensor<1x8xf32>, %[[T:.*]]: tensor<4x8xf32>, %{{.*}}: index)
// CHECK: %[[AT:.*]] = arith.minsi
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[T]][%[[AT]], 0] [1, 8] [1, 1]
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x8xf32>) outs(%[[PLACE]] : tensor<1x8xf32>)
// CHECK: tensor.insert_slice %[[COPY]] into %[[T]][%[[AT]], 0] [1, 8] [1, 1]
func.func @chosen_place(%x: tensor<1x8xf32>, %t: tensor<4x8xf32>, %n: index) -> tensor<4x8xf32> {
  %c3 = arith.constant 3 : index
  %at = arith.minsi %n, %c3 : index
  %r = tensor.insert_slice %x into %t[%at, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
