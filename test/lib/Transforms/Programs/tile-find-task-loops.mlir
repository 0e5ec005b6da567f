// RUN: tile-opt %s --tile-find-task-loops --split-input-file | FileCheck-22 %s

#rows = affine_map<(d0) -> (d0 * 8)>
#columns = affine_map<(d0)[s0] -> (d0 * 16 + s0)>

tile.kernel @step(%h: memref<32x64xf32>, %x: memref<32x64xf32, strided<[64, 1], offset: ?>>, %n: memref<32x64xf32>)
    grid(%i, %j) {
  %r = affine.apply #rows(%i)
  %c0 = arith.constant 0 : index
  %c = affine.apply #columns(%j)[%c0]
  %a = tile.load %h[%r, %c] : memref<32x64xf32>, !tile.tile<8x16xf32>
  %b = tile.load %x[%r, %c] : memref<32x64xf32, strided<[64, 1], offset: ?>>, !tile.tile<8x16xf32>
  %s = arith.addf %a, %b : !tile.tile<8x16xf32>
  tile.store %s, %n[%r, %c] : !tile.tile<8x16xf32>, memref<32x64xf32>
  tile.return
}

// An elementwise state that two buffers hold by turns, which are pieces of one; elements of a list as views.
// CHECK-LABEL: func.func @elementwise
// CHECK: } {tile.independent}
func.func @elementwise(%xs: memref<9x32x64xf32>, %arena: memref<16384xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c8192 = arith.constant 8192 : index
  %h = memref.view %arena[%c0][] : memref<16384xi8> to memref<32x64xf32>
  %n = memref.view %arena[%c8192][] : memref<16384xi8> to memref<32x64xf32>
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %h, %b = %n) -> (memref<32x64xf32>, memref<32x64xf32>) {
    %x = memref.subview %xs[%t, 0, 0] [1, 32, 64] [1, 1, 1]
        : memref<9x32x64xf32> to memref<32x64xf32, strided<[64, 1], offset: ?>>
    tile.launch @step grid(%c4, %c4) ins(%a, %x : memref<32x64xf32>, memref<32x64xf32, strided<[64, 1], offset: ?>>)
        outs(%b : memref<32x64xf32>)
    scf.yield %b, %a : memref<32x64xf32>, memref<32x64xf32>
  }
  return
}

// The same buffers, of which one begins in the middle of the other.
// CHECK-LABEL: func.func @overlapping
// CHECK-NOT: tile.independent
func.func @overlapping(%xs: memref<9x32x64xf32>, %arena: memref<16384xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c4096 = arith.constant 4096 : index
  %h = memref.view %arena[%c0][] : memref<16384xi8> to memref<32x64xf32>
  %n = memref.view %arena[%c4096][] : memref<16384xi8> to memref<32x64xf32>
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %h, %b = %n) -> (memref<32x64xf32>, memref<32x64xf32>) {
    %x = memref.subview %xs[%t, 0, 0] [1, 32, 64] [1, 1, 1]
        : memref<9x32x64xf32> to memref<32x64xf32, strided<[64, 1], offset: ?>>
    tile.launch @step grid(%c4, %c4) ins(%a, %x : memref<32x64xf32>, memref<32x64xf32, strided<[64, 1], offset: ?>>)
        outs(%b : memref<32x64xf32>)
    scf.yield %b, %a : memref<32x64xf32>, memref<32x64xf32>
  }
  return
}

// -----

#rows = affine_map<(d0) -> (d0 * 8)>
#cells = affine_map<(d0, d1) -> (d0 * 8 + d1)>

// Whole rows are read, by a loop over columns; a second launch has their sums. Rows are a task's own.
tile.kernel @rows(%h: memref<32x64xf32>, %s: memref<32x1xf32>) grid(%i) {
  %zero = arith.constant dense<0.0> : !tile.tile<8x16xf32>
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r = affine.apply #rows(%i)
  %all = scf.for %j = %c0 to %c64 step %c16 iter_args(%sum = %zero) -> !tile.tile<8x16xf32> {
    %a = tile.load %h[%r, %j] : memref<32x64xf32>, !tile.tile<8x16xf32>
    %more = arith.addf %sum, %a : !tile.tile<8x16xf32>
    scf.yield %more : !tile.tile<8x16xf32>
  }
  %t = tile.reduce add %all dims [1] : !tile.tile<8x16xf32> -> !tile.tile<8x1xf32>
  tile.store %t, %s[%r, %c0] : !tile.tile<8x1xf32>, memref<32x1xf32>
  tile.return
}
tile.kernel @back(%s: memref<32x1xf32>, %h: memref<32x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %k = %c0 to %c8 step %c1 {
    %r = affine.apply #cells(%i, %k)
    %t = tile.load %s[%r, %c0] : memref<32x1xf32>, !tile.tile<1x1xf32>
    %w = tile.broadcast %t : !tile.tile<1x1xf32> -> !tile.tile<1x64xf32>
    tile.store %w, %h[%r, %c0] : !tile.tile<1x64xf32>, memref<32x64xf32>
  }
  tile.return
}
// CHECK-LABEL: func.func @rows_of_two_launches
// CHECK: } {tile.independent}
func.func @rows_of_two_launches(%h: memref<32x64xf32>, %s: memref<32x1xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %n step %c1 {
    tile.launch @rows grid(%c4) ins(%h : memref<32x64xf32>) outs(%s : memref<32x1xf32>)
    tile.launch @back grid(%c4) ins(%s : memref<32x1xf32>) outs(%h : memref<32x64xf32>)
  }
  return
}

