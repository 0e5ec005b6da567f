//===- Passes.td - phase `tile` ------------------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_PASSES
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_PASSES

include "mlir/Pass/PassBase.td"

def GroupsToKernels : Pass<"tile-groups-to-kernels", "mlir::ModuleOp"> {
  let summary = "Turn each outermost tile.group into a kernel and its launch";
  let description = [{
    Tasks, loops, buffers and tile shapes follow from the `tile.rtile` of the
    operations in the group, and from nothing else. In the example: 4 tasks of
    16 rows, tiles of 1x64.

    Sizes of the level `unroll` say how many steps one round of the innermost
    reduction loop takes. Sizes of the level `block` cut the reduction of one
    nest of a task: what feeds the nest is made block by block, each block adds
    to the result, and what follows runs after the last. `tile.grid` on a root
    names loops whose tasks come first. `tile.prefetch` on a root names inputs (by number)
    whose next tile is fetched into the L2 cache while one is in use, a few
    lines in each round. `tile.block_sums` on a product whose one operand is
    `(q - z) * s` says along how many innermost reduced loops z and s stay: these
    sum `x * q` and `x`, which are centred and scaled once behind them.
    `tile.tasks_inside` on the root of a task of one nest
    goes to the kernel, for convert-tile-kernel-to-func, and so do `tile.warps`,
    `tile.raster`, `tile.specialized`, `tile.staged`, `tile.persistent`,
    `tile.occupancy`, `tile.fetched` and `tile.prediction` of the last root.
    `tile.cluster` there says how many tasks along each loop of the root are the
    kernel's `cluster`; they must divide the tasks along it. Of a padded root, a
    loop whose extent a run tells has its tasks rounded up to whole clusters
    instead (`tile.rounded` of the kernel, a number per coordinate).

    Tiles that are left of a loop have smaller types. Where the root has
    `tile.padded`, all tiles have the planned sizes instead, which may exceed
    the loop's, and ragged edges are bounds of loads and stores; reductions see
    their neutral element there. `tile.stages` on such a root goes to the
    innermost loop of its reduction, and to the loop over blocks around it. The level `mma` names the loop that is the
    depth of a product of tiles, by a size above 1.

    Before:
    ```mlir
    func.func @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
      %y = tile.group "l2" (%x1 = %x : tensor<64x256xf32>) -> (tensor<64x256xf32>) {
        %r = tile.group "register" (%x2 = %x1 : tensor<64x256xf32>) -> (tensor<64x256xf32>) {
          %e = tensor.empty() : tensor<64x256xf32>
          %g = linalg.generic {
              indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
              iterator_types = ["parallel", "parallel"],
              tile.rtile = #tile.rtile<l2 = [16, 256], register = [1, 64], order = [0, 1]>}
              ins(%x2 : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) {
          ^bb0(%a: f32, %o: f32):
            %n = arith.negf %a : f32
            linalg.yield %n : f32
          } -> tensor<64x256xf32>
          tile.yield %g : tensor<64x256xf32>
        }
        tile.yield %r : tensor<64x256xf32>
      }
      return %y : tensor<64x256xf32>
    }
    ```

    After:
    ```mlir
    #map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>
    module {
      tile.kernel @group(%x: memref<64x256xf32>, %y: memref<64x256xf32>) grid(%i) {
        ...
        scf.for %r = %c0 to %c16 step %c1 {
          ...
          scf.for %c = %c0_0 to %c256 step %c64 {
            %row = affine.apply #map(%r)[%i]
            %a = tile.load %x[%row, %c] dims [0, 1] : memref<64x256xf32>, !tile.tile<1x64xf32>
            %n = arith.negf %a : !tile.tile<1x64xf32>
            ...
            tile.store %n, %y[%same, %c] dims [0, 1] : !tile.tile<1x64xf32>, memref<64x256xf32>
          }
        }
        tile.return
      }
      func.func @main(%s: tensor<64x256xf32>) -> tensor<64x256xf32> {
        %c4 = arith.constant 4 : index
        %e = tensor.empty() : tensor<64x256xf32>
        %t = tile.launch @group grid(%c4) ins(%s : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) ->
            (tensor<64x256xf32>)
        return %t : tensor<64x256xf32>
      }
    }
    ```
  }];
  let options = [Option<"bufferBytes", "buffer-bytes", "int64_t", "-1",
                        "bytes of buffers of a task; others are the host's; "
                        "-1: half of the shared memory of a GPU (the module's "
                        "device), and else no limit">];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
    "mlir::math::MathDialect", "mlir::tensor::TensorDialect",
    "tilewright::tile::TileDialect"
  ];
}

