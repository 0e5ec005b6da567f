// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

tile.kernel @step(%x: memref<8xf32>) grid(%i, %j) {
}

// CHECK-LABEL: tile.program @two(%{{.*}}: memref<8xf32>) units 2 {
// CHECK-NEXT: tile.place @step tasks [0, 4] of [4, 2] on 0(%{{.*}} : memref<8xf32>)
// CHECK-NEXT: tile.signal 0 on 0
// CHECK-NEXT: tile.place @step tasks [4, 8] of [4, 2] on 1(%{{.*}} : memref<8xf32>)
// CHECK-NEXT: tile.wait 0 count 1 on 1
// CHECK-NEXT: }
tile.program @two(%x: memref<8xf32>) units 2 {
  tile.place @step tasks [0, 4] of [4, 2] on 0 (%x : memref<8xf32>)
  tile.signal 0 on 0
  tile.place @step tasks [4, 8] of [4, 2] on 1 (%x : memref<8xf32>)
  tile.wait 0 count 1 on 1
}

// A wait that stands before its signal in the text: another unit sends it.
// CHECK-LABEL: tile.program private @early
tile.program private @early() units 2 {
  tile.wait 3 count 2 on 0
  tile.signal 3 on 1
  tile.signal 3 on 1
  tile.return
}

// CHECK-LABEL: func.func @start
// CHECK: tile.launch @two outs(%{{.*}} : memref<8xf32>)
func.func @start(%x: memref<8xf32>) {
  tile.launch @two outs(%x : memref<8xf32>)
  return
}
