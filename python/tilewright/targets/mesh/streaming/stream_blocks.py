# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-stream-blocks`: what is cut into blocks becomes a loop over these, whose tensors lie outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class StreamBlocks(Pass):
    """Rewrite computations with `coremesh.blocks` into loops over blocks.

    Each turn reads a block of what lies outside of the grid, and puts a block of the result there. Computations after
    each other that are cut alike share a loop where each reads of those before it the block that they make: that never
    leaves the grid. Where blocks do not come out even, the last one begins earlier. Of a loop that is combined each
    turn makes a partial result, which stays on the grid; what is left of it is combined behind the loop.

    Before:
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    func.func @main(%x: tensor<2048x512xf32>) -> tensor<2048x512xf32> {
      %0 = tensor.empty() : tensor<2048x512xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<2048x512xf32>) outs(%0 : tensor<2048x512xf32>) attrs = {coremesh.blocks = array<i64: 8, 1>} {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        linalg.yield %2 : f32
      } -> tensor<2048x512xf32>
      return %1 : tensor<2048x512xf32>
    }
    ```
    After:
    ```mlir
    %r = scf.for ... -> (tensor<2048x512xf32>) {
    ...
    tensor.extract_slice ... [256, 512] [1, 1] {coremesh.outside = ...
    linalg.generic ... outs(%e : tensor<256x512xf32>) {
    ...
    tensor.insert_slice ... {coremesh.outside = ...
    } {coremesh.streams}
    return %r : tensor<2048x512xf32>
    ```
    """

    name: ClassVar[str] = "tile-stream-blocks"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "scf", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit the functions."""
        from tilewright.targets.mesh.streaming.stream_blocks_rewrite import rewrite

        rewrite(self, op)