// Grids differ: rows of one are not those of the other.
// CHECK-LABEL: func.func @other_grid
// CHECK-NOT: tile.independent
func.func @other_grid(%h: memref<32x64xf32>, %s: memref<32x1xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %n step %c1 {
    tile.launch @rows grid(%c4) ins(%h : memref<32x64xf32>) outs(%s : memref<32x1xf32>)
    tile.launch @back grid(%c2) ins(%s : memref<32x1xf32>) outs(%h : memref<32x64xf32>)
  }
  return
}

// -----

#rows = affine_map<(d0) -> (d0 * 8)>
#next = affine_map<(d0) -> (d0 * 8 + 1)>

// A row of the next task is read.
tile.kernel @shift(%h: memref<33x64xf32>, %n: memref<33x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %r = affine.apply #rows(%i)
  %r1 = affine.apply #next(%i)
  %a = tile.load %h[%r1, %c0] : memref<33x64xf32>, !tile.tile<8x64xf32>
  tile.store %a, %n[%r, %c0] : !tile.tile<8x64xf32>, memref<33x64xf32>
  tile.return
}
// CHECK-LABEL: func.func @neighbours
// CHECK-NOT: tile.independent
func.func @neighbours(%h: memref<33x64xf32>, %n: memref<33x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    tile.launch @shift grid(%c4) ins(%h : memref<33x64xf32>) outs(%n : memref<33x64xf32>)
    tile.launch @shift grid(%c4) ins(%n : memref<33x64xf32>) outs(%h : memref<33x64xf32>)
  }
  return
}

// One task: whatever it does, it does in order.
// CHECK-LABEL: func.func @one_task
// CHECK: } {tile.independent}
func.func @one_task(%h: memref<33x64xf32>, %n: memref<33x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    tile.launch @shift grid(%c1) ins(%h : memref<33x64xf32>) outs(%n : memref<33x64xf32>)
    tile.launch @shift grid(%c1) ins(%n : memref<33x64xf32>) outs(%h : memref<33x64xf32>)
  }
  return
}

// A state is read as of the iteration before, and a view of the same buffer is of another shape: places are not
// compared.
// CHECK-LABEL: func.func @other_view
// CHECK-NOT: tile.independent
func.func @other_view(%h: memref<33x64xf32>, %all: memref<2x33x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %whole = memref.collapse_shape %all [[0, 1, 2]] : memref<2x33x64xf32> into memref<4224xf32>
  %n = memref.reinterpret_cast %whole to offset: [64], sizes: [33, 64], strides: [64, 1]
      : memref<4224xf32> to memref<33x64xf32, strided<[64, 1], offset: 64>>
  scf.for %t = %c0 to %c4 step %c1 {
    %x = memref.subview %all[%t, 0, 0] [1, 33, 64] [1, 1, 1]
        : memref<2x33x64xf32> to memref<33x64xf32, strided<[64, 1], offset: ?>>
    tile.launch @other grid(%c4) ins(%x : memref<33x64xf32, strided<[64, 1], offset: ?>>)
        outs(%n : memref<33x64xf32, strided<[64, 1], offset: 64>>)
  }
  return
}
tile.kernel @other(%h: memref<33x64xf32, strided<[64, 1], offset: ?>>,
                   %n: memref<33x64xf32, strided<[64, 1], offset: 64>>) grid(%i) {
  %c0 = arith.constant 0 : index
  %r = affine.apply #rows(%i)
  %a = tile.load %h[%r, %c0] : memref<33x64xf32, strided<[64, 1], offset: ?>>, !tile.tile<8x64xf32>
  tile.store %a, %n[%r, %c0] : !tile.tile<8x64xf32>, memref<33x64xf32, strided<[64, 1], offset: 64>>
  tile.return
}

// -----

