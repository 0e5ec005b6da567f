// RUN: tile-opt %s --tile-gpu-math-to-amdgcn -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK-LABEL: gpu.func @functions(
// CHECK-SAME: %[[X:.*]]: f32, %[[H:.*]]: f16, %[[D:.*]]: f64
// CHECK: llvm.call_intrinsic "llvm.exp.f32"(%[[X]])
// CHECK: llvm.call_intrinsic "llvm.log2.f16"(%[[H]])
// CHECK: llvm.call_intrinsic "llvm.sqrt.f64"(%[[D]])
// CHECK: llvm.call_intrinsic "llvm.fma.f32"(%{{.*}}, %[[X]], %[[X]])
// CHECK: %[[ROOT:.*]] = llvm.call_intrinsic "llvm.sqrt.f32"
// CHECK: arith.divf %{{.*}}, %[[ROOT]] : f32
// CHECK-NOT: math.
gpu.module @m {
  gpu.func @functions(%x: f32, %h: f16, %d: f64, %out: memref<f32>, %half: memref<f16>, %double: memref<f64>) kernel {
    %0 = math.exp %x : f32
    %1 = math.log2 %h : f16
    %2 = math.sqrt %d : f64
    %3 = math.fma %0, %x, %x : f32
    %4 = math.rsqrt %3 : f32
    memref.store %4, %out[] : memref<f32>
    memref.store %1, %half[] : memref<f16>
    memref.store %2, %double[] : memref<f64>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @none(%x: f32) kernel {
    // expected-error @below {{of 'f32' has no expansion in the AMDGPU back end}}
    %0 = math.tanh %x : f32
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @wide(%x: f64) kernel {
    // expected-error @below {{of 'f64' has no expansion in the AMDGPU back end}}
    %0 = math.exp %x : f64
    gpu.return
  }
}
