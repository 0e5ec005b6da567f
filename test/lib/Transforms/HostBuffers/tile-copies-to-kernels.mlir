// RUN: tile-opt %s -tile-copies-to-kernels -verify-diagnostics | FileCheck-22 %s

// One kernel for copies of equal types: rows as tasks, tiles of 64 and the rest of 6.
// CHECK: tile.kernel @copy(%[[S:.*]]: memref<4x70xf32>, %[[T:.*]]: memref<4x70xf32>) grid(%[[I:.*]])
// CHECK: scf.for
// CHECK: tile.load %[[S]][%[[I]], %{{.*}}] : memref<4x70xf32>, {{.*}}<64xf32>
// CHECK: tile.load %[[S]][%[[I]], %{{.*}}] : memref<4x70xf32>, {{.*}}<6xf32>
// CHECK-NOT: tile.kernel
// CHECK-COUNT-2: tile.launch @copy grid(%{{.*}})
func.func @main(%x: memref<4x70xf32>, %y: memref<4x70xf32>) {
  // expected-remark @below {{that the plan did not avoid becomes a kernel}}
  memref.copy %x, %y : memref<4x70xf32> to memref<4x70xf32>
  // expected-remark @below {{that the plan did not avoid becomes a kernel}}
  memref.copy %y, %x : memref<4x70xf32> to memref<4x70xf32>
  return
}
