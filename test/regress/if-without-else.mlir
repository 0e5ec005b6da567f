// RUN: tile-opt %s --tile-materialize-copies | FileCheck-22 %s

// The copies of a choice's results were sought in the block of its else, which an scf.if without results has not.

// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: memref.store
func.func @main(%c: i1, %m: memref<f32>, %v: f32) {
  scf.if %c {
    memref.store %v, %m[] : memref<f32>
  }
  return
}
