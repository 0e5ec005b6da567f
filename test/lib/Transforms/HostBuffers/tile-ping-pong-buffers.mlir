// RUN: tile-opt %s -tile-ping-pong-buffers -split-input-file | FileCheck-22 %s

// The next state is made in a buffer of its own: the two buffers change places. Behind the loop the state is where the
// last iteration has put it.
// CHECK-LABEL: func.func @main
// CHECK: %[[H:.*]] = memref.alloc()
// CHECK: tile.launch @k {{.*}} outs(%[[H]]
// CHECK: %[[N:.*]] = memref.alloc()
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[H]], %[[B:.*]] = %[[N]])
// CHECK-NEXT: tile.launch @k ins(%[[A]] : memref<4xf32>) outs(%[[B]] : memref<4xf32>)
// CHECK-NEXT: scf.yield %[[B]], %[[A]]
// CHECK: tile.launch @k ins(%[[R]]#0
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%n: index, %x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.alloc() : memref<4xf32>
  tile.launch @k ins(%x : memref<4xf32>) outs(%h : memref<4xf32>)
  scf.for %i = %c0 to %n step %c1 {
    %next = memref.alloc() : memref<4xf32>
    tile.launch @k ins(%h : memref<4xf32>) outs(%next : memref<4xf32>)
    memref.copy %next, %h : memref<4xf32> to memref<4xf32>
  }
  tile.launch @k ins(%h : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

// -----

// The state is read behind the copy, made elsewhere, or seen through a view behind the loop: it is copied.
// CHECK-LABEL: func.func @main
// CHECK: memref.copy
// CHECK-NEXT: tile.launch
// CHECK: memref.copy %{{.*}}, %arg1
// CHECK: memref.copy
// CHECK: return
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%n: index, %x: memref<4xf32>, %y: memref<4xf32>, %z: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.alloc() : memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    %next = memref.alloc() : memref<4xf32>
    tile.launch @k ins(%h : memref<4xf32>) outs(%next : memref<4xf32>)
    memref.copy %next, %h : memref<4xf32> to memref<4xf32>
    tile.launch @k ins(%h : memref<4xf32>) outs(%y : memref<4xf32>)
  }
  scf.for %i = %c0 to %n step %c1 {
    %next = memref.alloc() : memref<4xf32>
    tile.launch @k ins(%x : memref<4xf32>) outs(%next : memref<4xf32>)
    memref.copy %next, %x : memref<4xf32> to memref<4xf32>
  }
  %g = memref.alloc() : memref<4xf32>
  %v = memref.expand_shape %g [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  scf.for %i = %c0 to %n step %c1 {
    %next = memref.alloc() : memref<4xf32>
    tile.launch @k ins(%g : memref<4xf32>) outs(%next : memref<4xf32>)
    memref.copy %next, %g : memref<4xf32> to memref<4xf32>
  }
  memref.copy %v, %z : memref<2x2xf32> to memref<2x2xf32>
  return
}
