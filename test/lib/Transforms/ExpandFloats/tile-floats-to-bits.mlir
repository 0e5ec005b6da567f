// RUN: tile-opt %s --tile-floats-to-bits | FileCheck %s
// RUN: tile-opt %s --tile-floats-to-bits=f16 | FileCheck %s --check-prefix=HALF

// CHECK-LABEL: llvm.func @moves(%arg0: !llvm.ptr, %arg1: i16) -> vector<4xi16>
// HALF-LABEL: llvm.func @moves
llvm.func @moves(%x: !llvm.ptr, %y: bf16) -> vector<4xbf16> {
  // CHECK: %[[V:.*]] = llvm.load %arg0 : !llvm.ptr -> vector<4xi16>
  %v = llvm.load %x : !llvm.ptr -> vector<4xbf16>
  %i = llvm.mlir.constant(1 : i32) : i32
  // CHECK: llvm.insertelement %arg1, %[[V]]{{.*}} : vector<4xi16>
  %w = llvm.insertelement %y, %v[%i : i32] : vector<4xbf16>
  llvm.store %y, %x : bf16, !llvm.ptr
  llvm.return %w : vector<4xbf16>
}

// Constants keep their bits: 1.5 is 0x3FC0, -0 is 0x8000.
// CHECK-LABEL: @constants
// CHECK-DAG: llvm.mlir.constant(16320 : i16) : i16
// CHECK-DAG: llvm.mlir.constant(dense<[16320, -32768]> : vector<2xi16>) : vector<2xi16>
llvm.func @constants(%p: !llvm.ptr) {
  %a = llvm.mlir.constant(1.5 : bf16) : bf16
  %b = llvm.mlir.constant(dense<[1.5, -0.0]> : vector<2xbf16>) : vector<2xbf16>
  llvm.store %a, %p : bf16, !llvm.ptr
  llvm.store %b, %p : vector<2xbf16>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: @half(%arg0: f16)
// HALF-LABEL: @half(%arg0: i16)
llvm.func @half(%x: f16) -> f16 {
  llvm.return %x : f16
}
