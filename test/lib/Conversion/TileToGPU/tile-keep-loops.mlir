// RUN: tile-opt %s -tile-keep-loops | FileCheck-22 %s

// CHECK-DAG: #[[$UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK-DAG: #[[$LOOP:.*]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>
gpu.module @kernels {
  // The loop around holds the products too.
  // CHECK-LABEL: @products
  // CHECK: } {loop_annotation = #[[$LOOP]]}
  // CHECK: } {loop_annotation = #[[$LOOP]]}
  gpu.func @products(%c: f32, %b: i32, %i: index, %p: !llvm.ptr<1>) {
    scf.for %j = %i to %i step %i {
      %sum = scf.for %k = %i to %i step %i iter_args(%s = %c) -> f32 {
        %r = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"(%b, %b, %b, %b, %b, %b, %s, %s, %s, %s)
          : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
        %t = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
        scf.yield %t : f32
      }
      llvm.store %sum, %p : f32, !llvm.ptr<1>
    }
    gpu.return
  }

  // Loops of rows may be unrolled: their loads are in flight together then.
  // CHECK-LABEL: @rows
  // CHECK-NOT: loop_annotation
  // CHECK: gpu.return
  gpu.func @rows(%c: f32, %i: index, %p: !llvm.ptr<1>) {
    scf.for %k = %i to %i step %i {
      llvm.store %c, %p : f32, !llvm.ptr<1>
    }
    gpu.return
  }
}
