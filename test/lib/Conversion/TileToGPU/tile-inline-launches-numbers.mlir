// RUN: tile-opt %s --tile-inline-launches --split-input-file --verify-diagnostics | FileCheck-22 %s

!num = memref<i32, #gpu.address_space<global>>
!row = memref<8xf32, #gpu.address_space<global>>

// Numbers that teams read and write, which no launch of theirs touches for others.
gpu.module @kernels {
  // What a team's loop has stored, a launch of all blocks reads.
  // CHECK-LABEL: gpu.func @stored(
  // CHECK: %[[C1:.*]] = llvm.getelementptr %{{.*}}[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK: scf.for
  // CHECK: memref.store
  // CHECK-NEXT: }
  // CHECK-NEXT: llvm.inline_asm {{.*}} %[[C1]],
  // CHECK: func.call @use_tasks
  // CHECK: llvm.inline_asm {{.*}} %[[C1]],
  // CHECK-NOT: %[[C1]],
  // CHECK: llvm.inline_asm
  // CHECK: func.call @use_tasks
  gpu.func @stored(%x: !row, %y: !row, %num: !num, %n: index) kernel
      attributes {tile.threads = 64 : i64, tile.blocks = 6 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %t = %c0 to %n step %c1 {
      %i = arith.index_cast %t : index to i32
      memref.store %i, %num[] : !num
      tile.launch @use grid(%n) ins(%num : !num) outs(%x : !row)
    } {tile.team = array<i64: 0, 2>}
    tile.launch @use grid(%n) ins(%num : !num) outs(%y : !row)
    gpu.return
  }
  // What all blocks read, a team stores.
  // CHECK-LABEL: gpu.func @read(
  // CHECK: %[[C1:.*]] = llvm.getelementptr %{{.*}}[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK: memref.load
  // CHECK-NOT: %[[C1]],
  // CHECK: llvm.inline_asm
  // CHECK: scf.for
  // CHECK: memref.store
  gpu.func @read(%x: !row, %num: !num, %n: index) kernel
      attributes {tile.threads = 64 : i64, tile.blocks = 6 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = memref.load %num[] : !num
    scf.for %t = %c0 to %n step %c1 {
      memref.store %m, %num[] : !num
      tile.launch @use grid(%n) ins(%num : !num) outs(%x : !row)
    } {tile.team = array<i64: 0, 2>}
    gpu.return
  }
  // What a team's launch has written, a loop of another one reads.
  // CHECK-LABEL: gpu.func @go(
  // CHECK: func.call @use_tasks
  // CHECK: llvm.inline_asm
  // CHECK: scf.while
  // CHECK: memref.load
  gpu.func @go(%x: !row, %y: !row, %num: !num, %k: !num, %n: index) kernel
      attributes {tile.threads = 64 : i64, tile.blocks = 6 : i64} {
    %c0 = arith.constant 0 : i32
    tile.launch @use grid(%n) outs(%num, %y : !num, !row) {tile.team = array<i64: 0, 2>}
    scf.while : () -> () {
      %m = memref.load %num[] : !num
      %more = arith.cmpi ne, %m, %c0 : i32
      scf.condition(%more)
    } do {
      tile.launch @use grid(%n) ins(%k : !num) outs(%x : !row)
      scf.yield
    } attributes {tile.team = array<i64: 2, 4>}
    gpu.return
  }
  gpu.func @use(%num: !num, %y: !row, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    gpu.return
  }
}

// -----

!num = memref<i32, #gpu.address_space<global>>

gpu.module @kernels {
  gpu.func @step(%num: !num, %task: index) attributes {tile.code, tile.threads = 32 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "task"}]} {
    gpu.return
  }
  gpu.func @k(%a: !num, %b: !num, %n: index) kernel attributes {tile.threads = 32 : i64, tile.blocks = 4 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{has `tile.team` that gives others what follows from numbers that it alone reads}}
    %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (!num, !num) {
      %m = memref.load %x[] : !num
      %e = arith.index_cast %m : i32 to index
      tile.launch @step grid(%e) outs(%y : !num)
      scf.yield %y, %x : !num, !num
    } {tile.team = array<i64: 0, 2>}
    tile.launch @step grid(%n) outs(%r#0 : !num)
    gpu.return
  }
}
