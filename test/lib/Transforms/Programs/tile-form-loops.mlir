// RUN: tile-opt %s --tile-form-loops --split-input-file --verify-diagnostics | FileCheck-22 %s

// A launch and a loop are one kernel, of the threads of the largest; views are made in it, of whole buffers. The number
// of iterations is the host's. Who uses the loop's last buffer is told by a loop without launches.
// CHECK-DAG: tile.kernel @k_1(%{{.*}}) grid(%{{.*}}) attributes {tile.threads = 256 : i64, tile.warps = 1 : i64}
// CHECK-DAG: tile.kernel @wide_0(%{{.*}}) grid(%{{.*}}) attributes {tile.threads = 256 : i64}
// CHECK-NOT: tile.kernel @k(
// CHECK-LABEL: tile.kernel @loop_k(
// CHECK-SAME: %[[X:.*]]: memref<8xf32>, %[[N:.*]]: index, %[[ARENA:.*]]: memref<64xi8>)
// CHECK-SAME: attributes {tile.blocks = 8 : i64, tile.threads = 256 : i64}
// CHECK: %[[A:.*]] = memref.view %[[ARENA]]
// CHECK: tile.launch @wide_0 grid(%{{.*}}) ins(%[[X]] : memref<8xf32>) outs(%[[A]] : memref<8xf32>)
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK-NEXT: tile.launch @k_1
// CHECK: tile.return
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[H:.*]]: memref<64xi8>, %[[Y:.*]]: memref<8xf32>, %[[T:.*]]: index)
// CHECK: %[[LAST:.*]]:2 = scf.for
// CHECK-NEXT: scf.yield
// CHECK: tile.launch @loop_k ins(%[[Y]], %[[T]] : memref<8xf32>, index) outs(%[[H]] : memref<64xi8>)
// CHECK-NEXT: return %[[LAST]]#0
tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i)
    attributes {tile.persistent = 1 : i64, tile.warps = 1 : i64} {
  tile.return
}
tile.kernel @wide(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) attributes {tile.threads = 256 : i64} {
  tile.return
}
func.func @main(%h: memref<64xi8>, %y: memref<8xf32>, %n: index) -> memref<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %a = memref.view %h[%c0][] : memref<64xi8> to memref<8xf32>
  tile.launch @wide grid(%c8) ins(%y : memref<8xf32>) outs(%a : memref<8xf32>) {tile.blocks = 4 : i64}
  %b = memref.view %h[%c32][] : memref<64xi8> to memref<8xf32>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<8xf32>, memref<8xf32>) {
    tile.launch @k grid(%c8) ins(%p : memref<8xf32>) outs(%q : memref<8xf32>)
    scf.yield %q, %p : memref<8xf32>, memref<8xf32>
  } {tile.blocks = 8 : i64}
  return %r#0 : memref<8xf32>
}

// -----

// The kernel reads the number that decides; the buffer of a branch is made before it. A kernel that the host launches,
// too, stays.
// CHECK: tile.kernel @k(
// CHECK: tile.kernel @loop_k(
// CHECK-SAME: %[[GO:.*]]: memref<i1>, %[[X:.*]]: memref<8xf32>, %[[E:.*]]: memref<8xf32>)
// CHECK: %[[MORE:.*]] = memref.load %[[GO]]
// CHECK: scf.if %[[MORE]] {
// CHECK: tile.launch @k_0 grid(%{{.*}}) ins(%[[X]] : memref<8xf32>) outs(%[[E]] : memref<8xf32>)
// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.load
// CHECK: %[[MADE:.*]] = memref.alloc()
// CHECK: tile.launch @loop_k ins(%{{.*}}, %{{.*}} : memref<i1>, memref<8xf32>) outs(%[[MADE]] : memref<8xf32>)
// CHECK: tile.launch @k grid
tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %go: memref<i1>) {
  %c8 = arith.constant 8 : index
  %more = memref.load %go[] {tile.blocks = 2 : i64} : memref<i1>
  scf.if %more {
    %e = memref.alloc() : memref<8xf32>
    tile.launch @k grid(%c8) ins(%x : memref<8xf32>) outs(%e : memref<8xf32>)
  } {tile.blocks = 2 : i64}
  func.call @host() : () -> ()
  tile.launch @k grid(%c8) ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
func.func private @host()

// -----

func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{has `tile.blocks`, and launches nothing}}
  scf.for %t = %c0 to %c0 step %c0 {
  } {tile.blocks = 2 : i64}
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) cluster [2] {
  tile.return
}
func.func @main(%x: memref<8xf32>) {
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{is of a program or of a kernel with clusters; blocks that share its tasks are none}}
  tile.launch @k grid(%c8) outs(%x : memref<8xf32>) {tile.blocks = 2 : i64}
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %c: i1) {
  %c8 = arith.constant 8 : index
  %z = arith.select %c, %x, %y : memref<8xf32>
  // expected-error@+1 {{of a buffer that is one of several, by what the host decides}}
  tile.launch @k grid(%c8) outs(%z : memref<8xf32>) {tile.blocks = 2 : i64}
  return
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
  tile.return
}
func.func @main(%x: memref<8xf32>, %go: memref<i1>) -> i1 {
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{where it reads what tells which buffers or numbers it gives; but the host uses these}}
  %more = memref.load %go[] {tile.blocks = 2 : i64} : memref<i1>
  tile.launch @k grid(%c8) outs(%x : memref<8xf32>) {tile.blocks = 2 : i64}
  return %more : i1
}
