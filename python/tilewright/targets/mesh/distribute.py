# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-distribute`: computations that have a layout become collectives and kernels of single cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class Distribute(Pass):
    """Rewrite computations that `tile-plan-mesh` has laid out into collectives of a grid.

    A product becomes `coremesh.gemm`, `gemm_t` or `gemv`, one for each of a batch; a reduction what each core
    combines of its own, then an allreduce along the axis that splits the dimension; the rest `coremesh.local`. What
    has no layout reads tensors that are collected through the edge of the grid, with a remark.

    Before:
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    func.func @main(%x: tensor<13x17xf32>) -> tensor<13x17xf32> attributes {coremesh.side = 4 : i64} {
      %0 = tensor.empty() : tensor<13x17xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<13x17xf32>) outs(%0 : tensor<13x17xf32>) attrs = {coremesh.loops = ["y", "x"]} {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        linalg.yield %2 : f32
      } -> tensor<13x17xf32>
      return %1 : tensor<13x17xf32>
    }
    ```
    After:
    ```mlir
    %0 = coremesh.distribute %x : ...
    %1 = coremesh.local (%b = %0) : ... {
      ...
    }
    %2 = coremesh.assemble %1 : ...
    ```
    """

    name: ClassVar[str] = "tile-distribute"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "coremesh", "linalg", "math", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit the functions that have a grid."""
        from tilewright.targets.mesh.distribute_rewrite import rewrite

        rewrite(self, op)
