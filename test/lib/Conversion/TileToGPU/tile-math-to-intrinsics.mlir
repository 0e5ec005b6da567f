// RUN: tile-opt %s -tile-math-to-intrinsics | FileCheck-22 %s
// RUN: tile-opt %s -tile-math-to-intrinsics="fast=true" | FileCheck-22 %s --check-prefix=FAST

gpu.module @kernels {
  // CHECK-LABEL: @k
  // CHECK: arith.extf %{{.*}} : f16 to f32
  // CHECK: llvm.call_intrinsic "llvm.floor.f32"
  // CHECK: arith.truncf
  // CHECK: arith.minimumf
  // CHECK: llvm.call_intrinsic "llvm.exp2.f32"
  // CHECK: math.tanh
  // FAST-NOT: arith.minimumf
  // FAST: llvm.call_intrinsic "llvm.exp2.f32"
  // FAST: tanh.approx.f32
  gpu.func @k(%h: f16, %x: f32, %p: !llvm.ptr<1>) {
    %f = math.floor %h : f16
    llvm.store %f, %p : f16, !llvm.ptr<1>
    %e = math.exp %x : f32
    %t = math.tanh %e : f32
    llvm.store %t, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}
