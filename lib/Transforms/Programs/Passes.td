//===- Passes.td - static programs of tasks --------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PROGRAMS_PASSES
#define TILEWRIGHT_TRANSFORMS_PROGRAMS_PASSES

include "mlir/Pass/PassBase.td"

def FormPrograms : Pass<"tile-form-programs", "::mlir::ModuleOp"> {
  let summary = "Make programs of the loops of launches that the plan has given units";
  let description = [{
    `tile.steps` iterations of a loop of @main with `tile.units` become one
    `tile.program`, which the loop starts: the tasks of each launch are assigned to
    the units, in runs of neighbours, and a unit waits for all parts of the launch
    before. Buffers that the loop exchanges must be back in their places after these
    steps. Where the number of iterations is no multiple of them, or known at run time
    only, the loop stays behind the programs for the rest.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%h: memref<8xf32>, %n: memref<8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
        tile.launch @k grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
        scf.yield %b, %a : memref<8xf32>, memref<8xf32>
      } {tile.steps = 2 : i64, tile.units = 2 : i64}
      return
    }
    ```
    After:
    ```mlir
    tile.program @program_k(%t: index, %h: memref<8xf32>, %n: memref<8xf32>) units 2 {
      ...
      tile.place @k tasks [0, 4] of [8] on 0(%h, %n : memref<8xf32>, memref<8xf32>)
      tile.place @k tasks [4, 8] of [8] on 1(%h, %n : memref<8xf32>, memref<8xf32>)
      tile.signal 0 on 0
      tile.signal 0 on 1
      ...
      tile.wait 0 count 2 on 0
      tile.wait 0 count 2 on 1
      tile.place @k tasks [0, 4] of [8] on 0(%n, %h : memref<8xf32>, memref<8xf32>)
      tile.place @k tasks [4, 8] of [8] on 1(%n, %h : memref<8xf32>, memref<8xf32>)
      tile.signal 1 on 0
      tile.signal 1 on 1
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def FormLoops : Pass<"tile-form-loops", "::mlir::ModuleOp"> {
  let summary = "Make one kernel of loops, branches and launches that the plan has given blocks";
  let description = [{
    Operations of @main with `tile.blocks` that stand one behind the other, with
    nothing but views and arithmetic between them, become one kernel without
    coordinates, which launches what they launch. The host launches it once. A
    number that decides about loops and branches is read where they are: by the
    kernel, if what reads it has `tile.blocks`, too. The launched kernels become
    others, of as many threads as the largest has.

    Buffers of the kernel are whole ones, views are made in it. Where the host
    uses the buffer that a loop gives, a loop without launches stays behind, to
    tell which it is.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%h: memref<8xf32>, %n: memref<8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
        tile.launch @k grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
        scf.yield %b, %a : memref<8xf32>, memref<8xf32>
      } {tile.blocks = 8 : i64}
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @k_0
    ...
    tile.kernel @loop_k(%h: memref<8xf32>, %n: memref<8xf32>) attributes
        {tile.blocks = 8 : i64, tile.threads = 128 : i64} {
      ...
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<8xf32>, memref<8xf32>) {
        tile.launch @k_0 grid(%c8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
        scf.yield %b, %a : memref<8xf32>, memref<8xf32>
      }
      tile.return
    }
    func.func @main(%h: memref<8xf32>, %n: memref<8xf32>) {
      ...
      tile.launch @loop_k outs(%h, %n : memref<8xf32>, memref<8xf32>)
      return
    }
    ```
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def FindTaskLoops : Pass<"tile-find-task-loops", "::mlir::ModuleOp"> {
  let summary = "Find loops around launches that each task can run by itself";
  let description = [{
    A loop gets `tile.independent` where each task touches only what tasks of its
    own coordinates touch, in all iterations and launches: states that are elementwise,
    or rows that are. All launches have one grid. The boxes of elements that loads and
    stores touch are affine in the coordinates; two tasks are apart where, for each
    coordinate, some dimension moves by at least what both boxes span in it.

    Before:
    ```mlir
    tile.kernel @k(%a: memref<64xf32>, %b: memref<64xf32>) grid(%i) {
      %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
      %t = tile.load %a[%o] : memref<64xf32>, !tile.tile<8xf32>
      tile.store %t, %b[%o] : !tile.tile<8xf32>, memref<64xf32>
      tile.return
    }
    func.func @main(%h: memref<64xf32>, %n: memref<64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
        tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
        scf.yield %b, %a : memref<64xf32>, memref<64xf32>
      }
      return
    }
    ```
    After:
    ```mlir
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
    } {tile.independent}
    ```
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def KeepStates : Pass<"tile-keep-states", "::mlir::ModuleOp"> {
  let summary = "Keep what a loop of a task hands on in registers";
  let description = [{
    In a kernel with `tile.level = "thread"`, a tile that an iteration reads from one
    buffer and writes to the one that the next iteration reads is a value that the loop
    carries: each thread, or vector register, keeps its own elements. It is loaded before
    the loop and stored behind it, into the buffer that the loop ends with.

    The load and the store are of the same elements in each iteration, the only ones of
    these two buffers, and right in the body of the loop. Where elements lie outside of
    bounds (`valid`), all that is computed is elementwise: padding is no longer read anew.
    A kernel without such a tile gets `tile.level = "task"`: its states go through memory.
    They have half of the registers of a task's threads at most (`_registers` of the
    cost model: what is computed has as many); others go through memory, too. A remark
    gives each reason.

    Before:
    ```mlir
    tile.kernel @k(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
        %s = tile.load %a[%o] : memref<64xf32>, !tile.tile<8xf32>
        %e = math.tanh %s : !tile.tile<8xf32>
        tile.store %e, %b[%o] : !tile.tile<8xf32>, memref<64xf32>
        scf.yield %b, %a : memref<64xf32>, memref<64xf32>
      }
      tile.return
    }
    ```
    After:
    ```mlir
    %s = tile.load %h[%o] : memref<64xf32>, !tile.tile<8xf32>
    %r:3 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n, %v = %s)
    ...
      %e = math.tanh %v : !tile.tile<8xf32>
      scf.yield %b, %a, %e : memref<64xf32>, memref<64xf32>, !tile.tile<8xf32>
    }
    tile.store %r#2, %r#0[%o] : !tile.tile<8xf32>, memref<64xf32>
    ```
  }];
  let options = [Option<"registerBytes", "register-bytes", "int64_t", "-1",
                        "bytes of registers of a thread; -1: those of the "
                        "module's device, and else no limit">];
  let dependentDialects = [
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def ShareKernels : Pass<"tile-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Let launches in a kernel share code that fits their lengths, too";
  let description = [{
    Kernels that others launch, and that differ in the length of the first dimension
    of their buffers only, become one, to which that length is open: its tasks are
    where the grid says. Layers of a network that run over fewer and fewer steps of
    more and more rows (a dilated LSTM) have one piece of code, which assemblers see
    once. It leaves alone what loads ahead (`tile.stages`): TMA's descriptors know
    lengths; and what the host launches, which is planned and reported by its name.

    Before:
    ```mlir
    tile.kernel @a(%x: memref<4x8xf32>, %y: memref<4x8xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %v = tile.load %x[%i, %c0] : memref<4x8xf32>, !tile.tile<1x8xf32>
      tile.store %v, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<4x8xf32>
      tile.return
    }
    tile.kernel @b(%x: memref<2x8xf32>, %y: memref<2x8xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %v = tile.load %x[%i, %c0] : memref<2x8xf32>, !tile.tile<1x8xf32>
      tile.store %v, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<2x8xf32>
      tile.return
    }
    tile.kernel @loop(%p: memref<4x8xf32>, %q: memref<4x8xf32>, %s: memref<2x8xf32>, %t: memref<2x8xf32>)
        attributes {tile.blocks = 4 : i64} {
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      tile.launch @a grid(%c4) ins(%p : memref<4x8xf32>) outs(%q : memref<4x8xf32>)
      tile.launch @b grid(%c2) ins(%s : memref<2x8xf32>) outs(%t : memref<2x8xf32>)
      tile.return
    }
    ```
    After:
    ```mlir
    tile.kernel @a(%x: memref<?x8xf32>, %y: memref<?x8xf32>) grid(%i) {
      ...
      %v = tile.load %x[%i, %c0] : memref<?x8xf32>, !tile.tile<1x8xf32>
    ...
    tile.launch @a grid(%c4) ins(%p : memref<4x8xf32>) outs(%q : memref<4x8xf32>)
    tile.launch @a grid(%c2) ins(%s : memref<2x8xf32>) outs(%t : memref<2x8xf32>)
    ```
  }];
}

def SinkLoops : Pass<"tile-sink-loops", "::mlir::ModuleOp"> {
  let summary = "Put loops that each task runs by itself into their kernels";
  let description = [{
    A loop with `tile.level = "task"` or `"thread"` and the kernels that it launches
    become one kernel of the same grid, each task of which runs all iterations. Nobody
    waits for other tasks. It fails where a task touches what another one does
    (`tile-find-task-loops`). The kernel has the level of the loop, but no longer
    `"thread"` where the host uses a buffer that iterations only write: registers hold
    the last state, and not the one before.

    Before:
    ```mlir
    tile.kernel @k(%a: memref<64xf32>, %b: memref<64xf32>) grid(%i) {
      %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
      %t = tile.load %a[%o] : memref<64xf32>, !tile.tile<8xf32>
      tile.store %t, %b[%o] : !tile.tile<8xf32>, memref<64xf32>
      tile.return
    }
    func.func @main(%h: memref<64xf32>, %n: memref<64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
        tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
        scf.yield %b, %a : memref<64xf32>, memref<64xf32>
      } {tile.level = "task"}
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @loop_k(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "task"} {
      ...
      %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
        ...
        scf.yield %b, %a : memref<64xf32>, memref<64xf32>
      }
      tile.return
    }
    func.func @main(%h: memref<64xf32>, %n: memref<64xf32>) {
      ...
      tile.launch @loop_k grid(%k) outs(%h, %n : memref<64xf32>, memref<64xf32>)
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

#endif // TILEWRIGHT_TRANSFORMS_PROGRAMS_PASSES
