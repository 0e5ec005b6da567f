// RUN: tile-opt %s --convert-tile-kernel-to-func --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s --check-prefix=FUNC
// RUN: tile-opt %s --convert-tile-kernel-to-func --convert-tile-launch-to-runtime --split-input-file \
// RUN:   --verify-diagnostics | FileCheck-22 %s --check-prefix=HOST

// A program is a function that runs the steps of a range of units.
// FUNC-LABEL: func.func @two(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64, %arg3: !llvm.ptr)
// FUNC-SAME: tile.program_events = 1 : i64, tile.program_units = 2 : i64, tile.scratch_bytes = 0 : i64
// FUNC: arith.cmpi sge, %[[UNIT:.*]], %arg1
// FUNC: arith.cmpi slt, %[[UNIT]], %arg2
// FUNC: scf.if
// FUNC: call @step({{.*}}, %arg3)
// FUNC: call @twrt_signal
// FUNC: call @twrt_wait
// FUNC: call @step

// HOST-LABEL: func.func @tw_main
// HOST: %[[COUNTERS:.*]] = llvm.alloca {{.*}}alignment = 64
// HOST: call @twrt_program({{.*}}, %[[COUNTERS]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64) -> ()
tile.kernel @step(%x: memref<8xf32>) grid(%i) {
  tile.return
}
tile.program @two(%x: memref<8xf32>) units 2 {
  tile.place @step tasks [0, 4] of [8] on 0 (%x : memref<8xf32>)
  tile.signal 0 on 0
  tile.wait 0 count 1 on 1
  tile.place @step tasks [4, 8] of [8] on 1 (%x : memref<8xf32>)
}
func.func @main(%x: memref<8xf32> {tile.name = "x"}) {
  tile.launch @two outs(%x : memref<8xf32>)
  return
}

// -----

// No unit waits forever, but one thread that runs both in the order of the text would.
tile.program @late(%x: memref<8xf32>) units 2 {
  // expected-error @below {{stands before signals that it waits for}}
  tile.wait 0 count 1 on 1
  tile.signal 0 on 0
}
