//===- TileTaskOps.td - tasks of a grid that wait ----------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_TASK_OPS
#define TILEWRIGHT_TILE_TASK_OPS

include "dialects/Tile/TileKernelOps.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SemaphoresType
    : ConfinedType<MemRefRankOf<[I32], [1]>, [HasStaticShapePred],
                   "a 1-D memref of i32 of known size">;

def Tile_SemaphoresOp : Tile_Op<"semaphores"> {
  let summary = "counts that all tasks of a kernel share";
  let description = [{
    Memory of the kernel, zero before its first launch. Every launch leaves it
    zero again: as much is taken as is posted.

    - `semaphores_c1`: it stands in a `tile.kernel`, outside of loops and
      branches.

    Example: see `tile.semaphore_take`.
  }];
  let results = (outs Res<Tile_SemaphoresType, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

class Tile_SemaphoreStep<string mnemonic>
    : Tile_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def Tile_SemaphorePostOp : Tile_SemaphoreStep<"semaphore_post"> {
  let summary = "lets a later task of the grid go on";
  let description = [{
    Adds one to a semaphore, after all that the task did before. Who takes it
    sees what the task wrote.

    - `semaphore_post_c1`: it stands in a `tile.kernel`.

    Example: see `tile.semaphore_take`.
  }];
  let arguments = (ins Tile_SemaphoresType:$semaphores, Index:$index);
  let assemblyFormat = [{
    $semaphores `[` $index `]` attr-dict `:` qualified(type($semaphores))
  }];
}

def Tile_SemaphoreTakeOp : Tile_SemaphoreStep<"semaphore_take"> {
  let summary = "waits for earlier tasks of the grid";
  let description = [{
    Holds the task until a semaphore is at least `count`, and takes that off it.
    What those who posted had written is visible from here on. One task of a
    launch takes from a semaphore.

    A task waits for tasks with smaller numbers only (the first coordinate
    varies slowest), so a grid that runs its tasks one by one, in order, never
    hangs. Nor does a machine on which each of the blocks that run at the same
    time takes its tasks in that order: the first task that is not done waits
    for none. The interpreter runs tasks in order, and refuses one that
    would wait there.

    - `semaphore_take_c1`: it stands in a `tile.kernel`.
    - `semaphore_take_c2`: `count` is positive.

    Example: each task adds to what the one before has left.

    ```mlir
    tile.kernel @sums(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %done = tile.semaphores : memref<8xi32>
      %own = tile.load %x[%i, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
      %others = arith.cmpi ugt, %i, %c0 : index
      %sum = scf.if %others -> (!tile.tile<1x64xf32>) {
        %before = arith.subi %i, %c1 : index
        tile.semaphore_take %done[%before] count 1 : memref<8xi32>
        %sums = tile.load %y[%before, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
        %both = arith.addf %sums, %own : !tile.tile<1x64xf32>
        scf.yield %both : !tile.tile<1x64xf32>
      } else {
        scf.yield %own : !tile.tile<1x64xf32>
      }
      tile.store %sum, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<8x64xf32>
      %c7 = arith.constant 7 : index
      %more = arith.cmpi ult, %i, %c7 : index
      scf.if %more {
        tile.semaphore_post %done[%i] : memref<8xi32>
      }
      tile.return
    }
    ```
  }];
  let arguments = (ins Tile_SemaphoresType:$semaphores, Index:$index,
                       I64Attr:$count);
  let assemblyFormat = [{
    $semaphores `[` $index `]` `count` $count attr-dict `:`
    qualified(type($semaphores))
  }];
}

#endif // TILEWRIGHT_TILE_TASK_OPS
