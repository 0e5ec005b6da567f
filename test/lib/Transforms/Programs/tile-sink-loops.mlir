// RUN: tile-opt %s --tile-sink-loops --split-input-file --verify-diagnostics | FileCheck-22 %s

#rows = affine_map<(d0) -> (d0 * 8)>

tile.kernel @step(%h: memref<64xf32>, %x: memref<64xf32, strided<[1], offset: ?>>, %n: memref<64xf32>) grid(%i)
    attributes {tile.threads = 64 : i64, tile.prediction = {ns = 100 : i64}} {
  %r = affine.apply #rows(%i)
  %a = tile.load %h[%r] : memref<64xf32>, !tile.tile<8xf32>
  %b = tile.load %x[%r] : memref<64xf32, strided<[1], offset: ?>>, !tile.tile<8xf32>
  %s = arith.addf %a, %b : !tile.tile<8xf32>
  tile.store %s, %n[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}

// The number of iterations is known when it runs; views are made in the kernel. What tells which buffer the loop gives
// stays with the host.
// CHECK-LABEL: tile.kernel @loop_step
// CHECK-SAME: (%[[N:[a-z0-9]+]]: index, %[[XS:[a-z0-9]+]]: memref<?x64xf32>, %[[H:[a-z0-9]+]]: memref<64xf32>,
// CHECK-SAME: %[[B:[a-z0-9]+]]: memref<64xf32>) grid(%[[I:.*]])
// CHECK-SAME: attributes {tile.level = "task", tile.threads = 64 : i64}
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %[[N]] {{.*}} iter_args(%[[NOW:.*]] = %[[H]], %[[NEXT:.*]] = %[[B]])
// CHECK-NEXT: %[[X:.*]] = memref.subview %[[XS]][%[[T]], 0]
// CHECK: %[[R:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK-NEXT: tile.load %[[NOW]][%[[R]]]
// CHECK-NEXT: tile.load %[[X]][%[[R]]]
// CHECK: tile.store %{{.*}}, %[[NEXT]][%[[R]]]
// CHECK-NEXT: scf.yield %[[NEXT]], %[[NOW]]
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @loop_step grid(%{{.*}}) ins(%arg3, %arg0 : {{.*}}) outs(%arg1, %arg2 :
// CHECK-NOT: tile.launch
// CHECK: return %{{.*}}#0
func.func @main(%xs: memref<?x64xf32>, %h: memref<64xf32>, %b: memref<64xf32>, %n: index) -> memref<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%now = %h, %next = %b) -> (memref<64xf32>, memref<64xf32>) {
    %x = memref.subview %xs[%t, 0] [1, 64] [1, 1] : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    %c8 = arith.constant 8 : index
    tile.launch @step grid(%c8) ins(%now, %x : memref<64xf32>, memref<64xf32, strided<[1], offset: ?>>)
        outs(%next : memref<64xf32>)
    scf.yield %next, %now : memref<64xf32>, memref<64xf32>
  } {tile.level = "task"}
  return %r#0 : memref<64xf32>
}

// -----

// A loop in a loop: the outer one launches what the inner one became.
// CHECK-LABEL: tile.kernel @loop_loop_k(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.load
// CHECK-NOT: tile.kernel
// CHECK: tile.launch @loop_loop_k
tile.kernel @k(%x: memref<64xf32>) grid(%i) {
  %r = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %a = tile.load %x[%r] : memref<64xf32>, !tile.tile<8xf32>
  %s = arith.addf %a, %a : !tile.tile<8xf32>
  tile.store %s, %x[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
func.func @main(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    scf.for %u = %c0 to %t step %c1 {
      tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
    } {tile.level = "task"}
  } {tile.level = "task"}
  return
}

// -----

tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %r = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %a = tile.load %x[%c0] : memref<64xf32>, !tile.tile<8xf32>
  tile.store %a, %y[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
func.func @main(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{its tasks cannot run it by themselves: a task of @k touches what another one has}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%x : memref<64xf32>)
  } {tile.level = "task"}
  return
}

// -----

func.func @main(%x: memref<f32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{its tasks cannot run it by themselves: it does more than launch: memref.store}}
  scf.for %t = %c0 to %c1 step %c1 {
    memref.store %v, %x[] : memref<f32>
  } {tile.level = "task"}
  return
}

// -----

func.func @main(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{has `tile.level = "block"`: known are "task" and "thread", and none for the host}}
  scf.for %t = %c0 to %c0 step %c0 {
  } {tile.level = "block"}
  return
}

// -----

// The team of a loop is that of the launch; teams in it are none any more.
tile.kernel @k(%x: memref<64xf32>) grid(%i) {
  %r = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %a = tile.load %x[%r] : memref<64xf32>, !tile.tile<8xf32>
  tile.store %a, %x[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
// CHECK-LABEL: func.func @teams
// CHECK: tile.launch @loop_k grid({{.*}}) outs({{.*}}) {tile.team = array<i64: 2, 4>}
// CHECK-NEXT: arith.constant
// CHECK: tile.launch @loop_k_0 grid({{.*}}) outs(%{{[a-z0-9]*}} : memref<64xf32>)
// CHECK-NOT: tile.team
func.func @teams(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
  } {tile.level = "task", tile.team = array<i64: 2, 4>}
  // expected-remark@+1 {{its launches have no teams of blocks any more: each task runs all iterations}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) outs(%y : memref<64xf32>) {tile.team = array<i64: 0, 4>}
  } {tile.level = "task"}
  return
}

// -----

// Who uses the state before the last one finds it in memory.
tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  %r = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %a = tile.load %x[%r] : memref<64xf32>, !tile.tile<8xf32>
  tile.store %a, %y[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
// CHECK-LABEL: tile.kernel @loop_k
// CHECK-SAME: tile.level = "task"
func.func @old(%x: memref<64xf32>, %y: memref<64xf32>) -> memref<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-remark@+1 {{goes through memory, not registers: the state before the last one is used}}
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %x, %b = %y) -> (memref<64xf32>, memref<64xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  } {tile.level = "thread"}
  return %r#1 : memref<64xf32>
}
