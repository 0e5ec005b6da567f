// RUN: tile-opt %s --tile-unswitch-fetches --split-input-file | FileCheck-22 %s

// A branch inside of a side is a branch of that side's loop: three loops for three ways.

// CHECK-LABEL: tile.kernel @ways
// CHECK-SAME: %[[ONE:[a-z0-9]*]]: i1, %[[FEW:[a-z0-9]*]]: i1
// CHECK: %[[SUM:.*]] = scf.if %[[ONE]] -> (f32) {
// CHECK: %[[A:.*]] = scf.for %[[I:.*]] = %c0
// CHECK-COUNT-2: memref.prefetch
// CHECK-NOT: scf.if
// CHECK: scf.yield %[[A]] : f32
// CHECK: } else {
// CHECK: %[[REST:.*]] = scf.if %[[FEW]] -> (f32) {
// CHECK: scf.for
// CHECK-COUNT-1: memref.prefetch
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: memref.prefetch
// CHECK: scf.yield %[[REST]] : f32
// CHECK: memref.store %[[SUM]]
tile.kernel @ways(%x: memref<64xf32>, %y: memref<f32>, %one: i1, %few: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c32 step %c1 iter_args(%a = %zero) -> (f32) {
    scf.if %one {
      memref.prefetch %x[%i], read, locality<2>, data : memref<64xf32>
      memref.prefetch %x[%c32], read, locality<2>, data : memref<64xf32>
    } else {
      scf.if %few {
        memref.prefetch %x[%i], read, locality<2>, data : memref<64xf32>
      }
    }
    %t = memref.load %x[%i] : memref<64xf32>
    %n = arith.addf %a, %t : f32
    scf.yield %n : f32
  }
  memref.store %sum, %y[] : memref<f32>
  tile.return
}

// -----

// Branches stay that do more than fetch, or whose condition changes; loops around other loops stay.

// CHECK-LABEL: tile.kernel @stay
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: scf.if
// CHECK: scf.for %[[J:.*]] =
// CHECK-NEXT: %[[HERE:.*]] = arith.cmpi eq, %[[J]], %c0
// CHECK-NEXT: scf.if %[[HERE]]
// CHECK: scf.if
// CHECK-NEXT: memref.store
tile.kernel @stay(%x: memref<64xf32>, %y: memref<f32>, %few: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c32 step %c1 {
    scf.if %few {
      memref.prefetch %x[%i], read, locality<2>, data : memref<64xf32>
    }
    scf.for %j = %c0 to %c32 step %c1 {
      %here = arith.cmpi eq, %j, %c0 : index
      scf.if %here {
        memref.prefetch %x[%j], read, locality<2>, data : memref<64xf32>
      }
      scf.if %few {
        memref.store %zero, %y[] : memref<f32>
      }
    }
  }
  tile.return
}
