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

def ConvertTileToGPU : Pass<"convert-tile-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into gpu.func, one thread block per task";
  let description = [{
    Element `e` of a tile (row-major) lives in thread `e mod threads`, as scalar
    `e div threads` of it, so that loads and stores are coalesced and elementwise
    ops need no exchange. Products, reductions, transpositions and broadcasts go
    through shared memory. The last grid coordinate is the block's x.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<256xf32>, %y: memref<256xf32>) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%c0] : memref<256xf32>, !tile.tile<256xf32>
      %d = arith.addf %t, %t : !tile.tile<256xf32>
      tile.store %d, %y[%c0] : !tile.tile<256xf32>, memref<256xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<256xf32>, %y: memref<256xf32>) kernel
          attributes {known_block_size = array<i32: 128, 1, 1>} {
        ...
        %i = gpu.thread_id x
        ...
        %t0 = memref.load %x[%i0] : memref<256xf32>
        ...
        %t1 = memref.load %x[%i1] : memref<256xf32>
        %d0 = arith.addf %t0, %t0 : f32
        %d1 = arith.addf %t1, %t1 : f32
        ...
        gpu.return
      }
    }
    ```
    Correct on any GPU, and no more: tensor cores and asynchronous copies are not
    used yet (a copy in the background is over at once).
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"128",
           "threads of a block">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_PASSES
