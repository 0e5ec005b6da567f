// RUN: tile-opt %s -tile-share-buffers -split-input-file | FileCheck %s

// %b takes the place of %a, whose size it has; %c is live with %b, %d has another size, %r is a result.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[N:.*]]: index, %[[M:.*]]: index,
func.func @main(%n: index, %m: index, %v: f32) -> memref<?x4xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: %[[A:.*]] = memref.alloc(%[[N]]) : memref<?x4xf32>
  %a = memref.alloc(%n) : memref<?x4xf32>
  memref.store %v, %a[%c0, %c0] : memref<?x4xf32>
  // CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[A]] {{\[\[}}0, 1]] : memref<?x4xf32> into memref<?xf32>
  // CHECK: %[[B:.*]] = memref.expand_shape %[[FLAT]] {{\[\[}}0, 1, 2]] output_shape [2, %[[N]], 2] : memref<?xf32>
  // CHECK-SAME: {{^}} into memref<2x?x2xf32>
  %b = memref.alloc(%n) : memref<2x?x2xf32>
  // CHECK: memref.store %{{.*}}, %[[B]]
  memref.store %v, %b[%c0, %c0, %c0] : memref<2x?x2xf32>
  // CHECK: memref.alloc(%[[N]]) : memref<?x4xf32>
  %c = memref.alloc(%n) : memref<?x4xf32>
  memref.store %v, %c[%c0, %c0] : memref<?x4xf32>
  %x = memref.load %b[%c0, %c0, %c0] : memref<2x?x2xf32>
  // CHECK: memref.alloc(%[[M]]) : memref<?x4xf32>
  %d = memref.alloc(%m) : memref<?x4xf32>
  memref.store %x, %d[%c0, %c0] : memref<?x4xf32>
  // CHECK: %[[R:.*]] = memref.alloc(%[[N]]) : memref<?x4xf32>
  %r = memref.alloc(%n) : memref<?x4xf32>
  memref.store %x, %r[%c0, %c0] : memref<?x4xf32>
  // CHECK: return %[[R]]
  return %r : memref<?x4xf32>
}
