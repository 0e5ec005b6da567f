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

// An instruction that computes with bf16 takes it as such.
// CHECK-LABEL: llvm.func @computes
// CHECK-SAME: %[[A:.*]]: vector<4xf32>, %[[B:.*]]: vector<8xi16>)
// CHECK: %[[X:.*]] = llvm.bitcast %[[B]] : vector<8xi16> to vector<8xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.128"(%[[A]], %[[X]], %{{.*}})
llvm.func @computes(%a: vector<4xf32>, %b: vector<8xbf16>) -> vector<4xf32> {
  %r = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.128"(%a, %b, %b)
      : (vector<4xf32>, vector<8xbf16>, vector<8xbf16>) -> vector<4xf32>
  llvm.return %r : vector<4xf32>
}

// CHECK-LABEL: @half(%arg0: f16)
// HALF-LABEL: @half(%arg0: i16)
llvm.func @half(%x: f16) -> f16 {
  llvm.return %x : f16
}
