// RUN: tile-opt %s --split-input-file \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck-22 %s

// A tensor that is read and written by one launch stays in its buffer where each task reads exactly what it writes
// later; otherwise the old contents are kept in a copy.

tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %s[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  %b = math.exp %a : !tile.tile<1x16xf32>
  tile.store %b, %t[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @same
// CHECK-NOT:   memref.alloc
// CHECK:       tile.launch @step grid({{.*}}) ins(%[[S:.*]] : {{.*}}) outs(%[[S]] :
// CHECK-NOT:   memref.copy
// CHECK:       return
func.func @same(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %r = tile.launch @step grid(%c8) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// Tasks of 4 rows in blocks of 8 columns: multiples of a coordinate and of a loop's variable.
#times4 = affine_map<(d0) -> (d0 * 4)>
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %row = affine.apply #times4(%i)
  scf.for %j = %c0 to %c16 step %c8 {
    %a = tile.load %s[%row, %j] : memref<8x16xf32>, !tile.tile<4x8xf32>
    tile.store %a, %t[%row, %j] : !tile.tile<4x8xf32>, memref<8x16xf32>
  }
  tile.return
}
// CHECK-LABEL: func.func @blocks
// CHECK-NOT:   memref.alloc
// CHECK:       return
func.func @blocks(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c2 = arith.constant 2 : index
  %r = tile.launch @step grid(%c2) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// A task of 4 rows makes 3 and then the last one, in one block: each has elements of its own.
#times4 = affine_map<(d0) -> (d0 * 4)>
#last = affine_map<(d0) -> (d0 * 4 + 3)>
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %row = affine.apply #times4(%i)
  %last = affine.apply #last(%i)
  %a = tile.load %s[%row, %c0] : memref<8x16xf32>, !tile.tile<3x16xf32>
  tile.store %a, %t[%row, %c0] : !tile.tile<3x16xf32>, memref<8x16xf32>
  %b = tile.load %s[%last, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %b, %t[%last, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @parts
// CHECK-NOT:   memref.alloc
// CHECK:       return
func.func @parts(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c2 = arith.constant 2 : index
  %r = tile.launch @step grid(%c2) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// The second part begins with the last row of the first one.
#times4 = affine_map<(d0) -> (d0 * 4)>
#middle = affine_map<(d0) -> (d0 * 4 + 2)>
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %row = affine.apply #times4(%i)
  %middle = affine.apply #middle(%i)
  %a = tile.load %s[%row, %c0] : memref<8x16xf32>, !tile.tile<3x16xf32>
  tile.store %a, %t[%row, %c0] : !tile.tile<3x16xf32>, memref<8x16xf32>
  %b = tile.load %s[%middle, %c0] : memref<8x16xf32>, !tile.tile<2x16xf32>
  tile.store %b, %t[%middle, %c0] : !tile.tile<2x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @crossing
// CHECK:       memref.copy
// CHECK:       return
func.func @crossing(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c2 = arith.constant 2 : index
  %r = tile.launch @step grid(%c2) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// Blocks of 4 rows every 2 rows overlap.
#times2 = affine_map<(d0) -> (d0 * 2)>
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %row = affine.apply #times2(%i)
  %a = tile.load %s[%row, %c0] : memref<8x16xf32>, !tile.tile<4x16xf32>
  tile.store %a, %t[%row, %c0] : !tile.tile<4x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @overlap
// CHECK:       memref.alloc
func.func @overlap(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c3 = arith.constant 3 : index
  %r = tile.launch @step grid(%c3) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// A task reads the neighbour's row.
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %other = arith.subi %c7, %i : index
  %a = tile.load %s[%other, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %a, %t[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @neighbour
// CHECK:       memref.alloc
func.func @neighbour(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %r = tile.launch @step grid(%c8) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// The row is read again after it was written.
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>, %u: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %s[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  %b = math.exp %a : !tile.tile<1x16xf32>
  tile.store %b, %t[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  %c = tile.load %s[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %c, %u[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @late
// CHECK:       memref.alloc
func.func @late(%s: tensor<8x16xf32>, %u: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %c8 = arith.constant 8 : index
  %r:2 = tile.launch @step grid(%c8) ins(%s : tensor<8x16xf32>) outs(%s, %u : tensor<8x16xf32>, tensor<8x16xf32>)
      -> (tensor<8x16xf32>, tensor<8x16xf32>)
  return %r#0, %r#1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// All tasks touch the same row.
tile.kernel @step(%s: memref<8x16xf32>, %t: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %s[%c0, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %a, %t[%c0, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
// CHECK-LABEL: func.func @shared
// CHECK:       memref.alloc
func.func @shared(%s: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %r = tile.launch @step grid(%c8) ins(%s : tensor<8x16xf32>) outs(%s : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %r : tensor<8x16xf32>
}

// -----

// The last task has a part of a tile: either branch stays in the task's own columns.
#times48 = affine_map<()[s0] -> (s0 * 48)>
tile.kernel @step(%s: memref<8x200xf32>, %t: memref<8x200xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %last = arith.cmpi eq, %i, %c4 : index
  %at = affine.apply #times48()[%i]
  scf.if %last {
    %a = tile.load %s[%c0, %at] : memref<8x200xf32>, !tile.tile<8x8xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x8xf32>, memref<8x200xf32>
  } else {
    %a = tile.load %s[%c0, %at] : memref<8x200xf32>, !tile.tile<8x48xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x48xf32>, memref<8x200xf32>
  }
  tile.return
}
// CHECK-LABEL: func.func @part
// CHECK-NOT:   memref.alloc
// CHECK:       return
func.func @part(%s: tensor<8x200xf32>) -> tensor<8x200xf32> {
  %c5 = arith.constant 5 : index
  %r = tile.launch @step grid(%c5) ins(%s : tensor<8x200xf32>) outs(%s : tensor<8x200xf32>) -> (tensor<8x200xf32>)
  return %r : tensor<8x200xf32>
}

// -----

// Several tiles per task, and what is left of it behind them.
#at = affine_map<(d0)[s0] -> (d0 + s0 * 80)>
#rest = affine_map<()[s0] -> (s0 * 80 + 64)>
tile.kernel @step(%s: memref<8x160xf32>, %t: memref<8x160xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c32 {
    %at = affine.apply #at(%j)[%i]
    %a = tile.load %s[%c0, %at] : memref<8x160xf32>, !tile.tile<8x32xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x32xf32>, memref<8x160xf32>
  }
  %left = affine.apply #rest()[%i]
  %b = tile.load %s[%c0, %left] : memref<8x160xf32>, !tile.tile<8x16xf32>
  tile.store %b, %t[%c0, %left] : !tile.tile<8x16xf32>, memref<8x160xf32>
  tile.return
}
// CHECK-LABEL: func.func @rest
// CHECK-NOT:   memref.alloc
// CHECK:       return
func.func @rest(%s: tensor<8x160xf32>) -> tensor<8x160xf32> {
  %c2 = arith.constant 2 : index
  %r = tile.launch @step grid(%c2) ins(%s : tensor<8x160xf32>) outs(%s : tensor<8x160xf32>) -> (tensor<8x160xf32>)
  return %r : tensor<8x160xf32>
}

// -----

// The rest starts inside of the tiles before it, which have been written by then.
#at = affine_map<(d0)[s0] -> (d0 + s0 * 80)>
#rest = affine_map<()[s0] -> (s0 * 80 + 56)>
tile.kernel @step(%s: memref<8x160xf32>, %t: memref<8x160xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c32 {
    %at = affine.apply #at(%j)[%i]
    %a = tile.load %s[%c0, %at] : memref<8x160xf32>, !tile.tile<8x32xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x32xf32>, memref<8x160xf32>
  }
  %left = affine.apply #rest()[%i]
  %b = tile.load %s[%c0, %left] : memref<8x160xf32>, !tile.tile<8x16xf32>
  tile.store %b, %t[%c0, %left] : !tile.tile<8x16xf32>, memref<8x160xf32>
  tile.return
}
// CHECK-LABEL: func.func @twice
// CHECK:       memref.alloc
func.func @twice(%s: tensor<8x160xf32>) -> tensor<8x160xf32> {
  %c2 = arith.constant 2 : index
  %r = tile.launch @step grid(%c2) ins(%s : tensor<8x160xf32>) outs(%s : tensor<8x160xf32>) -> (tensor<8x160xf32>)
  return %r : tensor<8x160xf32>
}

// -----

// One branch reaches into the next task's columns.
#times48 = affine_map<()[s0] -> (s0 * 48)>
tile.kernel @step(%s: memref<8x200xf32>, %t: memref<8x200xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %last = arith.cmpi eq, %i, %c4 : index
  %at = affine.apply #times48()[%i]
  scf.if %last {
    %a = tile.load %s[%c0, %at] : memref<8x200xf32>, !tile.tile<8x8xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x8xf32>, memref<8x200xf32>
  } else {
    %a = tile.load %s[%c0, %at] : memref<8x200xf32>, !tile.tile<8x56xf32>
    tile.store %a, %t[%c0, %at] : !tile.tile<8x56xf32>, memref<8x200xf32>
  }
  tile.return
}
// CHECK-LABEL: func.func @reaches
// CHECK:       memref.alloc
func.func @reaches(%s: tensor<8x200xf32>) -> tensor<8x200xf32> {
  %c5 = arith.constant 5 : index
  %r = tile.launch @step grid(%c5) ins(%s : tensor<8x200xf32>) outs(%s : tensor<8x200xf32>) -> (tensor<8x200xf32>)
  return %r : tensor<8x200xf32>
}
