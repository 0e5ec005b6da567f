// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s

// CHECK-LABEL: tile.kernel @waits
// CHECK: %[[S:.*]] = tile.semaphores : memref<8xi32>
// CHECK: tile.semaphore_take %[[S]][%{{.*}}] count 2 : memref<8xi32>
// CHECK: tile.semaphore_post %[[S]][%{{.*}}] : memref<8xi32>
tile.kernel @waits() grid(%i) {
  %s = tile.semaphores : memref<8xi32>
  %c0 = arith.constant 0 : index
  %some = arith.cmpi ugt, %i, %c0 : index
  scf.if %some {
    tile.semaphore_take %s[%i] count 2 : memref<8xi32>
  }
  tile.semaphore_post %s[%i] : memref<8xi32>
  tile.return
}
