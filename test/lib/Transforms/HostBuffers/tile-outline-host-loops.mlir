// RUN: tile-opt %s --tile-outline-host-loops -split-input-file -verify-diagnostics | FileCheck-22 %s

// What a loop gives goes through memory; constants are made anew in the kernel.
// CHECK: tile.kernel @host_loop(%[[N:.*]]: index, %[[X:.*]]: memref<?xi64>, %[[CELL:.*]]: memref<1xi64>)
// CHECK-SAME: {{^}} attributes {tile.threads = 32 : i64}
// CHECK: %[[LAST:.*]] = scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK: memref.store %[[LAST]], %[[CELL]][%{{.*}}]
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = memref.alloc() : memref<1xi64>
// CHECK: tile.launch @host_loop ins(%arg1, %arg0 : index, memref<?xi64>) outs(%[[A]] : memref<1xi64>)
// CHECK: %[[R:.*]] = memref.load %[[A]][%{{.*}}]
// CHECK: arith.index_cast %[[R]]
func.func @main(%x: memref<?xi64>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i64
  // expected-remark @below {{runs in one thread}}
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> i64 {
    %a = memref.load %x[%i] : memref<?xi64>
    %t = arith.addi %s, %a : i64
    scf.yield %t : i64
  }
  %r = arith.index_cast %last : i64 to index
  return %r : index
}

// -----

// Iterations of a parallel loop are tasks, numbered from 0 in steps of 1.
// CHECK: tile.kernel @host_loop({{.*}}) grid(%[[I:.*]], %[[J:.*]]) attributes
// CHECK: %[[S:.*]] = arith.muli %[[I]], %{{.*}}
// CHECK: arith.addi %[[S]], %{{.*}}
// CHECK-NOT: scf.parallel
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = arith.subi %arg2, %arg1
// CHECK: %[[G:.*]] = arith.ceildivsi %[[W]], %{{.*}}
// CHECK: tile.launch @host_loop grid(%[[G]], %{{.*}})
func.func @main(%x: memref<?x8xf32>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %f = arith.constant 1.0 : f32
  // expected-remark @below {{one working thread each}}
  scf.parallel (%i, %j) = (%a, %c0) to (%b, %c8) step (%c2, %c1) {
    memref.store %f, %x[%i, %j] : memref<?x8xf32>
    scf.reduce
  }
  return
}

// -----

// What is written stands under `outs`; a copy in a loop is a loop over its elements.
// CHECK: tile.kernel @host_loop(%{{.*}}: index, %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>)
// CHECK: scf.for
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}}
// CHECK: %[[E:.*]] = memref.load %[[X]][%[[I]]]
// CHECK: memref.store %[[E]], %[[Y]][%[[I]]]
// CHECK-NOT: memref.copy
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @host_loop ins(%arg2, %arg0 : index, memref<4xf32>) outs(%arg1 : memref<4xf32>)
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{runs in one thread}}
  scf.for %i = %c0 to %n step %c1 {
    memref.copy %x, %y : memref<4xf32> to memref<4xf32>
    %a = memref.load %y[%c1] : memref<4xf32>
    memref.store %a, %y[%c0] : memref<4xf32>
  }
  return
}

// -----

// A loop that asserts stays, the loop inside it leaves; one that only counts stays too.
// CHECK: tile.kernel @host_loop
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: cf.assert
// CHECK: tile.launch @host_loop
// CHECK: scf.while
func.func @main(%x: memref<?xi64>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i64
  // expected-remark @below {{stays on the host because of 'cf.assert'}}
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xi64>
    %ok = arith.cmpi sge, %a, %z : i64
    cf.assert %ok, "negative"
    // expected-remark @below {{runs in one thread}}
    scf.for %j = %c0 to %i step %c1 {
      memref.store %a, %x[%j] : memref<?xi64>
    }
  }
  %r = scf.while (%k = %c0) : (index) -> index {
    %more = arith.cmpi slt, %k, %n : index
    scf.condition(%more) %k : index
  } do {
  ^bb0(%k: index):
    %next = arith.addi %k, %k : index
    scf.yield %next : index
  }
  return %r : index
}
