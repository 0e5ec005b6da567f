// RUN: tile-opt %s --tile-split-masks --split-input-file | FileCheck-22 %s

// Columns that a row sees, from the left and (a window) to the right: two comparisons, of the ends of both tiles.

// CHECK-LABEL: tile.kernel @window
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[LAST:.*]] = arith.addi %[[AT:.*]], %c15_i32 : i32
// CHECK: %[[BELOW:.*]] = arith.cmpi sle, %[[LAST]], %[[FIRST:.*]] : i32
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %c7_i32 : i32
// CHECK: %[[NEAR:.*]] = arith.cmpi sgt, %[[AT]], %[[END]] : i32
// CHECK: %[[WHOLE:.*]] = arith.andi %[[BELOW]], %[[NEAR]] : i1
// CHECK: %[[Z:.*]] = scf.if %[[WHOLE]] -> (!tile.tile<8x16xf32>) {
// CHECK-NEXT: scf.yield %[[S]]
// CHECK-NEXT: } else {
// CHECK: arith.cmpi sle
// CHECK: arith.cmpi sgt
// CHECK: %[[CUT:.*]] = tile.select
// CHECK-NEXT: scf.yield %[[CUT]]
// CHECK: tile.store %[[Z]]
tile.kernel @window(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %masked = tile.splat %low : f32 -> !tile.tile<8x16xf32>
  %across = tile.iota dim 0 : !tile.tile<16xi32>
  %down = tile.iota dim 0 : !tile.tile<8xi32>
  %first = arith.index_cast %i : index to i32
  %f = tile.splat %first : i32 -> !tile.tile<8xi32>
  %q = arith.addi %f, %down : !tile.tile<8xi32>
  %qc = tile.reshape %q : !tile.tile<8xi32> -> !tile.tile<8x1xi32>
  %rows = tile.broadcast %qc : !tile.tile<8x1xi32> -> !tile.tile<8x16xi32>
  scf.for %k = %c0 to %c64 step %c16 {
    %at = arith.index_cast %k : index to i32
    %s = tile.splat %at : i32 -> !tile.tile<16xi32>
    %p = arith.addi %s, %across : !tile.tile<16xi32>
    %columns = tile.broadcast %p : !tile.tile<16xi32> -> !tile.tile<8x16xi32>
    %t = tile.load %x[%c0, %k] : memref<8x64xf32>, !tile.tile<8x16xf32>
    %left = arith.cmpi sle, %columns, %rows : !tile.tile<8x16xi32>
    %right = arith.cmpi sgt, %columns, %rows : !tile.tile<8x16xi32>
    %seen = arith.andi %left, %right : !tile.tile<8x16xi1>
    %z = tile.select %seen, %t, %masked : !tile.tile<8x16xi1>, !tile.tile<8x16xf32>
    tile.store %z, %y[%c0, %k] : !tile.tile<8x16xf32>, memref<8x64xf32>
  }
  tile.return
}

// -----

// The condition says what is masked: where nothing is, the first column is not behind the last row.

// CHECK-LABEL: tile.kernel @masked
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c15_i32 : i32
// CHECK: %[[WHOLE:.*]] = arith.cmpi sle, %[[LAST]], %{{.*}} : i32
// CHECK: scf.if %[[WHOLE]] -> (!tile.tile<16x16xf32>) {
// CHECK-NEXT: scf.yield %[[S]]
tile.kernel @masked(%x: memref<16x64xf32>, %y: memref<16x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %masked = tile.splat %low : f32 -> !tile.tile<16x16xf32>
  %ticks = tile.iota dim 0 : !tile.tile<16xi32>
  %first = arith.index_cast %i : index to i32
  %f = tile.splat %first : i32 -> !tile.tile<16xi32>
  %q = arith.addi %f, %ticks : !tile.tile<16xi32>
  %qc = tile.reshape %q : !tile.tile<16xi32> -> !tile.tile<16x1xi32>
  %rows = tile.broadcast %qc : !tile.tile<16x1xi32> -> !tile.tile<16x16xi32>
  scf.for %k = %c0 to %c64 step %c16 {
    %at = arith.index_cast %k : index to i32
    %s = tile.splat %at : i32 -> !tile.tile<16xi32>
    %p = arith.addi %s, %ticks : !tile.tile<16xi32>
    %columns = tile.broadcast %p : !tile.tile<16xi32> -> !tile.tile<16x16xi32>
    %t = tile.load %x[%c0, %k] : memref<16x64xf32>, !tile.tile<16x16xf32>
    %gone = arith.cmpi sgt, %columns, %rows : !tile.tile<16x16xi32>
    %z = tile.select %gone, %masked, %t : !tile.tile<16x16xi1>, !tile.tile<16x16xf32>
    tile.store %z, %y[%c0, %k] : !tile.tile<16x16xf32>, memref<16x64xf32>
  }
  tile.return
}

// -----

// Positions that are read from memory may be anything, and equality says nothing of ends.

// CHECK-LABEL: tile.kernel @unknown
// CHECK-NOT: scf.if
// CHECK: tile.return
tile.kernel @unknown(%x: memref<64xf32>, %at: memref<64xi32>, %y: memref<64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0.0 : f32
  %masked = tile.splat %low : f32 -> !tile.tile<16xf32>
  %ticks = tile.iota dim 0 : !tile.tile<16xi32>
  %first = arith.index_cast %i : index to i32
  %f = tile.splat %first : i32 -> !tile.tile<16xi32>
  %q = arith.addi %f, %ticks : !tile.tile<16xi32>
  scf.for %k = %c0 to %c64 step %c16 {
    %t = tile.load %x[%k] : memref<64xf32>, !tile.tile<16xf32>
    %p = tile.load %at[%k] : memref<64xi32>, !tile.tile<16xi32>
    %seen = arith.cmpi sle, %p, %q : !tile.tile<16xi32>
    %z = tile.select %seen, %t, %masked : !tile.tile<16xi1>, !tile.tile<16xf32>
    %same = arith.cmpi eq, %q, %q : !tile.tile<16xi32>
    %w = tile.select %same, %z, %masked : !tile.tile<16xi1>, !tile.tile<16xf32>
    tile.store %w, %y[%k] : !tile.tile<16xf32>, memref<64xf32>
  }
  tile.return
}

// -----

// A selection that is not in a loop stays.

// CHECK-LABEL: tile.kernel @once
// CHECK-NOT: scf.if
// CHECK: tile.return
tile.kernel @once(%x: memref<16xf32>, %y: memref<16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0.0 : f32
  %masked = tile.splat %low : f32 -> !tile.tile<16xf32>
  %ticks = tile.iota dim 0 : !tile.tile<16xi32>
  %first = arith.index_cast %i : index to i32
  %f = tile.splat %first : i32 -> !tile.tile<16xi32>
  %q = arith.addi %f, %ticks : !tile.tile<16xi32>
  %t = tile.load %x[%c0] : memref<16xf32>, !tile.tile<16xf32>
  %seen = arith.cmpi slt, %q, %q : !tile.tile<16xi32>
  %z = tile.select %seen, %t, %masked : !tile.tile<16xi1>, !tile.tile<16xf32>
  tile.store %z, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
  tile.return
}
