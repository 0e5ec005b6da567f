// RUN: tile-opt %s --tile-inline-host-work --canonicalize --cse --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s

// Loops with known bounds, tiles of several elements, steps, pads, comparisons and conversions. The kernel goes.
// CHECK-NOT: tile.kernel
tile.kernel @k(%x: memref<2x3xi64>, %y: memref<3xi32>, %go: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0> : !tile.tile<2x4xi64>
  %ten = arith.constant dense<10> : !tile.tile<4xi32>
  %c3 = arith.constant 3 : index
  %t = tile.load %x[%c0, %c0] valid (%c2, %c3) : memref<2x3xi64>, !tile.tile<2x4xi64>
  %n = tile.iota dim 1 : !tile.tile<2x4xi64>
  %first = tile.extract %t [0, 0] : !tile.tile<2x4xi64> -> !tile.tile<1x4xi64>
  %wide = tile.broadcast %first : !tile.tile<1x4xi64> -> !tile.tile<2x4xi64>
  %sum = arith.addi %wide, %n : !tile.tile<2x4xi64>
  %less = arith.cmpi slt, %t, %zero : !tile.tile<2x4xi64>
  %one = tile.select %less, %zero, %sum : !tile.tile<2x4xi1>, !tile.tile<2x4xi64>
  %most = scf.for %i = %c0 to %c2 step %c1 iter_args(%m = %ten) -> (!tile.tile<4xi32>) {
    %row = tile.extract %one [1, 0] : !tile.tile<2x4xi64> -> !tile.tile<1x4xi64>
    %r = tile.reshape %row : !tile.tile<1x4xi64> -> !tile.tile<4xi64>
    %narrow = tile.convert %r : !tile.tile<4xi64> -> !tile.tile<4xi32>
    %next = arith.addi %m, %narrow : !tile.tile<4xi32>
    scf.yield %next : !tile.tile<4xi32>
  }
  tile.store %most, %y[%c0] valid (%c3) : !tile.tile<4xi32>, memref<3xi32>
  %turned = tile.transpose %t [1, 0] : !tile.tile<2x4xi64> -> !tile.tile<4x2xi64>
  %last = tile.extract %turned [2, 1] : !tile.tile<4x2xi64> -> i64
  %c7 = arith.constant 7 : i64
  %is = arith.cmpi sgt, %last, %c7 : i64
  memref.store %is, %go[] : memref<i1>
  tile.return
}

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[A:.*]] = memref.load %arg0[%c0, %c0]
// CHECK-DAG: %[[B:.*]] = memref.load %arg0[%c1, %c0]
// CHECK-DAG: %[[LAST:.*]] = memref.load %arg0[%c1, %c2]
// CHECK-DAG: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[B]], %c0_i64
// CHECK-DAG: %[[CHOSEN:.*]] = arith.select %[[NEGATIVE]], %c0_i64, %[[A]]
// CHECK-DAG: %[[NARROW:.*]] = arith.trunci %[[CHOSEN]] : i64 to i32
// CHECK-DAG: %[[ONCE:.*]] = arith.addi %[[NARROW]], %c10_i32
// CHECK-DAG: %[[TWICE:.*]] = arith.addi %[[ONCE]], %[[NARROW]]
// CHECK-DAG: memref.store %[[TWICE]], %arg1[%c0]
// CHECK-DAG: %[[MORE:.*]] = arith.cmpi sgt, %[[LAST]], %c7_i64
// CHECK: memref.store %[[MORE]], %arg2[]
// CHECK-NOT: tile.
// CHECK: return
func.func @main(%x: memref<2x3xi64>, %y: memref<3xi32>, %go: memref<i1>) {
  tile.launch @k ins(%x : memref<2x3xi64>) outs(%y, %go : memref<3xi32>, memref<i1>) {tile.level = "host"}
  return
}

// -----

// Others of the kernel's launches keep it.
// CHECK: tile.kernel @less
tile.kernel @less(%x: memref<i64>, %y: memref<1xi1>) {
  %c0 = arith.constant 0 : index
  %nine = arith.constant dense<9> : !tile.tile<1xi64>
  %n = memref.load %x[] : memref<i64>
  %t = tile.splat %n : i64 -> !tile.tile<1xi64>
  %less = arith.cmpi slt, %t, %nine : !tile.tile<1xi64>
  tile.store %less, %y[%c0] : !tile.tile<1xi1>, memref<1xi1>
  tile.return
}
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = memref.load %arg0[]
// CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[N]], %c9_i64
// CHECK: memref.store %[[LESS]], %arg1[%c0]
// CHECK: tile.launch @less
// CHECK: return
func.func @main(%x: memref<i64> {tile.name = "x"}, %y: memref<1xi1> {tile.result = 0 : i64},
                %z: memref<1xi1> {tile.result = 1 : i64}) {
  tile.launch @less ins(%x : memref<i64>) outs(%y : memref<1xi1>) {tile.level = "host"}
  tile.launch @less ins(%x : memref<i64>) outs(%z : memref<1xi1>)
  return
}

// -----

tile.kernel @k(%x: memref<?xi64>) {
  tile.return
}
func.func @main(%x: memref<?xi64>) {
  // expected-error@+1 {{has no form in single numbers: a buffer has many elements, or of an unusual type; take the}}
  tile.launch @k outs(%x : memref<?xi64>) {tile.level = "host"}
  return
}

// -----

tile.kernel @k(%x: memref<4xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] valid (%n) : memref<4xi64>, !tile.tile<4xi64>
  tile.store %t, %x[%c0] valid (%n) : !tile.tile<4xi64>, memref<4xi64>
  tile.return
}
func.func @main(%x: memref<4xi64>, %n: index) {
  // expected-error@+1 {{has no form in single numbers: a run tells how much it reads or writes;}}
  tile.launch @k ins(%x, %n : memref<4xi64>, index) {tile.level = "host"}
  return
}
