// RUN: tile-opt %s -tile-free-buffers -split-input-file | FileCheck-22 %s

// CHECK-LABEL: @allocates
// CHECK: memref.alloc
// CHECK: bufferization.dealloc
func.func @allocates(%x: f32) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  memref.store %x, %a[%c0] : memref<4xf32>
  return
}

// -----

// Who owns the buffers that a loop hands round does not matter where nothing is allocated.
// CHECK-LABEL: @exchanges
// CHECK: scf.for {{.*}} -> (memref<4xf32>, memref<4xf32>)
// CHECK-NOT: i1
// CHECK: return
func.func @exchanges(%n: index, %s: memref<4xf32>, %t: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s, %b = %t) -> (memref<4xf32>, memref<4xf32>) {
    scf.yield %b, %a : memref<4xf32>, memref<4xf32>
  }
  return
}
