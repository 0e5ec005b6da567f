//===- Passes.td - movement in the background ----------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PIPELINING_PASSES
#define TILEWRIGHT_TRANSFORMS_PIPELINING_PASSES

include "mlir/Pass/PassBase.td"

def PipelineLoads : Pass<"tile-pipeline-loads", "::mlir::ModuleOp"> {
  let summary = "Load the tiles of loops ahead of time, through rings in shared memory";
  let description = [{
    The loads of an `scf.for` with `tile.stages = n` become copies in the
    background into a ring of `n` slots in shared memory: while step `s` computes
    from slot `s mod n`, the next `n - 1` steps' tiles are on their way. The loop
    then counts its steps from 0, and carries a token per step under way.

    A load goes through the ring where its address follows from the loop's
    variable alone, or from lists that the loop leaves as they are, and where
    rows are multiples of 16 bytes that start at such multiples (what copies in
    the background can move). The others stay, with a remark that says why;
    `tile.no_ring` on a load keeps it as it is. A slot keeps the order of memory.
    `tile.swizzle` on a load gives the span of the
    slot's swizzle in bytes; without it, it is the largest of 128, 64 and 32 that
    divides a row. Rows that are longer are cut into panels of this span.

    Positions that are not `valid` are filled with zeros by the copy.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<256x64xf16>, %y: memref<64x64xf16>) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf16>
      %sum = scf.for %r = %c0 to %c256 step %c64 iter_args(%a = %zero) -> (!tile.tile<64x64xf16>) {
        %t = tile.load %x[%r, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
        %n = arith.addf %a, %t : !tile.tile<64x64xf16>
        scf.yield %n : !tile.tile<64x64xf16>
      } {tile.stages = 2 : i64}
      tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
      tile.return
    }
    ```
    After:
    ```mlir
    %ring = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
        memref<2x64x64xf16, #tile.level<"shared">>
    ...
    %first = tile.async {
      tile.copy ...
    }
    ...
    %sum:2 = scf.for %s = %zero to %c4 step %c1 iter_args(%a = %start, %token = %first) ->
        (!tile.tile<64x64xf16>, !tile.token) {
      tile.await %token
      ...
      %more = arith.cmpi slt, %ahead, %c4 : index
      %next = scf.if %more -> (!tile.token) {
        ...
        %async = tile.async {
          ...
        }
        scf.yield %async : !tile.token
      } else {
        scf.yield %token : !tile.token
      }
      ...
      %t = tile.load %ring[%slot, ...
      %n = arith.addf %a, %t : !tile.tile<64x64xf16>
      scf.yield %n, %next : !tile.tile<64x64xf16>, !tile.token
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def ShareOperands : Pass<"tile-share-operands", "::mlir::ModuleOp"> {
  let summary = "Operands that are loaded once lie in shared memory for the matrix units";
  let description = [{
    In a kernel with `tile.specialized`, a load that runs once (outside of loops)
    and that only products read, as operands, becomes a copy in the background into
    a buffer of its own in shared memory, which is waited for where the load was.
    Each product reads the buffer: Hopper's matrix units do so themselves, and a
    warp that only moves data can start the copy. Slots are those of
    `tile-pipeline-loads`. Queries of attention are such operands, and keys and
    values of what is left over behind whole blocks.

    A load that copies in the background cannot do stays, with a remark.

    Before:
    ```mlir
    tile.kernel @k(%q: memref<64x64xf16>, %k: memref<256x64xf16>, %y: memref<64x64xf32>) attributes {tile.specialized} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
      %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
      %b = tile.load %k[%c0, %c0] dims [1, 0] : memref<256x64xf16>, !tile.tile<64x64xf16>
      %s = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
      tile.store %s, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %once = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
        memref<1x64x64xf16, #tile.level<"shared">>
    ...
    %token = tile.async {
      tile.copy ...
    }
    tile.await %token
    ...
    %a = tile.load %once[%c0, %c0, %c0] : memref<1x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def FetchMatrices : Pass<"tile-fetch-matrices", "::mlir::ModuleOp"> {
  let summary = "What follows a product finds its matrices in shared memory, loaded beside it";
  let description = [{
    In a kernel with `tile.specialized` and `tile.fetched`, a load of a matrix
    behind a loop with products (a residual, say, that their sums are added to)
    becomes a copy in the background into a buffer of its own in shared memory,
    which is waited for where the load was. The warp that only moves data starts
    it once the last copies of the loop are under way, so it comes while the last
    steps are computed; where a block computes task after task
    (`tile.persistent`), that of each task once the one before has been read.

    A load that copies in the background cannot do stays, with a remark.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64x256xf16>, %w: memref<256x64xf16>, %r: memref<64x64xf32>, %y: memref<64x64xf32>)
        attributes {tile.fetched, tile.specialized} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
      %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
        %a = tile.load %x[%c0, %k] : memref<64x256xf16>, !tile.tile<64x64xf16>
        %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
        %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
        scf.yield %n : !tile.tile<64x64xf32>
      }
      %t = tile.load %r[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
      %v = arith.addf %sum, %t : !tile.tile<64x64xf32>
      tile.store %v, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %once = tile.alloc {alignment = 1024 : i64, tile.layouts =
        [#tile.layout<perm = [0, 2, 1], inner = [2], tiles = [32], swizzle = 128>]} :
        memref<1x64x64xf32, #tile.level<"shared">>
    ...
    %sum = scf.for
    ...
    %token = tile.async {
      tile.copy ...
    }
    tile.await %token
    ...
    %t = tile.load %once[%c0, %c0, %c0] : memref<1x64x64xf32, #tile.level<"shared">>, !tile.tile<64x64xf32>
    %v = arith.addf %sum, %t : !tile.tile<64x64xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def StaggerProducts : Pass<"tile-stagger-products", "::mlir::ModuleOp"> {
  let summary = "A step makes the operand of the next step's product while the last one's multiplies";
  let description = [{
    In a kernel with `tile.stagger` (which goes), a loop with `tile.stages` whose
    first product makes, by what follows on it, the left operand of its second one
    gives the second product to the next step: scores of a block of keys, then
    probabilities of the block before times their values, then the softmax of the
    new scores. Matrix units multiply in the background while the softmax is
    computed (FlashAttention-3, Shah et al., 2024, section 3.2). The first scores
    stand before the loop, the last product behind it. Sums are the same, in the
    same order.

    Before:
    ```mlir
    tile.kernel @k(%q: memref<64x64xf16>, %k: memref<256x64xf16>, %v: memref<256x64xf16>, %y: memref<64x64xf32>)
        attributes {tile.stagger} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
      %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
      %sum = scf.for %j = %c0 to %c256 step %c64 iter_args(%o = %zero) -> (!tile.tile<64x64xf32>) {
        %b = tile.load %k[%j, %c0] dims [1, 0] : memref<256x64xf16>, !tile.tile<64x64xf16>
        %s = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
        %p = tile.convert %s : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
        %c = tile.load %v[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
        %n = tile.mma %p, %c, %o : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
        scf.yield %n : !tile.tile<64x64xf32>
      } {tile.stages = 2 : i64}
      tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %s0 = tile.mma %a, %b0, %zero : ...
    %p0 = tile.convert %s0 : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    ...
    %last:2 = scf.for %j = %first to %c256 step %c64 iter_args(%o = %zero, %p = %p0) ->
        (!tile.tile<64x64xf32>, !tile.tile<64x64xf16>) {
      ...
      %s = tile.mma %a, %b, %zero : ...
      %before = arith.subi %j, %c64 : index
      %c = tile.load %v[%before, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
      %n = tile.mma %p, %c, %o : ...
      %q = tile.convert %s : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
      scf.yield %n, %q : !tile.tile<64x64xf32>, !tile.tile<64x64xf16>
    } {tile.stages = 2 : i64}
    ...
    %sum = tile.mma %last#1, %c1, %last#0 : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::tilewright::tile::TileDialect"];
}

def StreamK : Pass<"tile-stream-k", "::mlir::ModuleOp"> {
  let summary = "Stream-K: divide the steps of a grid's last waves among all blocks";
  let description = [{
    In a kernel with `tile.stream_k = n` (blocks that run at a time) and
    `tile.persistent`, blocks compute whole tiles for all full waves but the last
    one. The steps of that one and of what is left are divided among all blocks as
    equal shares of consecutive ones, which begin and end anywhere in a tile
    (Osama et al., "Stream-K", PPoPP 2023, section 5.3). A task is then a part of
    a share or a whole tile: the grid has a coordinate for the round and one for
    the block. Who has the last steps of a tile waits for the blocks that have
    those before (`tile.semaphore_take`), adds their sums to its own, in the
    order of the blocks, and goes on as the kernel did; the others leave theirs in
    an argument that each launch makes. `tile.raster` goes: tiles are walked here.

    The reduced loop is the one with `tile.stages`, those over a window around it
    included; its sums are one tile that begins with zeros. A kernel that is
    another, or whose grid is not known, computes whole tiles, with a remark.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<192x256xf16>, %w: memref<256x64xf16>, %y: memref<192x64xf32>) grid(%i) attributes
        {tile.stream_k = 2 : i64, tile.persistent = 1 : i64} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
      %row = arith.muli %i, %c64 : index
      %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
        %a = tile.load %x[%row, %k] : memref<192x256xf16>, !tile.tile<64x64xf16>
        %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
        %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
        scf.yield %n : !tile.tile<64x64xf32>
      } {tile.stages = 3 : i64}
      tile.store %sum, %y[%row, %c0] : !tile.tile<64x64xf32>, memref<192x64xf32>
      tile.return
    }
    func.func @main(%x: tensor<192x256xf16>, %w: tensor<256x64xf16>) -> tensor<192x64xf32> {
      %c3 = arith.constant 3 : index
      %e = tensor.empty() : tensor<192x64xf32>
      %y = tile.launch @k grid(%c3) ins(%x, %w : tensor<192x256xf16>, tensor<256x64xf16>) outs(%e : tensor<192x64xf32>)
          -> (tensor<192x64xf32>)
      return %y : tensor<192x64xf32>
    }
    ```
    After:
    ```mlir
    tile.kernel @k(%x: memref<192x256xf16>, %w: memref<256x64xf16>, %y: memref<192x64xf32>, %others:
        memref<2x64x64xf32>) grid(%round, %block) attributes {tile.persistent = 1 : i64} {
      %left = tile.semaphores : memref<2xi32>
      ...
      %sum = scf.for %from = %helper to %block step
      ...
        tile.semaphore_take %left[%from] count 1 : memref<2xi32>
        ...
        tile.load %others[%from,
      ...
      tile.store %sum, %y[
      ...
      } else {
        ...
        tile.semaphore_post %left[%block] : memref<2xi32>
      }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::tilewright::tile::TileDialect"
  ];
}

def UnswitchFetches : Pass<"tile-unswitch-fetches", "tilewright::tile::KernelOp"> {
  let summary = "Make a loop for each way of fetching ahead, in the place of a branch in each step";
  let description = [{
    How much of the next panel a tile fetches depends on how many tiles there
    are, where only a run knows that. A branch in each step of the innermost loop
    costs more than the loop: where it only fetches, and each step finds the same
    condition, the loop stands on both sides of the branch instead.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64xf32>, %y: memref<f32>, %few: i1) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %sum = scf.for %i = %c0 to %c32 step %c1 iter_args(%a = %zero) -> (f32) {
        scf.if %few {
          %next = arith.addi %i, %c32 : index
          memref.prefetch %x[%next], read, locality<2>, data : memref<64xf32>
        }
        %t = memref.load %x[%i] : memref<64xf32>
        %n = arith.addf %a, %t : f32
        scf.yield %n : f32
      }
      memref.store %sum, %y[] : memref<f32>
      tile.return
    }
    ```
    After:
    ```mlir
    %sum = scf.if %few -> (f32) {
      %s = scf.for ... {
        ...
        memref.prefetch ...
        ...
      }
      scf.yield %s : f32
    } else {
      %s = scf.for ... {
        ...
      }
      scf.yield %s : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

#endif // TILEWRIGHT_TRANSFORMS_PIPELINING_PASSES
