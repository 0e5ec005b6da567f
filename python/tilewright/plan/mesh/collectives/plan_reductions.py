# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-reductions`: which algorithm each reduction along a line of cores takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.plan.mesh.reduction_cost import RAMP


@register
@dataclass(frozen=True)
class PlanReductions(Pass):
    """Choose how lines of cores reduce, by the model of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024).

    The choice is the op's algorithm, which later passes and people may edit; ops with an attribute `fixed` keep theirs.
    A remark gives the modelled cycles.

    Before:
    ```mlir
    #parts = #coremesh.layout<grid(1, 64), [x, *]>
    #all = #coremesh.layout<grid(1, 64), [*]>
    func.func @f(%p: tensor<64x4xf32, #parts>) -> tensor<4xf32, #all> {
      %0 = coremesh.allreduce add %p dim 0 by chain : tensor<64x4xf32, #parts> to tensor<4xf32, #all>
      return %0 : tensor<4xf32, #all>
    }
    ```
    After:
    ```mlir
    coremesh.allreduce add %p dim 0 by k_tree k 2 : ...
    ```
    """

    name: ClassVar[str] = "tile-plan-reductions"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)
    ramp: int = option(RAMP, "cycles between a core and its router")
    channels: int = option(21, "virtual channels of a router that a reduction may use")

    def run(self, op: ir.Operation) -> None:
        """Visit all reductions."""
        from tilewright.plan.mesh.collectives.plan_reductions_rewrite import rewrite

        rewrite(self, op)
