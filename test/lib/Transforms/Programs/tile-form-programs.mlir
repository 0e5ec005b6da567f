// RUN: tile-opt %s --tile-form-programs --split-input-file --verify-diagnostics | FileCheck-22 %s

// Two steps are a program. The second launch of a step has one task: unit 1 waits for it, unit 0 has done it.
// CHECK-LABEL: tile.program @program_k(
// CHECK-SAME: %[[T:.*]]: index, %[[H:.*]]: memref<8xf32>, %[[N:.*]]: memref<8xf32>) units 2
// CHECK: tile.place @k tasks [0, 4] of [8] on 0(%[[H]], %[[N]]
// CHECK-NEXT: tile.place @k tasks [4, 8] of [8] on 1(%[[H]], %[[N]]
// CHECK-NEXT: tile.signal 0 on 0
// CHECK-NEXT: tile.signal 0 on 1
// CHECK-NEXT: tile.wait 0 count 2 on 0
// CHECK-NEXT: tile.place @one tasks [0, 1] of [] on 0(%[[N]]
// CHECK-NEXT: tile.signal 1 on 0
// CHECK: tile.wait 1 count 1 on 1
// CHECK-NEXT: tile.place @k tasks [0, 4] of [8] on 0(%[[N]], %[[H]]
// CHECK: tile.place @one tasks [0, 1] of [] on 0(%[[H]]
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: tile.launch @program_k ins(%[[I]] : index) outs(%[[A]], %[[B]]
// CHECK: tile.launch @one outs(%[[A]]
tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  tile.return
}
tile.kernel @one(%x: memref<8xf32>) {
  tile.return
}
func.func @main(%h: memref<8xf32>, %n: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
    tile.launch @one outs(%b : memref<8xf32>)
    scf.yield %b, %a : memref<8xf32>, memref<8xf32>
  } {tile.steps = 2 : i64, tile.units = 2 : i64}
  tile.launch @one outs(%r#0 : memref<8xf32>)
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%h: memref<8xf32>, %n: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  // expected-error@+1 {{something else than buffers that change places, and are back after `tile.steps` iterations}}
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
    scf.yield %b, %a : memref<8xf32>, memref<8xf32>
  } {tile.steps = 3 : i64, tile.units = 2 : i64}
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%h: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    // expected-error @below {{needs a grid of constants}}
    tile.launch @k grid(%n) outs(%h : memref<8xf32>)
  } {tile.steps = 2 : i64, tile.units = 2 : i64}
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%h: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error @below {{needs launches, and a constant step}}
  scf.for %t = %c0 to %c8 step %n {
    tile.launch @k grid(%c8) outs(%h : memref<8xf32>)
  } {tile.steps = 2 : i64, tile.units = 2 : i64}
  return
}

// -----

// Of a number of iterations that a run brings, programs take the pairs, the loop the rest.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[N:.*]]: index
// CHECK: %[[STRIDE:.*]] = arith.muli %{{.*}}, %c2
// CHECK: %[[LENGTH:.*]] = arith.subi %[[N]], %[[C0:.*]] : index
// CHECK: %[[COUNT:.*]] = arith.divsi %[[LENGTH]], %[[STRIDE]]
// CHECK: %[[WHOLE:.*]] = arith.muli %[[COUNT]], %[[STRIDE]]
// CHECK: %[[END:.*]] = arith.addi %[[C0]], %[[WHOLE]]
// CHECK: scf.for %[[I:.*]] = %[[C0]] to %[[END]] step %[[STRIDE]] {
// CHECK-NEXT: tile.launch @program_k ins(%[[I]] : index) outs(%[[A]], %[[B]]
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %[[END]]
// CHECK-SAME: {{^}} to %[[N]] step %{{.*}} iter_args(%[[X:.*]] = %[[A]], %[[Y:.*]] = %[[B]])
// CHECK-NEXT: tile.launch @k grid(%{{.*}}) ins(%[[X]] : memref<8xf32>) outs(%[[Y]]
// CHECK-NEXT: yield %[[Y]], %[[X]]
// CHECK-NOT: tile.units
// CHECK: tile.launch @one outs(%[[R]]#0
tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  tile.return
}
tile.kernel @one(%x: memref<8xf32>) {
  tile.return
}
func.func @main(%h: memref<8xf32>, %n: memref<8xf32>, %trips: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %trips step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
    scf.yield %b, %a : memref<8xf32>, memref<8xf32>
  } {tile.steps = 2 : i64, tile.units = 2 : i64}
  tile.launch @one outs(%r#0 : memref<8xf32>)
  return
}
