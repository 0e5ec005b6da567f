# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fuse-programs`: elementwise computations follow in the program that makes what they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class FusePrograms(Pass):
    """Append elementwise programs to those that make what they read.

    A bias, an activation, a residual or a scale reads each element where it was made: each core goes on as soon as it
    has its block, and no tensor lies between. This is done where the program right before makes an operand that nothing
    else reads, in the same blocks, and where one core's memory needs no more than for both, one after the other, and
    has that.

    Before:
    ```mlir
    #tile = #coremesh.layout<grid(3, 2), [y, x]>
    #map = affine_map<(i, j) -> (i, j)>
    func.func @f(%a: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
      %0 = coremesh.program "local" grid(3, 2) (%in = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
        coremesh.buffer @in0 : tensor<3x4xf32>
        coremesh.buffer @out0 : tensor<3x4xf32>
        coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
        coremesh.compute "double" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
          %1 = arith.addf %x, %x : tensor<3x4xf32>
          coremesh.yield %1 : tensor<3x4xf32>
        }
        %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
        coremesh.yield %out : tensor<7x8xf32, #tile>
      }
      %2 = coremesh.program "local" grid(3, 2) (%in = %0) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
        coremesh.buffer @in0 : tensor<3x4xf32>
        coremesh.buffer @out0 : tensor<3x4xf32>
        coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
        coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
          %e = tensor.empty() : tensor<3x4xf32>
          %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
              ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
          ^bb0(%u: f32, %v: f32):
            %4 = arith.negf %u : f32
            linalg.yield %4 : f32
          } -> tensor<3x4xf32>
          coremesh.yield %3 : tensor<3x4xf32>
        }
        %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
        coremesh.yield %out : tensor<7x8xf32, #tile>
      }
      return %2 : tensor<7x8xf32, #tile>
    }
    ```
    After:
    ```mlir
    %0 = coremesh.program "local" grid(3, 2) ...
    coremesh.compute "double" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
    ...
    coremesh.compute "local" (%y = @out0 : tensor<3x4xf32>) to (@out1) {
    ...
    %out = coremesh.collect @out1 block(y, x) : ...
    ```
    """

    name: ClassVar[str] = "tile-fuse-programs"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)

    def run(self, op: ir.Operation) -> None:
        """Visit all blocks that hold programs."""
        from tilewright.targets.mesh.fusing.fuse_programs_rewrite import rewrite

        rewrite(self, op)
