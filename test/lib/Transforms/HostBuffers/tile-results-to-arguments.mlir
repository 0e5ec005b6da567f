// RUN: tile-opt %s -tile-results-to-arguments -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK: func.func @main(%[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<2x2xf32> {tile.name = "y", tile.result = 0 : i64},
// CHECK-SAME: %[[Z:.*]]: memref<4xf32> {tile.name = "z", tile.result = 1 : i64}) {
// CHECK-NOT: memref.alloc
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[Y]] {{.*}} to memref<4xf32>
// CHECK: memref.store %{{.*}}, %[[FLAT]]
// CHECK: memref.copy %[[X]], %[[Z]]
// CHECK: return{{$}}
func.func @main(%x: memref<4xf32>) -> (memref<2x2xf32> {tile.name = "y"}, memref<4xf32> {tile.name = "z"}) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<4xf32>
  %v = memref.load %x[%c0] : memref<4xf32>
  memref.store %v, %a[%c0] : memref<4xf32>
  %y = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  return %y, %x : memref<2x2xf32>, memref<4xf32>
}

// -----

// Sizes known at run time only: the caller cannot give the buffer.
// CHECK: func.func @main(%[[X:.*]]: memref<?xf32>, %{{.*}}: memref<f32> {tile.result = 1 : i64})
// CHECK-SAME: -> (memref<?xf32> {tile.name = "y", tile.result = 0 : i64})
// CHECK: return %[[X]] : memref<?xf32>
func.func @main(%x: memref<?xf32>, %z: memref<f32>) -> (memref<?xf32> {tile.name = "y"}, memref<f32>) {
  return %x, %z : memref<?xf32>, memref<f32>
}
