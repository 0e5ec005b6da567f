// RUN: tile-opt %s --tile-dedupe-kernels | FileCheck %s

// CHECK: tile.kernel @a
tile.kernel @a(%x: memref<4xf32>) {
  tile.return
}
// CHECK-NOT: tile.kernel @b
tile.kernel @b(%x: memref<4xf32>) {
  tile.return
}
// Another type makes another kernel.
// CHECK: tile.kernel @c
tile.kernel @c(%x: memref<8xf32>) {
  tile.return
}
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @a
// CHECK: tile.launch @a
// CHECK: tile.launch @c
func.func @main(%x: memref<4xf32>, %y: memref<8xf32>) {
  tile.launch @a outs(%x : memref<4xf32>)
  tile.launch @b outs(%x : memref<4xf32>)
  tile.launch @c outs(%y : memref<8xf32>)
  return
}
