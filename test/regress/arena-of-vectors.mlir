// RUN: tile-opt %s --tile-plan-arena | FileCheck-22 %s

// The size of an element was asked of a vector.

// CHECK-LABEL: func.func @main
// CHECK: memref.alloc() : memref<4xvector<4xf32>>
func.func @main(%v: vector<4xf32>, %i: index) {
  %m = memref.alloc() : memref<4xvector<4xf32>>
  memref.store %v, %m[%i] : memref<4xvector<4xf32>>
  return
}