// A view that another iteration has elsewhere: what one task wrote is another one's then.
tile.kernel @k(%a: memref<64xf32, strided<[1], offset: ?>>) grid(%i) {
  %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %t = tile.load %a[%o] : memref<64xf32, strided<[1], offset: ?>>, !tile.tile<8xf32>
  %u = arith.addf %t, %t : !tile.tile<8xf32>
  tile.store %u, %a[%o] : !tile.tile<8xf32>, memref<64xf32, strided<[1], offset: ?>>
  tile.return
}
// CHECK-LABEL: func.func @sliding
// CHECK-NOT: tile.independent
func.func @sliding(%h: memref<128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    %s = arith.muli %t, %c8 : index
    %v = memref.subview %h[%s] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1], offset: ?>>
    tile.launch @k grid(%c8) outs(%v : memref<64xf32, strided<[1], offset: ?>>)
  }
  return
}
// CHECK-LABEL: func.func @sliding_piece
// CHECK-NOT: tile.independent
func.func @sliding_piece(%h: memref<1024xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  scf.for %t = %c0 to %c8 step %c1 {
    %s = arith.muli %t, %c32 : index
    %v = memref.view %h[%s][] : memref<1024xi8> to memref<64xf32>
    %w = memref.cast %v : memref<64xf32> to memref<64xf32, strided<[1], offset: ?>>
    tile.launch @k grid(%c8) outs(%w : memref<64xf32, strided<[1], offset: ?>>)
  }
  return
}
// CHECK-LABEL: func.func @cast_of_a_state
// CHECK-NOT: tile.independent
func.func @cast_of_a_state(%h: memref<64xf32>, %n: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %w = memref.cast %a : memref<64xf32> to memref<64xf32, strided<[1], offset: ?>>
    tile.launch @k grid(%c8) outs(%w : memref<64xf32, strided<[1], offset: ?>>)
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  return
}

// -----

// A buffer that a loop around hands on: which one it is, the kernel could not be told.
tile.kernel @k(%a: memref<64xf32>) grid(%i) {
  %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %t = tile.load %a[%o] : memref<64xf32>, !tile.tile<8xf32>
  %u = arith.addf %t, %t : !tile.tile<8xf32>
  tile.store %u, %a[%o] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
// CHECK-LABEL: func.func @handed_on_around
// CHECK-NOT: tile.independent
func.func @handed_on_around(%h: memref<64xf32>, %n: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    scf.for %u = %c0 to %c8 step %c1 {
      tile.launch @k grid(%c8) outs(%a : memref<64xf32>)
    }
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  return
}

// -----

#rows = affine_map<(d0)[s0] -> (d0 + s0 * 8)>

// Gates are written as one buffer, four rows at a time, and read as slices of it, each of which has all rows.
tile.kernel @gates(%h: memref<16x64xf32>, %g: memref<16x2x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %k = %c0 to %c8 step %c4 {
    %r = affine.apply #rows(%k)[%i]
    %a = tile.load %h[%r, %c0] : memref<16x64xf32>, !tile.tile<4x64xf32>
    tile.store %a, %g[%r, %c0, %c0] dims [0, 2] : !tile.tile<4x64xf32>, memref<16x2x64xf32>
    tile.store %a, %g[%r, %c1, %c0] dims [0, 2] : !tile.tile<4x64xf32>, memref<16x2x64xf32>
  }
  tile.return
}
tile.kernel @cell(%a: memref<16x64xf32, strided<[128, 1], offset: ?>>, %h: memref<16x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %r = affine.apply #rows(%c0)[%i]
  %t = tile.load %a[%r, %c0] : memref<16x64xf32, strided<[128, 1], offset: ?>>, !tile.tile<8x64xf32>
  tile.store %t, %h[%r, %c0] : !tile.tile<8x64xf32>, memref<16x64xf32>
  tile.return
}
// CHECK-LABEL: func.func @slices
// CHECK: } {tile.independent}
func.func @slices(%h: memref<16x64xf32>, %g: memref<16x2x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    tile.launch @gates grid(%c2) ins(%h : memref<16x64xf32>) outs(%g : memref<16x2x64xf32>)
    %a = memref.subview %g[0, 1, 0] [16, 1, 64] [1, 1, 1]
        : memref<16x2x64xf32> to memref<16x64xf32, strided<[128, 1], offset: 64>>
    tile.launch @cell grid(%c2) ins(%a : memref<16x64xf32, strided<[128, 1], offset: 64>>)
        outs(%h : memref<16x64xf32>)
  }
  return
}

// -----

#rows = affine_map<(d0) -> (d0 * 8)>

// A slice that begins one row later: its rows are those of the next task, too.
tile.kernel @copy(%x: memref<16x64xf32, strided<[64, 1], offset: ?>>,
    %y: memref<16x64xf32, strided<[64, 1], offset: ?>>) grid(%i) {
  %c0 = arith.constant 0 : index
  %r = affine.apply #rows(%i)
  %t = tile.load %x[%r, %c0] : memref<16x64xf32, strided<[64, 1], offset: ?>>, !tile.tile<8x64xf32>
  tile.store %t, %y[%r, %c0] : !tile.tile<8x64xf32>, memref<16x64xf32, strided<[64, 1], offset: ?>>
  tile.return
}
// CHECK-LABEL: func.func @shifted_slices
// CHECK-NOT: tile.independent
func.func @shifted_slices(%h: memref<17x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    %a = memref.subview %h[1, 0] [16, 64] [1, 1] : memref<17x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 64>>
    %b = memref.subview %h[0, 0] [16, 64] [1, 1] : memref<17x64xf32> to memref<16x64xf32, strided<[64, 1]>>
    tile.launch @copy grid(%c2) ins(%a : memref<16x64xf32, strided<[64, 1], offset: 64>>)
        outs(%b : memref<16x64xf32, strided<[64, 1]>>)
  }
  return
}
