# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-sparsity`: products with a pruned weight are told how their zeros are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register


@register
@dataclass(frozen=True)
class PlanSparsity(Pass):
    """Decide how products use the zeros of their constant operand.

    For each product whose weight has zeros: a cover of what is not zero by patterns that there are kernels for (N:M of
    elements or vectors, blocks, a mask, blocks or N:M with a mask for the rest: SparTA's weighted cover), or dense,
    whichever the cost model says is the fastest. `tile.sparsity` says the cover of the weight as `[k, n]`, the family
    of kernels and kept units of each region, the predicted times, the runner-up and the reason. A product that has the
    attribute keeps it.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
      %w = arith.constant dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x2xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %t = arith.mulf %p, %q : f32
        %s = arith.addf %o, %t : f32
        linalg.yield %s : f32
      } -> tensor<8x2xf32>
      return %y : tensor<8x2xf32>
    }
    ```
    After:
    ```mlir
    tile.sparsity = {cover = "dense", density = 5.000000e-01 : f64,
        reason = "4 elements are too few for a kernel of their own"}
    ```
    """

    name: ClassVar[str] = "tile-plan-sparsity"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "tile", "sparse_tile", "func", "ml_program")

    margin: float = option(0.08, "part of the dense product's time that a cover has to save")

    def run(self, op: ir.Operation) -> None:
        """Product by product."""
        from tilewright.plan.sparse.planning import plan  # numpy and kernels: when it runs

        device = find_device(op)
        if device is not None:
            plan(op, device, self.margin)
