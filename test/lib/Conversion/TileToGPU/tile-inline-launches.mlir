// RUN: tile-opt %s --tile-inline-launches --split-input-file --verify-diagnostics | FileCheck-22 %s

!global = memref<64xf32, #gpu.address_space<global>>
!part = memref<32xf32, strided<[1], offset: ?>, #gpu.address_space<global>>
!half = memref<32xf32, strided<[1], offset: 32>, #gpu.address_space<global>>
!flag = memref<i1, #gpu.address_space<global>>

gpu.module @kernels {
  // Blocks take tasks in steps of their number. Behind a task that uses shared memory its threads meet; behind a launch
  // all blocks do, but not behind the last one. Shared memory is the largest.
  // CHECK: memref.global "private" @two_meetings : memref<1xi32, #gpu.address_space<global>> = dense<0>
  // CHECK-LABEL: gpu.func @two(
  // CHECK-SAME: %[[X:.*]]: memref<64xf32, #gpu.address_space<global>>, %[[N:.*]]: index)
  // CHECK-SAME: tile.shared_bytes = 64 : i64, tile.threads = 64 : i64, tile.waits
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK: %[[REST:.*]] = arith.subi %c-2147483647_i32, %{{.*}} : i32
  // CHECK: %[[ARRIVE:.*]] = arith.select %{{.*}}, %[[REST]], %c1_i32
  // CHECK: %[[TASKS:.*]] = arith.muli %[[N]], %{{.*}} : index
  // CHECK: scf.for %[[TASK:.*]] = %[[BLOCK]] to %[[TASKS]] step %[[BLOCKS]] {
  // CHECK-NEXT: %[[PART:.*]] = memref.cast
  // CHECK-NEXT: %[[BOUND:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK-NEXT: arith.sitofp %[[BOUND]]
  // CHECK: memref.store %{{.*}}, %[[PART]][%[[TASK]]]
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.barrier
  // CHECK: scf.if
  // CHECK-NEXT: atom.release.gpu.global.add.u32 R1, [$0], $1; LAB_WAIT: ld.acquire.gpu.global.u32 R2, [$0];
  // CHECK-SAME: ~{memory}
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.barrier
  // CHECK: scf.for %{{.*}} = %[[BLOCK]]
  // CHECK: memref.store
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.return
  gpu.func @two(%x: !global, %n: index) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %half = memref.subview %x[32] [32] [1] : !global to !half
    tile.launch @shared grid(%n, %c2) outs(%half : !half)
    tile.launch @plain outs(%x : !global)
    gpu.return
  }
  // CHECK-NOT: gpu.func @shared
  gpu.func @shared(%x: !part, %bound: i32, %task: index) attributes {tile.code, tile.shared_bytes = 64 : i64,
      tile.threads = 64 : i64, tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "bound", dim = 1 : i64},
      {kind = "task"}]} {
    %v = arith.sitofp %bound : i32 to f32
    memref.store %v, %x[%task] : !part
    gpu.return
  }
  gpu.func @plain(%x: !global, %task: index) attributes {tile.code, tile.shared_bytes = 0 : i64,
      tile.threads = 64 : i64, tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "task"}]} {
    %v = arith.constant 0.0 : f32
    memref.store %v, %x[%task] : !global
    gpu.return
  }
  // What a launch may write is read before it: blocks meet in between. What none writes is not waited for.
  // CHECK-LABEL: gpu.func @until(
  // CHECK: scf.while
  // CHECK: memref.load
  // CHECK: } do {
  // CHECK-NEXT: gpu.barrier
  // CHECK: gpu.barrier
  // CHECK: scf.for
  // CHECK-LABEL: gpu.func @once(
  // CHECK: memref.load
  // CHECK-NEXT: scf.if
  // CHECK-NOT: gpu.barrier
  // CHECK: scf.for
  gpu.func @until(%x: !global, %go: !flag) kernel attributes {tile.threads = 64 : i64} {
    scf.while : () -> () {
      %more = memref.load %go[] : !flag
      scf.condition(%more)
    } do {
      tile.launch @ends outs(%go : !flag)
      scf.yield
    }
    gpu.return
  }
  gpu.func @once(%x: !global, %go: !flag) kernel attributes {tile.threads = 64 : i64} {
    %more = memref.load %go[] : !flag
    scf.if %more {
      tile.launch @plain outs(%x : !global)
    }
    gpu.return
  }
  gpu.func @ends(%go: !flag, %task: index) attributes {tile.code, tile.shared_bytes = 0 : i64,
      tile.threads = 64 : i64, tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "task"}]} {
    %v = arith.constant false
    memref.store %v, %go[] : !flag
    gpu.return
  }
  // Threads of all blocks copy.
  // CHECK-LABEL: gpu.func @copies(
  // CHECK: %[[SIZE:.*]] = memref.dim
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
  // CHECK: %[[COLUMN:.*]] = arith.remui %[[I]], %c4
  // CHECK-NEXT: %[[LINE:.*]] = arith.divui %[[I]], %c4
  // CHECK-NEXT: %[[ROW:.*]] = arith.remui %[[LINE]], %[[SIZE]]
  // CHECK: %[[V:.*]] = memref.load %{{.*}}[%[[ROW]], %[[COLUMN]]]
  // CHECK-NEXT: memref.store %[[V]], %{{.*}}[%[[ROW]], %[[COLUMN]]]
  gpu.func @copies(%x: !global, %a: memref<?x4xf32, #gpu.address_space<global>>,
      %b: memref<?x4xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 64 : i64} {
    memref.copy %a, %b : memref<?x4xf32, #gpu.address_space<global>> to memref<?x4xf32, #gpu.address_space<global>>
    tile.launch @plain outs(%x : !global)
    gpu.return
  }
  // A number that all blocks have is written by one thread of the first one, before it arrives. Who read the place
  // before is done then.
  // CHECK-LABEL: gpu.func @numbers(
  // CHECK: memref.load
  // CHECK-NEXT: gpu.barrier
  // CHECK: gpu.barrier
  // CHECK-NEXT: gpu.barrier
  // CHECK: scf.if
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %block_id_x, %{{.*}} : index
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[] : memref<i1, #gpu.address_space<global>>
  // CHECK-NEXT: }
  // CHECK-NEXT: atom.release
  // CHECK: gpu.barrier
  // CHECK: scf.for
  gpu.func @numbers(%x: !global, %go: !flag) kernel attributes {tile.threads = 64 : i64} {
    %old = memref.load %go[] : !flag
    memref.store %old, %go[] : !flag
    tile.launch @plain outs(%x : !global)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @step(%task: index) attributes {tile.code, tile.threads = 32 : i64, tile.params = [{kind = "task"}]} {
    gpu.return
  }
  gpu.func @k() kernel attributes {tile.threads = 64 : i64} {
    // expected-error@+1 {{is of a kernel whose blocks have 32 threads, in one of 64: give both the same tile.threads}}
    tile.launch @step
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @step(%task: index) attributes {tile.code, tile.threads = 32 : i64, tile.params = [{kind = "task"}],
      tile.cluster = array<i64: 2, 1, 1>} {
    gpu.return
  }
  gpu.func @k() kernel attributes {tile.threads = 32 : i64} {
    // expected-error@+1 {{is of a kernel with clusters, which blocks that share its tasks are not}}
    tile.launch @step
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @pointers(
  // CHECK: llvm.store
  gpu.func @pointers(%p: !llvm.ptr<1>, %n: index) kernel attributes {tile.threads = 32 : i64} {
    tile.launch @write grid(%n) ins(%p : !llvm.ptr<1>)
    gpu.return
  }
  gpu.func @write(%p: !llvm.ptr<1>, %task: index) attributes {tile.code, tile.threads = 32 : i64,
      tile.params = [{kind = "scalar", arg = 0 : i64}, {kind = "task"}]} {
    %v = arith.index_cast %task : index to i64
    llvm.store %v, %p : i64, !llvm.ptr<1>
    gpu.return
  }
}

// -----

!pool = memref<64xi8, #gpu.address_space<global>>
!row = memref<8xf32, #gpu.address_space<global>>

// Layers of a recurrence: the second one reads the first one's last state, in the one of two buffers that no launch of
// this iteration writes. Blocks meet once. The third launch reads what the second one writes: they meet before it.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @layers(
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK: scf.for {{.*}} iter_args(
  // CHECK: func.call @next_tasks(%{{.*}}, %{{.*}}, %[[BLOCK]], %{{.*}}, %[[BLOCKS]])
  // CHECK-NOT: gpu.barrier
  // CHECK: %[[REST:.*]] = arith.remui %{{.*}}, %[[BLOCKS]]
  // CHECK: %[[AHEAD:.*]] = arith.subi %[[BLOCKS]], %[[REST]]
  // CHECK: %[[TURNED:.*]] = arith.addi %[[BLOCK]], %[[AHEAD]]
  // CHECK: %[[FIRST:.*]] = arith.remui %[[TURNED]], %[[BLOCKS]]
  // CHECK: func.call @next_tasks(%{{.*}}, %{{.*}}, %[[FIRST]], %{{.*}}, %[[BLOCKS]])
  // CHECK-NEXT: gpu.barrier
  // CHECK: scf.yield
  gpu.func @layers(%pool: !pool, %g: !row, %n: index) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %h0 = memref.view %pool[%c0][] : !pool to !row
    %h1 = memref.view %pool[%c32][] : !pool to !row
    %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%old = %h0, %new = %h1) -> (!row, !row) {
      tile.launch @next grid(%n) ins(%old : !row) outs(%g : !row)
      tile.launch @next grid(%n) ins(%old : !row) outs(%new : !row)
      scf.yield %new, %old : !row, !row
    }
    // CHECK: func.call @next_tasks(%{{.*}}, %{{.*}}, %[[BLOCK]], %{{.*}}, %[[BLOCKS]])
    // CHECK-NEXT: gpu.barrier
    // CHECK: func.call @next_tasks(%{{.*}}, %{{.*}}, %[[BLOCK]], %{{.*}}, %[[BLOCKS]])
    // CHECK-NEXT: gpu.return
    tile.launch @next grid(%n) ins(%r#1 : !row) outs(%r#0 : !row)
    tile.launch @next grid(%n) ins(%r#0 : !row) outs(%g : !row)
    gpu.return
  }
  // CHECK-LABEL: func.func private @next_tasks(
  // CHECK: scf.for %[[TASK:.*]] = %arg2 to %arg3 step %arg4
  // CHECK: memref.store %{{.*}}[%[[TASK]]]
  gpu.func @next(%x: !row, %y: !row, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    %v = memref.load %x[%task] : !row
    memref.store %v, %y[%task] : !row
    gpu.return
  }
}

// -----

!pool = memref<64xi8, #gpu.address_space<global>>
!row = memref<8xf32, #gpu.address_space<global>>
!flag = memref<i1, #gpu.address_space<global>>

// A loop hands round two views of one buffer: what the second launch reads may be what the first one writes.
// CHECK-LABEL: gpu.func @layers(
// CHECK: scf.while
// CHECK: func.call @next_tasks(
// CHECK: llvm.inline_asm
// CHECK: func.call @next_tasks(
// CHECK: llvm.inline_asm
// CHECK: scf.yield
gpu.module @kernels {
  gpu.func @layers(%pool: !pool, %g: !row, %n: index, %go: !flag) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %h0 = memref.view %pool[%c0][] : !pool to !row
    %h1 = memref.view %pool[%c32][] : !pool to !row
    %r:2 = scf.while (%old = %h0, %new = %h1) : (!row, !row) -> (!row, !row) {
      %more = memref.load %go[] : !flag
      scf.condition(%more) %old, %new : !row, !row
    } do {
    ^bb0(%a: !row, %b: !row):
      tile.launch @next grid(%n) ins(%g : !row) outs(%a : !row)
      tile.launch @next grid(%n) ins(%h0 : !row) outs(%b : !row)
      scf.yield %b, %a : !row, !row
    }
    gpu.return
  }
  gpu.func @next(%x: !row, %y: !row, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    %v = memref.load %x[%task] : !row
    memref.store %v, %y[%task] : !row
    gpu.return
  }
}

// -----

!part = memref<?x4xf32, strided<[?, 1], offset: ?>, #gpu.address_space<global>>

// What is launched in several places is a function, which is not inlined again: once in the code, however often, with
// the loop over the tasks of a block, between which its threads meet, since they share memory. Its buffers come as
// pointers and what their types leave open, so that pointers need no descriptors.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @often(
  // CHECK-SAME: tile.shared_bytes = 64 : i64
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK: %[[P:.*]], %[[O:.*]], %[[N:.*]]:2, %[[S:.*]]:2 = memref.extract_strided_metadata
  // CHECK: func.call @fill_tasks(%{{.*}}, %[[P]], %[[O]], %[[N]]#0, %[[S]]#0,
  // CHECK-SAME: %[[BLOCK]], %arg3, %[[BLOCKS]]) : (f32,
  // CHECK-SAME: memref<f32, #gpu.address_space<global>>, index, index, index, i32, index, index, index) -> ()
  // CHECK: func.call @fill_tasks(
  // CHECK: gpu.return
  gpu.func @often(%x: !part, %y: !part, %a: f32, %n: index) kernel attributes {tile.threads = 64 : i64} {
    tile.launch @fill grid(%n) ins(%a : f32) outs(%x : !part)
    tile.launch @fill grid(%n) ins(%a : f32) outs(%y : !part)
    gpu.return
  }
  // CHECK-LABEL: func.func private @fill_tasks(
  // CHECK-SAME: attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]}
  // CHECK: memref.reinterpret_cast %arg1 to offset: [%arg2], sizes: [%arg3, 4], strides: [%arg4, 1]
  // CHECK: scf.for %{{.*}} = %arg6 to %arg7 step %arg8
  // CHECK: gpu.thread_id x upper_bound 64
  // CHECK: memref.store %arg0
  // CHECK: gpu.barrier
  // CHECK: return
  gpu.func @fill(%a: f32, %x: !part, %bound: i32, %task: index) attributes {tile.code, tile.shared_bytes = 64 : i64,
      tile.threads = 64 : i64, tile.params = [{kind = "scalar", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
      {kind = "bound", dim = 0 : i64}, {kind = "task"}]} {
    %c0 = arith.constant 0 : index
    %thread = gpu.thread_id x
    memref.store %a, %x[%thread, %c0] : !part
    gpu.return
  }
}

// -----

!row = memref<8xf32, #gpu.address_space<global>>
!flag = memref<i1, #gpu.address_space<global>>

// Teams of blocks: a counter of each, 128 bytes apart. A grid of fewer blocks than all have together has none.
gpu.module @kernels {
  // CHECK: memref.global "private" @teams_meetings : memref<65xi32, #gpu.address_space<global>> = dense<0>
  // CHECK-LABEL: gpu.func @teams(
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK: %[[WHOLE:.*]] = arith.cmpi uge, %[[BLOCKS]], %c6{{.*}} : index
  // CHECK: %[[FIRST:.*]] = arith.select %[[WHOLE]], %c0{{.*}}, %c0{{.*}} : index
  // CHECK: %[[N1:.*]] = arith.select %[[WHOLE]], %c2{{.*}}, %[[BLOCKS]] : index
  // CHECK: %[[B1:.*]] = arith.subi %[[BLOCK]], %[[FIRST]] : index
  // CHECK: %[[IN1:.*]] = arith.cmpi ult, %[[B1]], %[[N1]] : index
  // CHECK: %[[IN2:.*]] = arith.cmpi ult, %[[B2:.*]], %[[N2:.*]] : index
  // CHECK: %[[C1:.*]] = llvm.getelementptr %{{.*}}[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK: %[[C2:.*]] = llvm.getelementptr %{{.*}}[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  //
  // A loop of the first team: only its blocks take tasks, and meet behind each iteration.
  // CHECK: scf.for
  // CHECK: scf.if %[[IN1]] {
  // CHECK: func.call @next_tasks({{.*}}, %[[B1]], %{{.*}}, %[[N1]])
  // CHECK: scf.if %[[IN1]] {
  // CHECK-NEXT: gpu.barrier
  // CHECK: llvm.inline_asm {{.*}} %[[C1]],
  // CHECK: }
  // What the second team does needs nothing of that: its blocks do not wait. A number that it reads others take for
  // zero, and they leave its loop at once.
  // CHECK: scf.while
  // CHECK: %[[MORE:.*]] = scf.if %[[IN2]] -> (i1) {
  // CHECK-NEXT: memref.load
  // CHECK: } else {
  // CHECK-NEXT: scf.yield %false
  // CHECK: %[[GO:.*]] = arith.andi %[[MORE]], %[[IN2]] : i1
  // CHECK: scf.condition(%[[GO]])
  // CHECK: scf.if %[[IN2]] {
  // CHECK-NEXT: gpu.barrier
  // CHECK: llvm.inline_asm {{.*}} %[[C2]],
  // CHECK: scf.for %{{.*}} = %[[B2]] to %{{.*}} step %[[N2]]
  // CHECK: llvm.inline_asm {{.*}} %[[C2]],
  // CHECK: scf.yield
  // What needs both waits for all blocks, whose counter is the first one.
  // CHECK-NOT: %[[C1]],
  // CHECK: llvm.inline_asm
  // CHECK: func.call @next_tasks({{.*}}, %[[BLOCK]], %{{.*}}, %[[BLOCKS]])
  gpu.func @teams(%x: !row, %y: !row, %go: !flag, %n: index) kernel
      attributes {tile.threads = 64 : i64, tile.blocks = 6 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %t = %c0 to %n step %c1 {
      tile.launch @next grid(%n) ins(%x : !row) outs(%x : !row)
    } {tile.team = array<i64: 0, 2>}
    scf.while : () -> () {
      %more = memref.load %go[] : !flag
      scf.condition(%more)
    } do {
      tile.launch @step grid(%n) outs(%y, %go : !row, !flag)
      scf.yield
    } attributes {tile.team = array<i64: 2, 4>}
    tile.launch @next grid(%n) ins(%x : !row) outs(%y : !row)
    gpu.return
  }
  // Launches of two teams in one loop: each team meets; where one reads, an iteration later, what another one writes,
  // all blocks do.
  // CHECK-LABEL: gpu.func @bodies(
  // CHECK: %[[C1:.*]] = llvm.getelementptr %{{.*}}[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK: %[[C2:.*]] = llvm.getelementptr %{{.*}}[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK: scf.for
  // CHECK: func.call @next_task
  // CHECK: llvm.inline_asm {{.*}} %[[C1]],
  // CHECK: func.call @next_task
  // CHECK: llvm.inline_asm {{.*}} %[[C2]],
  // CHECK: llvm.inline_asm
  // CHECK: scf.for {{.*}} iter_args
  // CHECK: func.call @next_task
  // CHECK-NOT: llvm.inline_asm
  // CHECK: func.call @next_task
  // CHECK-NOT: %[[C1]],
  // CHECK: llvm.inline_asm
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.return
  gpu.func @bodies(%x: !row, %y: !row, %n: index) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %t = %c0 to %n step %c1 {
      tile.launch @next grid(%n) ins(%x : !row) outs(%x : !row) {tile.team = array<i64: 0, 1>}
      tile.launch @next grid(%n) ins(%y : !row) outs(%y : !row) {tile.team = array<i64: 1, 1>}
    }
    scf.for %t = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (!row, !row) {
      tile.launch @next grid(%n) ins(%a : !row) outs(%a : !row) {tile.team = array<i64: 0, 1>}
      tile.launch @next grid(%n) ins(%b : !row) outs(%b : !row) {tile.team = array<i64: 1, 1>}
      scf.yield %b, %a : !row, !row
    }
    gpu.return
  }
  gpu.func @next(%x: !row, %y: !row, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    %v = memref.load %x[%task] : !row
    memref.store %v, %y[%task] : !row
    gpu.return
  }
  gpu.func @step(%y: !row, %go: !flag, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    %v = arith.constant false
    memref.store %v, %go[] : !flag
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @step(%task: index) attributes {tile.code, tile.threads = 32 : i64, tile.params = [{kind = "task"}]} {
    gpu.return
  }
  gpu.func @k() kernel attributes {tile.threads = 32 : i64, tile.blocks = 4 : i64} {
    // expected-error@+1 {{has `tile.team` that ends with block 5 of a kernel that `tile.blocks` gives 4 blocks}}
    tile.launch @step {tile.team = array<i64: 2, 4>}
    // expected-error@+1 {{has `tile.team` that has no block}}
    tile.launch @step {tile.team = array<i64: 2, 0>}
    // expected-error@+1 {{has `tile.team` that is not two numbers: the first block, how many blocks}}
    tile.launch @step {tile.team = array<i64: 2>}
    gpu.return
  }
}
