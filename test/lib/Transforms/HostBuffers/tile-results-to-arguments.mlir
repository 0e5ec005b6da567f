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

// -----

// A slice with gaps is no plain memory, whatever bufferization casts it to; the caller gets a copy.
// CHECK: func.func @main(
// CHECK: %[[S:.*]] = memref.subview
// CHECK: %[[N:.*]] = memref.alloc(%{{.*}}) : memref<2x?xf32>
// CHECK: memref.copy %[[S]], %[[N]]
// CHECK: return %[[N]]
func.func @main(%x: memref<2x10xf32>, %n: index) -> (memref<2x?xf32> {tile.name = "y"}) {
  %s = memref.subview %x[0, 0] [2, %n] [1, 1] : memref<2x10xf32> to memref<2x?xf32, strided<[10, 1]>>
  %c = memref.cast %s : memref<2x?xf32, strided<[10, 1]>> to memref<2x?xf32>
  return %c : memref<2x?xf32>
}

// -----

// The first rows lie side by side.
// CHECK: func.func @main(
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @main(%x: memref<6x10xf32>, %n: index) -> (memref<?x10xf32> {tile.name = "y"}) {
  %s = memref.subview %x[0, 0] [%n, 10] [1, 1] : memref<6x10xf32> to memref<?x10xf32, strided<[10, 1]>>
  %c = memref.cast %s : memref<?x10xf32, strided<[10, 1]>> to memref<?x10xf32>
  return %c : memref<?x10xf32>
}

// -----

// Rows from somewhere on do not begin where the buffer does.
// CHECK: func.func @main(
// CHECK: %[[N:.*]] = memref.alloc(%{{.*}}) : memref<?x10xf32>
// CHECK: return %[[N]]
func.func @main(%x: memref<6x10xf32>, %n: index) -> (memref<?x10xf32> {tile.name = "y"}) {
  %s = memref.subview %x[%n, 0] [%n, 10] [1, 1] : memref<6x10xf32> to memref<?x10xf32, strided<[10, 1], offset: ?>>
  %c = memref.cast %s : memref<?x10xf32, strided<[10, 1], offset: ?>> to memref<?x10xf32>
  return %c : memref<?x10xf32>
}

// -----

// What continues an input lies behind it already: its sizes are told, and nothing is copied.
// CHECK: func.func @main(%[[PAST:.*]]: memref<?x4xf32> {tile.name = "past"},
// CHECK-SAME: %[[ROOM:[^:]*]]: memref<?x4xf32> {tile.appends = array<i64: 0, 0, 0>, tile.name = "present",
// CHECK-SAME: tile.result = 0 : i64}, %[[SIZES:.*]]: memref<2xi64> {tile.sizes_of = 0 : i64}) {
// CHECK: %[[ALL:.*]] = arith.addi
// CHECK-NOT: memref.copy
// CHECK: %[[N:.*]] = arith.index_cast %[[ALL]]
// CHECK: memref.store %[[N]], %[[SIZES]][%c0{{.*}}]
// CHECK: %[[M:.*]] = arith.index_cast %c4
// CHECK: memref.store %[[M]], %[[SIZES]][%c1{{.*}}]
// CHECK: return{{$}}
func.func @main(%past: memref<?x4xf32> {tile.name = "past"},
    %room: memref<?x4xf32> {tile.appends = array<i64: 0, 0, 0>, tile.name = "present"})
    -> (memref<?x4xf32> {tile.name = "present"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %past, %c0 : memref<?x4xf32>
  %all = arith.addi %n, %c1 : index
  %s = memref.subview %room[0, 0] [%all, 4] [1, 1] : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1]>>
  memref.store %one, %s[%n, %c0] : memref<?x4xf32, strided<[4, 1]>>
  %c = memref.cast %s : memref<?x4xf32, strided<[4, 1]>> to memref<?x4xf32>
  return %c : memref<?x4xf32>
}

// -----

// Where bufferization made it elsewhere, it is copied to its place.
// CHECK: func.func @main(
// CHECK-SAME: %[[ROOM:[^:]*]]: memref<?x4xf32> {tile.appends
// CHECK: %[[OWN:.*]] = memref.alloc
// CHECK: %[[PLACE:.*]] = memref.subview %[[ROOM]][0, 0]
// CHECK: memref.copy %[[OWN]], %[[PLACE]]
// CHECK: return{{$}}
func.func @main(%past: memref<?x4xf32>, %room: memref<?x4xf32> {tile.appends = array<i64: 0, 0, 0>})
    -> memref<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = memref.dim %past, %c0 : memref<?x4xf32>
  %own = memref.alloc(%n) : memref<?x4xf32>
  return %own : memref<?x4xf32>
}
