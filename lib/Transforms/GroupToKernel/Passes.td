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
    lines in each round.

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
        %t = tile.launch @group grid(%c4) ins(%s : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) -> (tensor<64x256xf32>)
        return %t : tensor<64x256xf32>
      }
    }
    ```
  }];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
    "mlir::math::MathDialect", "mlir::tensor::TensorDialect",
    "tilewright::tile::TileDialect"
  ];
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
