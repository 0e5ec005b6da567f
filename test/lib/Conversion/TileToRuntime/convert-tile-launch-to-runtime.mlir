// RUN: tile-opt %s -convert-tile-kernel-to-func -convert-tile-launch-to-runtime -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK: func.func private @twrt_launch(!llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-LABEL: func.func @tw_main(%arg0: !llvm.ptr)
// CHECK-SAME: tile.arena_bytes = 128 : i64
// CHECK-SAME: tile.globals = ["w_1"]
// CHECK-SAME: tile.inputs = ["x"]
// CHECK-SAME: tile.outputs = ["y"]
// CHECK: %[[BYTES:.*]] = arith.constant 0 : i64
// CHECK: call @twrt_launch(%{{.*}}, %{{.*}}, %{{.*}}, %[[BYTES]])
// CHECK-NOT: @main
module attributes {tile.arena_bytes = 128 : i64} {
  tile.kernel @k(%x: memref<4x8xf32>, %y: memref<4x8xf32>) grid(%i) {
    tile.return
  }
  func.func @main(%w: memref<4x8xf32> {tile.global = "w_1"}, %x: memref<4x8xf32> {tile.name = "x"},
                  %arena: memref<128xi8> {tile.arena}, %y: memref<4x8xf32> {tile.name = "y", tile.result = 0 : i64}) {
    %c4 = arith.constant 4 : index
    tile.launch @k grid(%c4) ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
    return
  }
}

// -----

func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{is left in @main, where only launches move data}}
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}
