// RUN: tile-opt %s --tile-plan-levels | FileCheck-22 %s

tile.kernel @k(%x: memref<64xf32>) grid(%i) {
  tile.return
}

// One that runs once has nothing to save; of one that is not independent nobody asks.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: } {tile.independent, tile.level = "thread"}
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {tile.independent, tile.level = "thread"}
// CHECK: }
// CHECK-NEXT: scf.for
// CHECK: } {tile.independent}
// CHECK-NEXT: scf.for
// CHECK-NOT: tile.level
// CHECK: return
func.func @main(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
  } {tile.independent}
  scf.for %t = %c0 to %c8 step %c1 {
    scf.for %u = %c0 to %n step %c1 {
      tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
    } {tile.independent}
  }
  scf.for %t = %c0 to %c1 step %c1 {
    tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
  } {tile.independent}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
  }
  return
}
