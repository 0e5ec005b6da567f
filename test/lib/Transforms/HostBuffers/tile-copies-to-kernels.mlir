// RUN: tile-opt %s -tile-copies-to-kernels -split-input-file -verify-diagnostics | FileCheck-22 %s

// One kernel for copies of equal types: rows as tasks, tiles of 64 and the rest of 6.
// CHECK: tile.kernel @copy(%[[S:.*]]: memref<4x70xf32>, %[[T:.*]]: memref<4x70xf32>) grid(%[[I:.*]])
// CHECK: scf.for
// CHECK: tile.load %[[S]][%[[I]], %{{.*}}] : memref<4x70xf32>, {{.*}}<64xf32>
// CHECK: tile.load %[[S]][%[[I]], %{{.*}}] : memref<4x70xf32>, {{.*}}<6xf32>
// CHECK-NOT: tile.kernel
// CHECK-COUNT-2: tile.launch @copy grid(%{{.*}})
func.func @main(%x: memref<4x70xf32>, %y: memref<4x70xf32>) {
  // expected-remark @below {{that the plan did not avoid}}
  memref.copy %x, %y : memref<4x70xf32> to memref<4x70xf32>
  // expected-remark @below {{that the plan did not avoid}}
  memref.copy %y, %x : memref<4x70xf32> to memref<4x70xf32>
  return
}

// -----

// A few elements, and rows whose length a run knows, are copied on the host: at once where they lie together.
// CHECK: // {{-----}}
// CHECK-NOT: tile.launch
// CHECK: memref.copy
// CHECK: memref.copy
// CHECK: linalg.generic
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %x: memref<?xf32>, %y: memref<?xf32>,
                %s: memref<?xf32, strided<[2]>>) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  // expected-remark @below {{that the plan did not avoid}}
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  // expected-remark @below {{that the plan did not avoid}}
  memref.copy %s, %y : memref<?xf32, strided<[2]>> to memref<?xf32>
  return
}

// -----

// Sizes of a run: on a CPU the outer ones are tasks, where rows have a known length.
// CHECK: tile.kernel @copy(%[[S:.*]]: memref<?x2x?x70xf32>, %[[T:.*]]: memref<?x2x?x70xf32, strided<[?, ?, 70, 1]>>)
// CHECK-SAME: grid(%[[I:.*]], %[[J:.*]])
// CHECK: %[[N:.*]] = memref.dim %[[S]], %c2
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[N]]
// CHECK: tile.load %[[S]][%[[I]], %[[J]], %[[K]], %{{.*}}] : {{.*}}<64xf32>
// CHECK: tile.load %[[S]][%[[I]], %[[J]], %[[K]], %{{.*}}] : {{.*}}<6xf32>
// CHECK: tile.launch @copy grid(%{{.*}}, %{{.*}}) ins(%{{.*}} : memref<?x2x?x70xf32>)
module attributes {tile.device = #tile.device<name = "x86-64-v3", kind = "cpu", cpu = "x86-64-v3">} {
  func.func @main(%x: memref<?x2x?x70xf32>, %y: memref<?x2x?x70xf32, strided<[?, ?, 70, 1]>>) {
    // expected-remark @below {{that the plan did not avoid}}
    memref.copy %x, %y : memref<?x2x?x70xf32> to memref<?x2x?x70xf32, strided<[?, ?, 70, 1]>>
    return
  }
}
