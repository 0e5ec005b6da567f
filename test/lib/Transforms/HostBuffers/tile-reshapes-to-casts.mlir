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
