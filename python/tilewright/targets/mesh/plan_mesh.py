# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-mesh`: how each computation lies on the grid, and the algorithm of each product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, option, register


@register
@dataclass(frozen=True)
class PlanMesh(Pass):
    """Lay out computations on a grid of cores, and choose products by simulated time.

    The grid is square, as large as the machine's shorter side, but no side is longer than the longest loop. A loop is
    split along the axis along which operands that come from the grid lie already; of others the last loops are split
    along y and x. Products of few rows become MeshGEMV, of all rows at once, where that is faster, those with a
    transposed right operand dist-GEMM-T, others MeshGEMM; in parts (`coremesh.parts`: along rows, the summed dimension,
    columns) where a core's memory is too small for the whole. What no collective does stays outside, with a remark that
    says why. All of this are attributes that can be edited.

    Before:
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    func.func @main(%x: tensor<13x17xf32>) -> tensor<13x17xf32> {
      %0 = tensor.empty() : tensor<13x17xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<13x17xf32>) outs(%0 : tensor<13x17xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        linalg.yield %2 : f32
      } -> tensor<13x17xf32>
      return %1 : tensor<13x17xf32>
    }
    ```
    After:
    ```mlir
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<13x17xf32>) outs(%0 : tensor<13x17xf32>) attrs = {coremesh.loops = ["y", "x"]} {
    ```
    """

    name: ClassVar[str] = "tile-plan-mesh"
    anchor: ClassVar[str | None] = "builtin.module"
    side: int = option(0, "cores along each side of the grid; 0: by the machine and the model")

    def run(self, op: ir.Operation) -> None:
        """Visit the functions."""
        from tilewright.targets.mesh.plan_mesh_rewrite import rewrite

        rewrite(self, op)
