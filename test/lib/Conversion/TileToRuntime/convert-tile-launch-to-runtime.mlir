// RUN: tile-opt %s -convert-tile-kernel-to-func -convert-tile-launch-to-runtime -split-input-file -verify-diagnostics \
// RUN:   | FileCheck-22 %s

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

func.func @main(%x: memref<4xf32, strided<[2]>>) {
  // expected-error @-1 {{but the run-time passes contiguous buffers}}
  return
}

// -----

func.func @main(%x: memref<4x4xf32>, %y: memref<4xf32>) {
  %s = memref.subview %x[0, 0] [4, 1] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[4]>>
  // expected-error @below {{is left in @main, where only launches and loops move data}}
  memref.copy %s, %y : memref<4xf32, strided<[4]>> to memref<4xf32>
  return
}

// -----

// An assertion, memory of the call, and a result that is handed over.
// CHECK: llvm.mlir.global internal constant @tw_message_0("too short\00")
// CHECK-LABEL: func.func @tw_main(%arg0: !llvm.ptr)
// CHECK: %[[SIZE:.*]] = llvm.load
// CHECK: scf.if
// CHECK: func.call @twrt_fail
// CHECK: %[[BYTES:.*]] = call @twrt_size(%{{.*}}, %{{.*}}) : (i64, i64) -> i64
// CHECK: call @twrt_alloc(%[[BYTES]]) : (i64) -> !llvm.ptr
// CHECK: call @twrt_free
// CHECK: call @twrt_give
func.func @main(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %ok = arith.cmpi sge, %n, %c2 : index
  cf.assert %ok, "too short"
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return %x : memref<?xf32>
}

// -----

// An assertion that tells what it compares.
// CHECK: llvm.mlir.global internal constant @tw_message_0("no such index\00")
// CHECK-LABEL: func.func @tw_main(%arg0: !llvm.ptr)
// CHECK: %[[I:.*]] = memref.load
// CHECK: arith.cmpi slt, %[[I]], %{{.*}} : i64
// CHECK: %[[WHAT:.*]] = llvm.mlir.addressof @tw_message_0
// CHECK: func.call @twrt_fail_at(%[[WHAT]], %[[I]]) : (!llvm.ptr, i64) -> ()
func.func @main(%x: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : i64
  %i = memref.load %x[%c0] : memref<2xi64>
  %ok = arith.cmpi slt, %i, %c8 : i64
  cf.assert %ok, "no such index" {tile.tell}
  return
}

// -----

// The words of an output that continues an input say where it is and how much room there is, then how large it became.
// CHECK-LABEL: func.func @tw_main(%arg0: !llvm.ptr)
// CHECK-SAME: tile.appends = array<i64: 0, 0, 0>
// CHECK-SAME: tile.inputs = ["past"]
// CHECK-SAME: tile.outputs = ["present"]
// CHECK-NOT: twrt_give
// CHECK: memref.store
// CHECK: return
func.func @main(%past: memref<?xf32> {tile.name = "past"},
    %room: memref<?xf32> {tile.appends = array<i64: 0, 0, 0>, tile.name = "present", tile.result = 0 : i64},
    %sizes: memref<1xi64> {tile.sizes_of = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %past, %c0 : memref<?xf32>
  memref.store %one, %room[%n] : memref<?xf32>
  %all = arith.addi %n, %c1 : index
  %told = arith.index_cast %all : index to i64
  memref.store %told, %sizes[%c0] : memref<1xi64>
  return
}
