// RUN: tile-opt %s -tile-math-to-intrinsics | FileCheck-22 %s
// RUN: tile-opt %s -tile-math-to-intrinsics="fast=true" | FileCheck-22 %s --check-prefix=FAST

gpu.module @kernels {
  // CHECK-LABEL: @k
  // CHECK: arith.extf %{{.*}} : f16 to f32
  // CHECK: llvm.call_intrinsic "llvm.floor.f32"
  // CHECK: arith.truncf
  // CHECK: arith.minimumf
  // CHECK: llvm.call_intrinsic "llvm.exp2.f32"
  // CHECK: llvm.call_intrinsic "llvm.fma.f32"
  // CHECK: math.tanh
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
  // CHECK: llvm.call_intrinsic "llvm.fma.f32"
  // CHECK: arith.select
  // CHECK: math.log %
  // CHECK: llvm.call_intrinsic "llvm.maxnum.f32"
  // FAST-NOT: arith.minimumf
  // FAST: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // FAST: tanh.approx.f32
  // FAST-NEXT: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
  // FAST-NEXT: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
  // FAST: arith.mulf
  gpu.func @k(%h: f16, %x: f32, %p: !llvm.ptr<1>) {
    %f = math.floor %h : f16
    llvm.store %f, %p : f16, !llvm.ptr<1>
    %e = math.exp %x : f32
    %t = math.tanh %e : f32
    %r = math.rsqrt %t : f32
    %l = math.log %r : f32
    %m = arith.maxnumf %l, %x : f32
    llvm.store %m, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}
