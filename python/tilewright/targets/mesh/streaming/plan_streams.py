# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-streams`: which computations go through the grid block by block, as no core holds what they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, option, register


@register
@dataclass(frozen=True)
class PlanStreams(Pass):
    """Cut computations whose tensors outgrow the memories of all cores into blocks.

    `coremesh.blocks` says of each loop of a computation into how many blocks it is cut. The outermost loops of the
    result are cut first, so that blocks of rows stay whole, and computations after each other are cut alike; no block
    is smaller than the grid along the loops that split it. Rows and columns of a product of two operands that both
    stream grow smaller in turns. Loops that are combined are cut last, or first where that makes fewer blocks. Weights
    and filters do not count: they come in part by part. A computation that has blocks already keeps them; what no
    blocks make fit is left as it is, and so is all where weights have to stay.

    Before:
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    func.func @main(%x: tensor<2048x512xf32>) -> tensor<2048x512xf32> {
      %0 = tensor.empty() : tensor<2048x512xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<2048x512xf32>) outs(%0 : tensor<2048x512xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        linalg.yield %2 : f32
      } -> tensor<2048x512xf32>
      return %1 : tensor<2048x512xf32>
    }
    ```
    After:
    ```mlir
    ins(%x : tensor<2048x512xf32>) outs(%0 : tensor<2048x512xf32>) attrs = {coremesh.blocks = array<i64: 8, 1>} {
    ```
    """

    name: ClassVar[str] = "tile-plan-streams"
    anchor: ClassVar[str | None] = "builtin.module"
    side: int = option(0, "cores along each side of the grid; 0: by the machine and the model")

    def run(self, op: ir.Operation) -> None:
        """Visit the functions."""
        from tilewright.targets.mesh.streaming.plan_streams_rewrite import rewrite

        rewrite(self, op)
