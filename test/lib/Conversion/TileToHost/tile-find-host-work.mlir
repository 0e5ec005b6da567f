// RUN: tile-opt %s --tile-find-host-work | FileCheck-22 %s

// Two rows of four, of which three are valid, to their sums: eight loads less two, four additions, two stores.
tile.kernel @sums(%x: memref<2x3xi64>, %y: memref<2xi64>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %t = tile.load %x[%i, %c0] valid (%c1, %c3) : memref<2x3xi64>, !tile.tile<1x4xi64>
  %s = tile.reduce add %t dims [1] : !tile.tile<1x4xi64> -> !tile.tile<1x1xi64>
  %r = tile.reshape %s : !tile.tile<1x1xi64> -> !tile.tile<1xi64>
  tile.store %r, %y[%i] : !tile.tile<1xi64>, memref<2xi64>
  tile.return
}
tile.kernel @product(%x: memref<4x4xf32>, %y: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : !tile.tile<4x4xf32>
  %t = tile.load %x[%c0, %c0] : memref<4x4xf32>, !tile.tile<4x4xf32>
  %p = tile.mma %t, %t, %z : !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>
  tile.store %p, %y[%c0, %c0] : !tile.tile<4x4xf32>, memref<4x4xf32>
  tile.return
}
tile.kernel @row(%x: memref<?xi64>) {
  tile.return
}
tile.kernel @large(%x: memref<65xi64>) {
  tile.return
}
tile.kernel @bf16(%x: memref<2xbf16>) {
  tile.return
}
tile.kernel @rounds(%x: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<2xf32>, !tile.tile<2xf32>
  %r = tile.convert %t : !tile.tile<2xf32> -> !tile.tile<2xbf16>
  %w = tile.convert %r : !tile.tile<2xbf16> -> !tile.tile<2xf32>
  tile.store %w, %x[%c0] : !tile.tile<2xf32>, memref<2xf32>
  tile.return
}
tile.kernel @tasks() grid(%i) {
  tile.return
}

// CHECK-LABEL: func.func @main
// CHECK: tile.launch @sums {{.*}} {tile.host_operations = 12 : i64}
// CHECK-NOT: host_operations
// CHECK: return
func.func @main(%x: memref<2x3xi64>, %y: memref<2xi64>, %m: memref<4x4xf32>, %v: memref<?xi64>, %l: memref<65xi64>,
                %b: memref<2xbf16>, %f: memref<2xf32>, %n: index) {
  %c2 = arith.constant 2 : index
  tile.launch @sums grid(%c2) ins(%x : memref<2x3xi64>) outs(%y : memref<2xi64>)
  tile.launch @product ins(%m : memref<4x4xf32>) outs(%m : memref<4x4xf32>)
  tile.launch @row outs(%v : memref<?xi64>)
  tile.launch @large outs(%l : memref<65xi64>)
  tile.launch @bf16 outs(%b : memref<2xbf16>)
  tile.launch @rounds outs(%f : memref<2xf32>)
  tile.launch @tasks grid(%n)
  return
}
