//===- Passes.td - tile kernels as GPU functions ---------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_PASSES
#define TILEWRIGHT_CONVERSION_TILETOGPU_PASSES

include "mlir/Pass/PassBase.td"

def KernelsToGPU : Pass<"tile-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into gpu.func: arguments, grid, shared memory";
  let description = [{
    A task is a thread block, of the size that the kernel's `tile.threads` (or
    `tile.warps`, of 32 threads each) says. The grid is one-dimensional: the
    block's number is the task's, the first coordinate slowest, or in bands of
    `tile.raster` values of the last but one coordinate. With `tile.persistent`
    (blocks per multiprocessor) a block runs several tasks: its own number, and
    from there on in steps of the number of blocks, in a loop marked
    `tile.tasks`. Tasks of a `cluster`, whole numbers of which the bounds must be,
    are blocks with numbers that follow each other, the last coordinate fastest;
    bands are of clusters then. With `tile.rounded`, a number for each coordinate,
    the host launches bounds that are rounded up to multiples of these: tasks
    behind the end, which touch nothing, fill clusters. Tiles stay as they are.

    What the host must know is written on the function: `tile.threads`,
    `tile.shared_bytes` (dynamic shared memory), `tile.cluster`,
    `tile.rounded`, and `tile.params`, a dictionary per parameter in order:
    `{kind = "pointer", arg, align}` is the address of the first element of
    memref argument `arg`, a multiple of `align` bytes; `{kind = "size", arg,
    dim}` and `{kind = "stride", arg, dim}` (64 bits) follow for sizes that the
    type leaves open and, where its layout is not row-major, strides;
    `{kind = "scalar", arg}`; and `{kind = "bound", dim}` (32 bits) for bounds of
    the grid after the first (of all, with `tile.persistent`) that neither
    `tile.grid` nor the launches tell.

    Buffers of `tile.alloc` are parts of one external array, so that the size is
    said at the launch. A kernel without tiles is a program of scalars: one
    thread runs it.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4x256xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%i, %c0] : memref<4x256xf32>, !tile.tile<256xf32>
      %d = arith.addf %t, %t : !tile.tile<256xf32>
      tile.store %d, %x[%i, %c0] : !tile.tile<256xf32>, memref<4x256xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    gpu.module @kernels {
      ...
      gpu.func @k(%p: memref<f32, #gpu.address_space<global>> {tile.align = 16 : i64}) kernel attributes
          {known_block_size = array<i32: 128, 1, 1>, tile.params = ... tile.shared_bytes = 0 :
          i64, tile.threads = 128 : i64} {
        %x = memref.reinterpret_cast %p to
        ...
        %b = gpu.block_id x
        ...
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"128",
           "threads of a block where the kernel does not say">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def AssignDistributedLayouts : Pass<"tile-assign-distributed-layouts", "::mlir::ModuleOp"> {
  let summary = "Decide which register of which thread holds each element";
  let description = [{
    Every tile gets a `#tile.distributed`. Elementwise ops, loops and branches tie
    tiles into classes of one layout; reductions, broadcasts, transpositions and
    reshapes derive layouts from each other. Classes are decided in this order:
    layouts that the kernel gives; results of products (fragments of the unit
    that `tile.unit` names, else `mma` where the element types have one, else
    `fma`: blocks per thread); what is loaded from shared memory for a product;
    then loads and stores of memory by size and loop depth, so that a warp moves
    whole lines in accesses of 16 bytes; then the rest, largest first.

    Where an op needs another layout than its class has, a `tile.convert` with
    equal element types stands. Operands of products on ordinary units are
    stored in shared memory, or stay there: `#tile.level<"shared">`.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<256xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 64 : i64} {
        %c0 = arith.constant 0 : index
        %t = tile.load %x[%c0] : memref<256xf32, #gpu.address_space<global>>, !tile.tile<256xf32>
        tile.store %t, %x[%c0] : !tile.tile<256xf32>, memref<256xf32, #gpu.address_space<global>>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %t = tile.load %x[%c0] : memref<256xf32, #gpu.address_space<global>>, !tile.tile<256xf32,
      #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128]]>>
    ```
  }];
  let options = [
    Option<"arch", "arch", "int64_t", /*default=*/"-1",
           "80, 90: compute capability; 0: no mma.sync; 942: AMD gfx942; -1: "
           "that of the module's device, or 80">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::tilewright::tile::TileDialect"
  ];
}

def PlanScratch : Pass<"tile-plan-scratch", "::mlir::ModuleOp"> {
  let summary = "Give exchanges between warps their place in shared memory";
  let description = [{
    Conversions of layouts that cross warps, reductions and scans over warps,
    and operands that a product reads in shared memory need scratch there. Each
    op gets `tile.scratch`, a byte offset; those that are not needed at the same
    time share bytes. `tile.shared_bytes` grows by what is needed at most.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%t: !tile.tile<128xf32,
          #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>>)
          attributes {tile.shared_bytes = 0 : i64} {
        %s = tile.reduce add %t dims [0] :
            !tile.tile<128xf32, #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp =
            [[32], [64]]>>
          -> !tile.tile<1xf32, #tile.distributed<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]]>>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %s = tile.reduce add %t dims [0] {tile.scratch = 0 : i64}
    ```
  }];
}

def PlaceBarriers : Pass<"tile-place-barriers", "::mlir::ModuleOp"> {
  let summary = "Let threads wait where one reads what another has written";
  let description = [{
    A kernel says in which order its task touches memory; its threads run by
    themselves. A `gpu.barrier` is put before an access to a buffer that
    another thread may have written since they last met, and before a write to
    one that another may have read. Accesses to the same elements by the same
    threads need none; elements are the same in another iteration of a loop where
    nothing that places them moves, and others where they move on by all they
    span. Tasks of one loop (`tile.tasks`) share no memory but that of the block.
    An op that exchanges values through scratch lets threads meet before it
    writes there, too, unless it gets `tile.scratch_free`: nobody can be using
    these bytes. Products wait for the tiles that were left in scratch for them.
    Different arguments are different memory, but for those
    that `tile.same_memory` and `tile.may_overlap` name: pairs of arguments for
    which a launch passes one buffer, or parts of one.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%s: memref<64xf32, #gpu.address_space<workgroup>>, %t: !tile.tile<64xf32>) attributes
          {tile.threads = 32 : i64} {
        %c0 = arith.constant 0 : index
        tile.store %t, %s[%c0] : !tile.tile<64xf32>, memref<64xf32, #gpu.address_space<workgroup>>
        %u = tile.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>, !tile.tile<64xf32>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    tile.store %t, %s[%c0] : !tile.tile<64xf32>, memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %u = tile.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>, !tile.tile<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def ConvertTileToGPU : Pass<"convert-tile-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn tiles into the registers of each thread";
  let description = [{
    A tile becomes a scalar per register of its `#tile.distributed`. Loads and stores
    move up to 16 bytes at once, with a condition at ragged edges; a reduction
    goes through registers, then shuffles, then shared memory, as far as its
    layout asks; a `tile.convert` between layouts is nothing, a choice of
    registers, shuffles, or a pass through swizzled shared memory; products
    become `mma.sync` of fragments (`mma.sp` with metadata), or loops of multiply-adds over operands in
    shared memory.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<128xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 32 : i64} {
        %c0 = arith.constant 0 : index
        %t = tile.load %x[%c0] : memref<128xf32, #gpu.address_space<global>>, !tile.tile<128xf32,
          #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>>
        %d = arith.addf %t, %t : !tile.tile<128xf32,
            #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    ...
    %d0 = arith.addf %t0, %t0 : f32
    ```
  }];
  let options = [
    Option<"arch", "arch", "int64_t", /*default=*/"-1",
           "80, 90: compute capability; 0: no mma.sync; 942: AMD gfx942; -1: "
           "that of the module's device, or 80">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def OrderValues : Pass<"tile-order-values", "::mlir::ModuleOp"> {
  let summary = "Finish each value of an epilogue before the next one is begun";
  let description = [{
    Functions of a product's sums (bias, activation, conversion) come op by op
    from tiles: each step of them for all registers before the next step. Then
    everything that two steps of a value share is live for all values at once,
    and registers spill. Behind the products of a block, what only computes is
    moved to its first use in memory, with all that it needs in front of it, so
    that few values are in flight. What touches memory, and barriers, keep their
    order. Blocks without products keep theirs: their loads are in flight
    together.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%a: f32, %b: f32, %p: !llvm.ptr<1>, %q: !llvm.ptr<1>) {
        %s:2 = scf.execute_region -> (f32, f32) {
          %t = llvm.inline_asm "wgmma.wait_group.sync.aligned 0;", "=f,0" %a : (f32) -> f32
          scf.yield %t, %b : f32, f32
        }
        %x0 = arith.mulf %s#0, %a : f32
        %x1 = arith.mulf %s#1, %a : f32
        %y0 = arith.addf %x0, %b : f32
        %y1 = arith.addf %x1, %b : f32
        llvm.store %y0, %p : f32, !llvm.ptr<1>
        llvm.store %y1, %q : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %x0 = arith.mulf %s#0, %a : f32
    %y0 = arith.addf %x0, %b : f32
    llvm.store %y0, %p : f32, !llvm.ptr<1>
    %x1 = arith.mulf %s#1, %a : f32
    %y1 = arith.addf %x1, %b : f32
    llvm.store %y1, %q : f32, !llvm.ptr<1>
    ```
  }];
}

def KeepLoops : Pass<"tile-keep-loops", "::mlir::ModuleOp"> {
  let summary = "Keep assemblers from unrolling loops of matrix products";
  let description = [{
    A step of such a loop has tens of products in a row already. ptxas unrolls
    it as often as its known number of steps allows, loads all fragments early,
    and runs out of registers (255 and spills for a product that needs 134).
    Loops with products by `mma.sync` are marked, which becomes PTX's
    `.pragma "nounroll"`.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%a: f32, %b: i32, %lower: index, %upper: index, %step: index, %p: !llvm.ptr<1>) {
        %sum = scf.for %i = %lower to %upper step %step iter_args(%s = %a) -> f32 {
          %r = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"(%b, %b, %b, %b, %b, %b, %s, %s, %s, %s)
            : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
          %t = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
          scf.yield %t : f32
        }
        llvm.store %sum, %p : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    scf.yield %t : f32
    } {loop_annotation = #loop_annotation}
    ```
  }];
}

def PassOffsets : Pass<"tile-pass-offsets", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Let functions add the offsets of buffers that they are called with";
  let description = [{
    Buffers of a kernel are parts of one memory, at constant offsets. A kernel
    that calls functions for hundreds of launches would hold as many pointers,
    since each of them is the same in all iterations: registers run out, and
    ptxas takes seconds to find out. Functions take a base and an offset
    instead, a number in the call, and add them once for a task.

    Before:
    ```mlir
    gpu.module @kernels {
      llvm.func internal @task(%p: !llvm.ptr<1>) {
        %v = llvm.mlir.constant(1.0 : f32) : f32
        llvm.store %v, %p : f32, !llvm.ptr<1>
        llvm.return
      }
      llvm.func @kernel(%arena: !llvm.ptr<1>) {
        %bytes = llvm.mlir.constant(4096 : index) : i64
        %p = llvm.getelementptr %arena[%bytes] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
        llvm.call @task(%p) : (!llvm.ptr<1>) -> ()
        llvm.return
      }
    }
    ```
    After:
    ```mlir
    llvm.func internal @task(%p: !llvm.ptr<1>, %o: i64) {
      %q = llvm.getelementptr %p[%o] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      ...
      llvm.store %v, %q : f32, !llvm.ptr<1>
    ...
    %n = llvm.mlir.constant(4096 : i64) : i64
    llvm.call @task(%arena, %n) : (!llvm.ptr<1>, i64) -> ()
    ```
  }];
}

def InlineLaunches : Pass<"tile-inline-launches", "::mlir::ModuleOp"> {
  let summary = "Put kernels into the kernels that launch them";
  let description = [{
    A kernel that launches others is one grid, whose blocks stay: all of them run
    what stands around the launches, and share the tasks of each launch, a block
    its number's and from there on in steps of the number of blocks. Behind a
    launch all blocks meet, so that the next one reads what this one wrote: one
    thread of each adds to a count in memory and waits until all have. They meet,
    too, between a read of a number and a launch that may write it, and behind a
    number that is written, by one thread. Launches of which none writes what
    another one touches run beside each other: blocks meet behind the last of
    them, and the first task is that of the block behind those that have one.
    What a kernel launches in one place is there then, in several ones a function
    that each of them calls for all tasks of the block; shared memory is as much as the one needs that needs
    most.

    What has `tile.team`, or stands in what has, only those blocks share: the first
    one, how many. They meet with a counter of their own behind what only they need;
    what others need, in this iteration of a loop or the next, all blocks meet behind.
    All go through the team's loops and branches. Numbers of memory only its blocks
    read; others take zeros, and leave its loops. A grid of fewer blocks than all
    teams have together has no teams.

    Where warps of a launched kernel have roles (`tile.roles`: some only move data),
    those of the whole kernel do: both kinds run what stands around the launches, the
    loops and branches, and take the registers of their role before it. What such
    kernels set up, mbarriers among it, is set up once, before; their rings go on
    from launch to launch. Other kernels are those of the warps that compute. Before
    the copies of a launch all threads of the block meet, and a proxy fence hands
    what was written, in this block or in one met since, to the asynchronous proxy.
    The descriptor of a buffer that a loop hands on is chosen by its address, of
    those of all buffers that it may be: parameters of the kernel (`tensor_map`, with
    the place in the argument).

    All must have the same `tile.threads`. `tile.waits` tells the host that the
    blocks wait for each other.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @step(%task: index, %p: !llvm.ptr<1>) attributes
          {tile.code, tile.threads = 32 : i64, tile.params = [{kind = "task"}, {kind = "scalar", arg = 0 : i64} ]} {
        %t = arith.index_cast %task : index to i32
        llvm.store %t, %p : i32, !llvm.ptr<1>
        gpu.return
      }
      gpu.func @loop(%p: !llvm.ptr<1>, %n: index) kernel attributes {tile.threads = 32 : i64} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        scf.for %i = %c0 to %n step %c1 {
          tile.launch @step grid(%n) ins(%p : !llvm.ptr<1>)
        }
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    memref.global "private" @loop_meetings
    ...
    gpu.func @loop
    ...
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    ...
    scf.for %i = %c0 to %n step %c1 {
      ...
      scf.for %task = %block to %n step %blocks {
        %t = arith.index_cast %task : index to i32
        llvm.store %t, %p : i32, !llvm.ptr<1>
      }
      gpu.barrier
      ...
      gpu.barrier
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def MathToIntrinsics : Pass<"tile-math-to-intrinsics", "::mlir::ModuleOp"> {
  let summary = "Turn math that a GPU has instructions for into intrinsics";
  let description = [{
    No library of device functions is linked. On scalars in kernels `floor`,
    `sqrt`, `fma` and the like become LLVM's intrinsics; `exp`, `exp2` and
    `rsqrt` of f32 use the special function unit to 2 units in the last place:
    `exp` with the rounding error of its argument added back, `rsqrt` with a step
    of Newton. 16-bit floats go through f32. With `fast`, these and `log`,
    `log2`, `log10`, `sin`, `cos`, `tanh` and `sqrt` are the unit's
    approximations as they are, and denormal results of `exp` are zero. What is left is for
    `tile-expand-math`; it leaves ops that this pass takes in turn.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: f32, %p: !llvm.ptr<1>) {
        %y = math.floor %x : f32
        llvm.store %y, %p : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %y = llvm.call_intrinsic "llvm.floor.f32"(%x) : (f32) -> f32
    ```
  }];
  let options = [
    Option<"fast", "fast", "bool", /*default=*/"false",
           "approximations of the special function unit as they are; set "
           "where the module's options have accuracy fast">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_PASSES
