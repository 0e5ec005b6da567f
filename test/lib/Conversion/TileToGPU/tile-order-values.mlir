// RUN: tile-opt %s -tile-order-values -split-input-file | FileCheck-22 %s

gpu.module @kernels {
  // Behind the product each value is finished and stored before the next one; what both need stands in front once.
  // CHECK-LABEL: @epilogue
  // CHECK: llvm.call_intrinsic
  // CHECK: llvm.extractvalue %{{.*}}[0]
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: llvm.extractvalue %{{.*}}[1]
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: llvm.store
  gpu.func @epilogue(%a: i32, %c: f32, %p: !llvm.ptr<1>, %q: !llvm.ptr<3>) {
    %before = arith.addf %c, %c : f32
    %r = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"(%a, %a, %a, %a, %a, %a, %c, %c, %c, %c)
      : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %0 = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
    %1 = llvm.extractvalue %r[1] : !llvm.struct<(f32, f32, f32, f32)>
    %x0 = arith.addf %0, %before : f32
    %x1 = arith.addf %1, %before : f32
    %y0 = math.exp %x0 : f32
    %y1 = math.exp %x1 : f32
    llvm.store %y0, %p : f32, !llvm.ptr<1>
    gpu.barrier
    llvm.store %y1, %q : f32, !llvm.ptr<3>
    gpu.return
  }

  // Without a product nothing moves: loads are in flight together, and what follows them too.
  // CHECK-LABEL: @rows
  // CHECK: arith.addf
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: llvm.store
  gpu.func @rows(%c: f32, %d: f32, %p: !llvm.ptr<1>, %q: !llvm.ptr<1>) {
    %0 = arith.addf %c, %c : f32
    %1 = arith.addf %d, %d : f32
    llvm.store %0, %p : f32, !llvm.ptr<1>
    llvm.store %1, %q : f32, !llvm.ptr<1>
    gpu.return
  }

  // What stands in front of a product stays: fences order it.
  // CHECK-LABEL: @operands
  // CHECK: arith.addi
  // CHECK-NEXT: nvvm.wgmma.fence.aligned
  // CHECK-NEXT: llvm.inline_asm
  gpu.func @operands(%a: i32, %s: f32, %p: !llvm.ptr<1>) {
    %b = arith.addi %a, %a : i32
    nvvm.wgmma.fence.aligned
    %t = llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0}, {$2};",
        "=f,0,r" %s, %b : (f32, i32) -> f32
    llvm.store %t, %p : f32, !llvm.ptr<1>
    gpu.return
  }

  // A branch needs what its region uses.
  // CHECK-LABEL: @branch
  // CHECK: scf.for
  // CHECK: }
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: scf.if
  // CHECK: arith.addf
  gpu.func @branch(%a: i32, %c: f32, %flag: i1, %p: !llvm.ptr<1>, %i: index) {
    %sum = scf.for %k = %i to %i step %i iter_args(%s = %c) -> f32 {
      %t = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %s : (f32) -> f32
      scf.yield %t : f32
    }
    %y = arith.addf %sum, %c : f32
    %x = arith.mulf %sum, %c : f32
    scf.if %flag {
      llvm.store %x, %p : f32, !llvm.ptr<1>
    }
    llvm.store %y, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}
