// RUN: tile-opt %s -convert-tile-kernel-to-func | FileCheck-22 %s

// CHECK-LABEL: func.func @k(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64, %arg3: !llvm.ptr {llvm.noalias})
// CHECK-SAME: attributes {tile.kernel, tile.scratch_bytes = 320 : i64}
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