def PrefetchEpilogues : Pass<"tile-prefetch-epilogues", "mlir::ModuleOp"> {
  let summary = "Fetch what is added to a product while it is being computed";
  let description = [{
    Behind the loop of a product, a tile of something else is often read: a bias
    or a residual, the inputs' part of a gate. It is read once, a few lines in
    each row, which no hardware prefetcher sees coming. So its lines are fetched
    before the loop, which takes longer than they do: a line for every 16 cycles
    of its multiply-adds.

    Before:
    ```mlir
    tile.kernel @k(%a: memref<8x256xf32>, %b: memref<256x16xf32>, %x: memref<8x16xf32>, %y: memref<8x16xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !tile.tile<8x16xf32>
      %s = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %zero) -> (!tile.tile<8x16xf32>) {
        %p = tile.load %a[%c0, %k] : memref<8x256xf32>, !tile.tile<8x1xf32>
        %q = tile.load %b[%k, %c0] : memref<256x16xf32>, !tile.tile<1x16xf32>
        %n = tile.mma %p, %q, %acc : !tile.tile<8x1xf32>, !tile.tile<1x16xf32>, !tile.tile<8x16xf32>
        scf.yield %n : !tile.tile<8x16xf32>
      }
      %t = tile.load %x[%c0, %c0] : memref<8x16xf32>, !tile.tile<8x16xf32>
      %r = arith.addf %s, %t : !tile.tile<8x16xf32>
      tile.store %r, %y[%c0, %c0] : !tile.tile<8x16xf32>, memref<8x16xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    memref.prefetch %x[%c0, %c0], read, locality<3>, data : memref<8x16xf32>
    ...
    memref.prefetch %x[%c7, %c0], read, locality<3>, data : memref<8x16xf32>
    %s = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = %zero) -> (!tile.tile<8x16xf32>) {
      ...
    ```
  }];
  let dependentDialects = ["mlir::affine::AffineDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::memref::MemRefDialect"];
}

