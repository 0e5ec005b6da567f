// RUN: tile-opt %s --tile-split-host-device --split-input-file --verify-diagnostics | FileCheck-22 %s

// Bounds on which all launches agree stay with the kernel; the host function and its tensors go.
// CHECK-NOT: func.func
// CHECK-NOT: memref.global
// CHECK: tile.kernel @two(%{{.*}}: memref<?xf32>) grid(%{{.*}}, %{{.*}})
// CHECK-SAME: {{^}} attributes {tile.grid = array<i64: -9223372036854775808, 4>}
// CHECK: tile.kernel @once(%{{.*}}: memref<?xf32>)
// CHECK-NOT: tile.grid
// CHECK: tile.kernel @in_loop(%{{.*}}: memref<?xf32>) grid(%{{.*}}) attributes {tile.grid = array<i64: 8>}
// CHECK-NOT: func.func
memref.global "private" constant @numbers : memref<2xf32> = dense<1.0>
tile.kernel @two(%x: memref<?xf32>) grid(%i, %j) {
  tile.return
}
tile.kernel @once(%x: memref<?xf32>) {
  tile.return
}
tile.kernel @in_loop(%x: memref<?xf32>) grid(%i) {
  tile.return
}
func.func @main(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  tile.launch @two grid(%c3, %c4) ins(%x : memref<?xf32>)
  tile.launch @two grid(%c8, %c4) ins(%x : memref<?xf32>)
  tile.launch @once ins(%x : memref<?xf32>)
  scf.for %i = %c0 to %n step %c1 {
    tile.launch @in_loop grid(%c8) ins(%x : memref<?xf32>)
  }
  return
}

// -----

// A result in an operand's place; halves of one buffer; temporaries of the arena that are apart; what a loop hands on.
// CHECK-LABEL: tile.kernel @in_place(
// CHECK-SAME: tile.same_memory = [array<i64: 0, 1>]
// CHECK-LABEL: tile.kernel @halves(
// CHECK-SAME: tile.may_overlap = [array<i64: 0, 1>]
// CHECK-LABEL: tile.kernel @apart(
// CHECK-NOT: tile.
// CHECK-SAME: {
// CHECK-LABEL: tile.kernel @carried(
// CHECK-SAME: tile.may_overlap = [array<i64: 0, 1>]
tile.kernel @in_place(%x: memref<8xf32>, %y: memref<8xf32>) {
  tile.return
}
tile.kernel @halves(%x: memref<4xf32, strided<[1], offset: ?>>, %y: memref<4xf32, strided<[1], offset: ?>>) {
  tile.return
}
tile.kernel @apart(%x: memref<8xf32>, %y: memref<8xf32>) {
  tile.return
}
tile.kernel @carried(%x: memref<8xf32>, %y: memref<8xf32>) {
  tile.return
}
func.func @main(%x: memref<8xf32>, %z: memref<8xf32>, %i: index, %arena: memref<64xi8> {tile.arena}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  tile.launch @in_place ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  %a = memref.subview %x[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
  %b = memref.subview %x[%c1] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
  tile.launch @halves ins(%a : memref<4xf32, strided<[1], offset: ?>>) outs(%b : memref<4xf32, strided<[1], offset: ?>>)
  %p = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
  %q = memref.view %arena[%c32][] : memref<64xi8> to memref<8xf32>
  tile.launch @apart ins(%p : memref<8xf32>) outs(%q : memref<8xf32>)
  %r:2 = scf.for %j = %c0 to %i step %c1 iter_args(%s = %x, %t = %z) -> (memref<8xf32>, memref<8xf32>) {
    tile.launch @carried ins(%s : memref<8xf32>) outs(%t : memref<8xf32>)
    scf.yield %t, %s : memref<8xf32>, memref<8xf32>
  }
  return
}

// -----

tile.kernel @wrong(%x: memref<8xf32>, %y: memref<8xf32>) {
  tile.return
}
func.func @main(%arena: memref<64xi8> {tile.arena}) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %p = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
  %q = memref.view %arena[%c16][] : memref<64xi8> to memref<8xf32>
  // expected-error @below {{arguments 0 and 1 of a launch are temporaries that overlap: bytes 0 to 32 and 16 to 48}}
  tile.launch @wrong ins(%p : memref<8xf32>) outs(%q : memref<8xf32>)
  return
}
