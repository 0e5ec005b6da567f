// RUN: tile-opt %s -tile-reshapes-to-casts | FileCheck-22 %s

// Strides of a strided source are kept; one unknown size is left to upstream.
// CHECK-LABEL: func.func @strided
// CHECK-SAME: (%[[X:.*]]: memref<?x4xf32, strided<[8, 2]>>, %[[N:.*]]: index, %[[M:.*]]: index)
// CHECK: %[[BASE:.*]], %{{.*}}, %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %[[X]]
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[STRIDE:.*]] = arith.muli %[[EIGHT]], %{{.*}} : index
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[N]], %[[M]], 4], strides: [%[[STRIDE]], 8, 2]
// CHECK: memref.expand_shape
func.func @strided(%x: memref<?x4xf32, strided<[8, 2]>>, %n: index, %m: index)
    -> (memref<?x?x4xf32, strided<[?, 8, 2]>>, memref<?x2x4xf32, strided<[16, 8, 2]>>) {
  %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%n, %m, 4]
      : memref<?x4xf32, strided<[8, 2]>> into memref<?x?x4xf32, strided<[?, 8, 2]>>
  %z = memref.expand_shape %x [[0, 1], [2]] output_shape [%n, 2, 4]
      : memref<?x4xf32, strided<[8, 2]>> into memref<?x2x4xf32, strided<[16, 8, 2]>>
  return %y, %z : memref<?x?x4xf32, strided<[?, 8, 2]>>, memref<?x2x4xf32, strided<[16, 8, 2]>>
}

// Of two dimensions of size 1, the second one goes: the result has the first one and what follows it.
// CHECK-LABEL: func.func @dropped
// CHECK-SAME: (%{{.*}}: memref<1x?x?x?xf32>, %{{.*}}: index, %[[N:.*]]: index, %[[M:.*]]: index)
// CHECK: %[[VIEW:.*]] = memref.subview {{.*}} to memref<1x?x1x?xf32, strided<[?, ?, ?, 1], offset: ?>>
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]], %{{.*}}:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[VIEW]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [1, %[[N]], %[[M]]],
// CHECK-SAME: strides: [%[[STRIDES]]#0, %[[STRIDES]]#1, 1]
func.func @dropped(%x: memref<1x?x?x?xf32>, %i: index, %n: index, %m: index)
    -> memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>> {
  %y = memref.subview %x[0, 0, %i, 0] [1, %n, 1, %m] [1, 1, 1, 1]
      : memref<1x?x?x?xf32> to memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>>
  return %y : memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>>
}

// The first one goes, as upstream takes it to.
// CHECK-LABEL: func.func @first
// CHECK: memref.subview {{.*}} to memref<?x1x?xf32, strided<[?, ?, 1], offset: ?>>
// CHECK-NEXT: return
func.func @first(%x: memref<1x?x?x?xf32>, %i: index, %n: index, %m: index)
    -> memref<?x1x?xf32, strided<[?, ?, 1], offset: ?>> {
  %y = memref.subview %x[0, 0, %i, 0] [1, %n, 1, %m] [1, 1, 1, 1]
      : memref<1x?x?x?xf32> to memref<?x1x?xf32, strided<[?, ?, 1], offset: ?>>
  return %y : memref<?x1x?xf32, strided<[?, ?, 1], offset: ?>>
}
