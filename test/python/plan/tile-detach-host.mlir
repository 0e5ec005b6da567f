// RUN: tile-opt %s --tile-detach-host | FileCheck-22 %s

// Bounds on which all launches agree stay with the kernel; the host function and its tensors go.
// CHECK-NOT: func.func
// CHECK-NOT: memref.global
// CHECK: tile.kernel @two(%{{.*}}: memref<?xf32>) grid(%{{.*}}, %{{.*}}) attributes {tile.grid = array<i64: -9223372036854775808, 4>}
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
