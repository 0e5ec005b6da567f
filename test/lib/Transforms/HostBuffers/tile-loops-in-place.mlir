// RUN: tile-opt %s -tile-loops-in-place -split-input-file | FileCheck-22 %s

// What a loop yields is placed in its argument; what it only passes on is left alone.
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}})
// CHECK: %[[N:.*]] = tile.launch @k
// CHECK: %[[P:.*]] = bufferization.materialize_in_destination %[[N]] in %[[H]]
// CHECK: scf.yield %[[P]], %[[K]]
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%h0: tensor<4xf32>, %k0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0, %k = %k0) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %n = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %n, %k : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A loop with a condition: the state that the condition passes on. Sizes that change have no place.
// CHECK: scf.while
// CHECK: ^bb0(%[[H:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<?xf32>):
// CHECK: %[[N:.*]] = tile.launch
// CHECK: %[[P:.*]] = bufferization.materialize_in_destination %[[N]] in %[[H]]
// CHECK: scf.yield %{{.*}}, %[[P]]
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%h0: tensor<4xf32>, %s0: tensor<?xf32>, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %r:2 = scf.while (%s = %s0, %h = %h0) : (tensor<?xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?xf32>) {
    %x = tensor.extract %h[%c0] : tensor<4xf32>
    %go = arith.cmpf olt, %x, %v : f32
    scf.condition(%go) %h, %s : tensor<4xf32>, tensor<?xf32>
  } do {
  ^bb0(%h: tensor<4xf32>, %s: tensor<?xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %n = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    %t = tensor.insert %v into %s[%c0] : tensor<?xf32>
    scf.yield %t, %n : tensor<?xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// -----

// A tensor from before the loop, whose contents do not matter, is made in each iteration.
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %{{.*}})
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: tile.launch @k ins(%[[H]] : tensor<4xf32>) outs(%[[E]] : tensor<4xf32>)
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%h0: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
    %n = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// What is overwritten step by step, in loops and branches too, stays in its buffer: a place would be a copy.
// CHECK: func.func @main(%{{.*}}: index, %{{.*}}: f32)
// CHECK-NOT: materialize_in_destination
func.func @main(%n: index, %v: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %e, %b = %f) -> (tensor<4xf32>, tensor<4xf32>) {
    %filled = scf.for %j = %c0 to %c4 step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
      %y = tensor.insert %v into %x[%j] : tensor<4xf32>
      scf.yield %y : tensor<4xf32>
    }
    %first = tensor.extract %filled[%c0] : tensor<4xf32>
    %less = arith.cmpf olt, %first, %v : f32
    %chosen = scf.if %less -> (tensor<4xf32>) {
      %y = tensor.insert %v into %filled[%i] : tensor<4xf32>
      scf.yield %y : tensor<4xf32>
    } else {
      scf.yield %filled : tensor<4xf32>
    }
    %c:2 = scf.while (%k = %c0, %x = %b) : (index, tensor<4xf32>) -> (index, tensor<4xf32>) {
      %go = arith.cmpi ult, %k, %i : index
      scf.condition(%go) %k, %x : index, tensor<4xf32>
    } do {
    ^bb0(%k: index, %x: tensor<4xf32>):
      %z = tensor.extract %chosen[%k] : tensor<4xf32>
      %y = tensor.insert %z into %x[%k] : tensor<4xf32>
      %next = arith.addi %k, %c1 : index
      scf.yield %next, %y : index, tensor<4xf32>
    }
    scf.yield %chosen, %c#1 : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The old state is read after the new one is written: two tensors, so the new one is placed.
// CHECK: func.func @main(%{{.*}}: tensor<4xf32>, %{{.*}}: index, %{{.*}}: f32)
// CHECK: scf.for {{.*}} iter_args(%[[A:[^ ]*]] = %{{[^ ]*}}) -> (tensor<4xf32>) {
// CHECK: %[[Y:.*]] = tensor.insert
// CHECK: %[[Z:.*]] = tensor.insert %{{.*}} into %[[Y]]
// CHECK: %[[P:.*]] = bufferization.materialize_in_destination %[[Z]] in %[[A]]
// CHECK: scf.yield %[[P]]
func.func @main(%a0: tensor<4xf32>, %n: index, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0) -> (tensor<4xf32>) {
    %y = tensor.insert %v into %a[%c0] : tensor<4xf32>
    %old = tensor.extract %a[%c0] : tensor<4xf32>
    %z = tensor.insert %old into %y[%c1] : tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// An inner loop starts from a state that is still read: it gets a copy, and its result is placed.
// CHECK: func.func @main(%{{.*}}: tensor<8xf32>, %{{.*}}: index, %{{.*}}: f32)
// CHECK: scf.for {{.*}} iter_args(%[[A:[^ ]*]] = %{{[^ ]*}}) -> (tensor<8xf32>) {
// CHECK: %[[C:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%{{[^ ]*}} = %[[C]])
// CHECK: %[[Z:.*]] = tensor.insert %{{.*}} into %[[R]]
// CHECK: %[[P:.*]] = bufferization.materialize_in_destination %[[Z]] in %[[A]]
// CHECK: scf.yield %[[P]]
func.func @main(%a0: tensor<8xf32>, %n: index, %v: f32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0) -> (tensor<8xf32>) {
    %filled = scf.for %j = %c0 to %i step %c1 iter_args(%x = %a) -> (tensor<8xf32>) {
      %y = tensor.insert %v into %x[%j] : tensor<8xf32>
      scf.yield %y : tensor<8xf32>
    }
    %old = tensor.extract %a[%c0] : tensor<8xf32>
    %z = tensor.insert %old into %filled[%c1] : tensor<8xf32>
    scf.yield %z : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
