// RUN: tile-opt %s -convert-tile-kernel-to-func | FileCheck-22 %s

// CHECK-LABEL: func.func @k(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64, %arg3: !llvm.ptr {llvm.noalias})
// CHECK-SAME: attributes {tile.code, tile.scratch_bytes = 320 : i64}
// CHECK: memref.distinct_objects
// CHECK: scf.for %[[TASK:.*]] =
// CHECK: %[[J:.*]] = arith.remui %[[TASK]]
// CHECK: %[[I:.*]] = arith.divui %[[TASK]]
// CHECK-DAG: memref.view {{.*}} memref<320xi8> to memref<65xf32>
// CHECK: memref.load {{.*}}[%[[I]], %[[J]]]
// CHECK: return
tile.kernel @k(%x: memref<4x8xf32>, %y: memref<4x8xf32>) grid(%i, %j) {
  %b = tile.alloc : memref<65xf32, #tile.level<"l1">>
  %v = memref.load %x[%i, %j] : memref<4x8xf32>
  memref.store %v, %b[%i] : memref<65xf32, #tile.level<"l1">>
  memref.store %v, %y[%i, %j] : memref<4x8xf32>
  tile.return
}

// Arguments that a launch lets overlap are not marked.
// CHECK-LABEL: func.func @same
// CHECK-NOT: memref.distinct_objects
// CHECK: return
tile.kernel @same(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  tile.return
}

func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  tile.launch @k grid(%c4, %c8) ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  tile.launch @same ins(%y : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// Tasks inside of the outermost loops: each takes a step before the next one.
// CHECK-LABEL: func.func @inside
// CHECK: scf.for %[[K:.*]] = %c0{{.*}} to %c16
// CHECK-NEXT: scf.for %[[TASK:.*]] = %{{.*}} to %{{.*}} step
// CHECK: affine.apply #{{.*}}()[%[[TASK]]]
// CHECK-NEXT: memref.load %{{.*}}[%[[K]],
// CHECK: return
tile.kernel @inside(%x: memref<16x8xf32>, %y: memref<8xf32>) grid(%i) attributes {tile.tasks_inside} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %at = affine.apply affine_map<()[s0] -> (s0 * 2)>()[%i]
  scf.for %k = %c0 to %c16 step %c1 {
    %v = memref.load %x[%k, %at] : memref<16x8xf32>
    %w = memref.load %y[%at] : memref<8xf32>
    %s = arith.addf %v, %w : f32
    memref.store %s, %y[%at] : memref<8xf32>
  }
  tile.return
}

// What depends on the task between two loops, beyond arithmetic, keeps the usual order.
// CHECK-LABEL: func.func @usual
// CHECK: scf.for %[[TASK:.*]] =
// CHECK: memref.load %{{.*}}[%[[TASK]]]
// CHECK: scf.for
tile.kernel @usual(%x: memref<16x8xf32>, %y: memref<8xf32>) grid(%i) attributes {tile.tasks_inside} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %v = memref.load %y[%i] : memref<8xf32>
  scf.for %k = %c0 to %c16 step %c1 {
    memref.store %v, %x[%k, %i] : memref<16x8xf32>
  }
  tile.return
}
