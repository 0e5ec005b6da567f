// RUN: tile-opt %s --tile-plan-programs="units=2" | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-programs="units=1" | FileCheck-22 %s --check-prefix=ALONE

// ALONE-NOT: tile.units
tile.kernel @k(%x: memref<4096xf32>, %y: memref<4096xf32>) grid(%i) {
  tile.return
}
tile.kernel @one(%x: memref<4096xf32>, %y: memref<4096xf32>) {
  tile.return
}
tile.kernel @long(%x: memref<64x1048576xf32>) grid(%i) {
  tile.return
}

// Short steps that exchange two buffers: an even number of them, which divides the loop, is a program.
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @k
// CHECK: } {tile.steps = 20 : i64, tile.units = 2 : i64}
// 101 steps are four programs and one step. Of steps that a run brings, few stay behind any number of programs.
// CHECK: } {tile.steps = 25 : i64, tile.units = 2 : i64}
// CHECK: } {tile.steps = 16 : i64, tile.units = 2 : i64}
// A launch of one task has nothing to share, and long launches stay launches.
// CHECK-NOT: tile.units
func.func @main(%h: memref<4096xf32>, %n: memref<4096xf32>, %w: memref<64x1048576xf32>, %trips: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c100 = arith.constant 100 : index
  %c101 = arith.constant 101 : index
  %r:2 = scf.for %t = %c0 to %c100 step %c1 iter_args(%a = %h, %b = %n) -> (memref<4096xf32>, memref<4096xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<4096xf32>) outs(%b : memref<4096xf32>)
    scf.yield %b, %a : memref<4096xf32>, memref<4096xf32>
  }
  scf.for %t = %c0 to %c101 step %c1 {
    tile.launch @k grid(%c8) ins(%h : memref<4096xf32>) outs(%n : memref<4096xf32>)
  }
  scf.for %t = %c0 to %trips step %c1 {
    tile.launch @k grid(%c8) ins(%h : memref<4096xf32>) outs(%n : memref<4096xf32>)
  }
  scf.for %t = %c0 to %c100 step %c1 {
    tile.launch @one ins(%h : memref<4096xf32>) outs(%n : memref<4096xf32>)
  }
  scf.for %t = %c0 to %c100 step %c1 {
    tile.launch @long grid(%c8) outs(%w : memref<64x1048576xf32>)
  }
  return
}
