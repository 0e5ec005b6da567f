// RUN: tile-opt %s --tile-pass-offsets | FileCheck-22 %s

!buffer = !llvm.struct<(ptr<1>, ptr<1>, i64)>

gpu.module @kernels {
  // The first buffer is a part of the arena in one call; the other one never is, and is passed as it was.
  // CHECK: llvm.func internal @task(%[[P:.*]]: !llvm.ptr<1>, %[[Q:.*]]: !llvm.ptr<1>, %[[N:.*]]: i64, %[[O:.*]]: i64)
  // CHECK: %[[SUM:.*]] = llvm.getelementptr %[[P]][%[[O]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  // CHECK: llvm.load %[[SUM]]
  // CHECK: llvm.getelementptr %[[Q]][%[[N]]]
  llvm.func internal @task(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i64) {
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %to = llvm.getelementptr %q[%n] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %v, %to : f32, !llvm.ptr<1>
    llvm.return
  }

  // Through descriptors, offset by offset.
  // CHECK-LABEL: llvm.func @kernel(
  // CHECK-SAME: %[[ARENA:[a-z0-9]+]]: !llvm.ptr<1>, %[[OUT:[a-z0-9]+]]: !llvm.ptr<1>, %[[M:[a-z0-9]+]]: i64
  // CHECK: %[[SIX:.*]] = llvm.mlir.constant(6144 : i64) : i64
  // CHECK: llvm.call @task(%[[ARENA]], %[[OUT]], %[[M]], %[[SIX]])
  // CHECK: %[[NONE:.*]] = llvm.mlir.constant(0 : i64) : i64
  // CHECK: llvm.call @task(%{{.*}}, %[[OUT]], %[[M]], %[[NONE]])
  llvm.func @kernel(%arena: !llvm.ptr<1>, %out: !llvm.ptr<1>, %n: i64) {
    %c4096 = llvm.mlir.constant(4096 : index) : i64
    %c2048 = llvm.mlir.constant(2048 : index) : i64
    %0 = llvm.mlir.poison : !buffer
    %1 = llvm.insertvalue %arena, %0[0] : !buffer
    %p = llvm.getelementptr %arena[%c4096] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %2 = llvm.insertvalue %p, %1[1] : !buffer
    %3 = llvm.insertvalue %n, %2[2] : !buffer
    %4 = llvm.extractvalue %3[1] : !buffer
    %q = llvm.getelementptr %4[%c2048] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.call @task(%q, %out, %n) : (!llvm.ptr<1>, !llvm.ptr<1>, i64) -> ()
    // An offset that a run tells is the caller's.
    %r = llvm.getelementptr %arena[%n] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.call @task(%r, %out, %n) : (!llvm.ptr<1>, !llvm.ptr<1>, i64) -> ()
    llvm.return
  }

  // A kernel is called by the host, as it is.
  // CHECK: llvm.func @entry(%{{[a-z0-9]+}}: !llvm.ptr<1>) {
  llvm.func @entry(%p: !llvm.ptr<1>) {
    llvm.return
  }
}
