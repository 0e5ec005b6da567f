// RUN: tile-opt %s --tile-inline-launches | FileCheck-22 %s

// Launches of one task in a row: the block that runs the first runs all of them, and only its threads meet in between.

!row = memref<8xf32, #gpu.address_space<global>>

gpu.module @kernels {
  // All blocks meet behind tasks of several ones, and before those, but not between the three launches of one task.
  // CHECK-LABEL: gpu.func @row(
  // CHECK: func.call @next_tasks
  // CHECK: llvm.inline_asm
  // CHECK: func.call @next_tasks
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.barrier
  // CHECK-NOT: llvm.inline_asm
  // CHECK: func.call @next_tasks
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.barrier
  // CHECK-NOT: llvm.inline_asm
  // CHECK: func.call @next_tasks
  // CHECK: llvm.inline_asm
  // CHECK: func.call @next_tasks
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  gpu.func @row(%x: !row, %y: !row, %z: !row, %n: index) kernel attributes {tile.threads = 64 : i64} {
    %c1 = arith.constant 1 : index
    tile.launch @next grid(%n) ins(%x : !row) outs(%y : !row)
    tile.launch @next grid(%c1) ins(%y : !row) outs(%z : !row)
    tile.launch @next grid(%c1) ins(%z : !row) outs(%x : !row)
    tile.launch @next grid(%c1) ins(%x : !row) outs(%y : !row)
    tile.launch @next grid(%n) ins(%y : !row) outs(%z : !row)
    gpu.return
  }

  // Two rows beside each other are two blocks': the second begins one block behind the first, and stays there. What
  // needs both waits for all blocks.
  // CHECK-LABEL: gpu.func @beside(
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: func.call @next_tasks({{.*}}, %[[BLOCK]], %{{.*}}, %{{.*}})
  // CHECK: arith.addi %[[BLOCK]],
  // CHECK-NEXT: %[[SECOND:.*]] = arith.remui
  // CHECK: func.call @next_tasks({{.*}}, %[[SECOND]], %{{.*}}, %{{.*}})
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.barrier
  // CHECK: func.call @next_tasks({{.*}}, %[[BLOCK]], %{{.*}}, %{{.*}})
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.barrier
  // CHECK: arith.addi %[[BLOCK]],
  // CHECK-NEXT: %[[STAYS:.*]] = arith.remui
  // CHECK: func.call @next_tasks({{.*}}, %[[STAYS]], %{{.*}}, %{{.*}})
  // CHECK: llvm.inline_asm
  // CHECK: func.call @next_tasks({{.*}}, %[[BLOCK]], %{{.*}}, %{{.*}})
  // CHECK: gpu.return
  gpu.func @beside(%a: !row, %b: !row, %c: !row, %d: !row, %e: !row, %f: !row)
      kernel attributes {tile.threads = 64 : i64} {
    tile.launch @next ins(%a : !row) outs(%b : !row)
    tile.launch @next ins(%c : !row) outs(%d : !row)
    tile.launch @next ins(%b : !row) outs(%e : !row)
    tile.launch @next ins(%d : !row) outs(%f : !row)
    tile.launch @next ins(%e : !row) outs(%f : !row)
    gpu.return
  }

  gpu.func @next(%x: !row, %y: !row, %task: index) attributes {tile.code, tile.threads = 64 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"}]} {
    %v = memref.load %x[%task] : !row
    memref.store %v, %y[%task] : !row
    gpu.return
  }
}