def PrefetchRows : Pass<"tile-prefetch-rows", "mlir::ModuleOp"> {
  let summary = "Fetch rows before the nests of a task that read and write them";
  let description = [{
    A task of several nests passes over its rows more than once: they come from
    far in the first nest, and leave in the last one. Hardware prefetchers see
    a row's lines one after the other, but start anew at each row. So the last
    nest (or one before it that computes twice as much: the exponentials of a
    softmax) fetches the rows that the next task reads first, and the nest before
    the last one the lines that the last one writes (unless its stores go past
    the caches), a few with each of its tiles. Buffers of less than `near-bytes` are in the
    L2 cache anyway.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c1024 = arith.constant 1024 : index
      %zero = arith.constant dense<0.0> : !tile.tile<1x16xf32>
      %t = tile.alloc : memref<1x1024xf32, #tile.level<"l2">>
      scf.for %r = %c0 to %c1 step %c1 {
        scf.for %j = %c0 to %c1024 step %c16 {
          %a = tile.load %x[%i, %j] : memref<64x1024xf32>, !tile.tile<1x16xf32>
          %b = arith.mulf %a, %a : !tile.tile<1x16xf32>
          tile.store %b, %t[%r, %j] : !tile.tile<1x16xf32>, memref<1x1024xf32, #tile.level<"l2">>
        }
      }
      scf.for %r = %c0 to %c1 step %c1 {
        scf.for %j = %c0 to %c1024 step %c16 {
          %a = tile.load %t[%r, %j] : memref<1x1024xf32, #tile.level<"l2">>, !tile.tile<1x16xf32>
          tile.store %a, %y[%i, %j] : !tile.tile<1x16xf32>, memref<64x1024xf32>
        }
      }
      tile.return
    }
    ```
    After:
    ```mlir
    scf.for %j = %c0 to %c1024 step %c16 {
      memref.prefetch %y[%i, %j], write, locality<3>, data : memref<64x1024xf32>
      %a = tile.load %x[%i, %j] : memref<64x1024xf32>, !tile.tile<1x16xf32>
      ...
    scf.for %j = %c0 to %c1024 step %c16 {
      %next = affine.apply #map(%i)
      memref.prefetch %x[%next, %j], read, locality<3>, data : memref<64x1024xf32>
      ...
    ```
  }];
  let options = [Option<"nearBytes", "near-bytes", "int64_t", "262144",
                        "bytes of buffers that stay in the L2 cache">];
  let dependentDialects = ["mlir::affine::AffineDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::memref::MemRefDialect"];
}

def OverlapTasks : Pass<"tile-overlap-tasks", "mlir::ModuleOp"> {
  let summary = "Let tasks store their results beside the next one's computation";
  let description = [{
    A task of several nests computes in one and stores in the last one: memory
    waits for the first, the core for the second (a softmax: exponentials, then
    quotients). `tile.overlap` on a kernel says how many tasks along the last
    coordinate become one. In it, the last nest of each runs beside the nest of
    the next one that computes most over the same rows, step by step. What the
    last nest reads meanwhile has two slots. Every element is computed as
    before. A kernel that has no such nests stays as it is, with a remark.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) grid(%i) attributes {tile.overlap = 4 : i64} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c1024 = arith.constant 1024 : index
      %t = tile.alloc : memref<1x1024xf32, #tile.level<"l2">>
      scf.for %j = %c0 to %c1024 step %c16 {
        %a = tile.load %x[%i, %j] : memref<64x1024xf32>, !tile.tile<1x16xf32>
        %e = math.exp %a : !tile.tile<1x16xf32>
        tile.store %e, %t[%c0, %j] : !tile.tile<1x16xf32>, memref<1x1024xf32, #tile.level<"l2">>
      }
      scf.for %j = %c0 to %c1024 step %c16 {
        %a = tile.load %t[%c0, %j] : memref<1x1024xf32, #tile.level<"l2">>, !tile.tile<1x16xf32>
        tile.store %a, %y[%i, %j] : !tile.tile<1x16xf32>, memref<64x1024xf32>
      }
      tile.return
    }
    func.func @main(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) {
      %c64 = arith.constant 64 : index
      tile.launch @k grid(%c64) ins(%x : memref<64x1024xf32>) outs(%y : memref<64x1024xf32>)
      return
    }
    ```
    After:
    ```mlir
    scf.for %r = %c1 to %c4 step %c1 {
      ...
      scf.for %j = %c0 to %c1024 step %c16 {
        ...
        %e = math.exp %a : !tile.tile<1x16xf32>
        ...
        tile.store %e, %t[%slot, %j] : !tile.tile<1x16xf32>, memref<2x1024xf32, #tile.level<"l2">>
        ...
        tile.store %b, %y[%before, %j] : !tile.tile<1x16xf32>, memref<64x1024xf32>
    ```
  }];
  let dependentDialects = ["mlir::affine::AffineDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::scf::SCFDialect"];
}

def BuffersToRegisters : Pass<"tile-buffers-to-registers", "::tilewright::tile::KernelOp"> {
  let summary = "Hand tiles on in registers where a buffer of a task holds one";
  let description = [{
    A buffer that is only ever stored and loaded as one and the same tile becomes
    that tile: a value, which loops carry and branches yield. What lies behind
    the bounds of a load (`valid`) reads as before. Buffers that are loaded
    before they are stored, or in parts, stay.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %b = tile.alloc : memref<1xf32, #tile.level<"shared">>
      %a = tile.load %x[%i, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
      %m = tile.reduce max %a dims [1] : !tile.tile<1x64xf32> -> !tile.tile<1x1xf32>
      %r = tile.reshape %m : !tile.tile<1x1xf32> -> !tile.tile<1xf32>
      tile.store %r, %b[%c0] : !tile.tile<1xf32>, memref<1xf32, #tile.level<"shared">>
      %s = tile.load %b[%c0] : memref<1xf32, #tile.level<"shared">>, !tile.tile<1xf32>
      %t = tile.reshape %s : !tile.tile<1xf32> -> !tile.tile<1x1xf32>
      %u = tile.broadcast %t : !tile.tile<1x1xf32> -> !tile.tile<1x64xf32>
      %d = arith.subf %a, %u : !tile.tile<1x64xf32>
      tile.store %d, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<8x64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %m = tile.reduce max %a dims [1] : !tile.tile<1x64xf32> -> !tile.tile<1x1xf32>
    %r = tile.reshape %m : !tile.tile<1x1xf32> -> !tile.tile<1xf32>
    %t = tile.reshape %r : !tile.tile<1xf32> -> !tile.tile<1x1xf32>
    %u = tile.broadcast %t : !tile.tile<1x1xf32> -> !tile.tile<1x64xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect",
                           "tilewright::tile::TileDialect"];
}

def DedupeKernels : Pass<"tile-dedupe-kernels", "mlir::ModuleOp"> {
  let summary = "Keep one of each set of equal kernels";
  let description = [{
    Two kernels are equal when they differ in their name and locations only. A
    model of n equal layers has its kernels compiled once.

    Before:
    ```mlir
    tile.kernel @a(%x: memref<4xf32>, %y: memref<4xf32>) {
      tile.return
    }
    tile.kernel @b(%x: memref<4xf32>, %y: memref<4xf32>) {
      tile.return
    }
    func.func @main(%s: memref<4xf32>, %t: memref<4xf32>) {
      tile.launch @a ins(%s : memref<4xf32>) outs(%t : memref<4xf32>)
      tile.launch @b ins(%s : memref<4xf32>) outs(%t : memref<4xf32>)
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @a(%x: memref<4xf32>, %y: memref<4xf32>) {
      tile.return
    }
    func.func @main(%s: memref<4xf32>, %t: memref<4xf32>) {
      tile.launch @a ins(%s : memref<4xf32>) outs(%t : memref<4xf32>)
      tile.launch @a ins(%s : memref<4xf32>) outs(%t : memref<4xf32>)
      return
    }
    ```
  }];
}

def VerifyKernels : Pass<"tile-verify-kernels", "mlir::ModuleOp"> {
  let summary = "State what holds after phase `tile`";
  let description = [{
    No group is left, and no linalg or tensor operation is in a kernel: code is
    made from the kernel's text alone.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4xf32>) grid(%i) {
      tile.return
    }
    ```
    After: unchanged.
  }];
}

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_PASSES
