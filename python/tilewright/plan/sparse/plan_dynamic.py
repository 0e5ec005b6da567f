# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-dynamic`: products whose operand a run may fill with zeros are encoded as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class PlanDynamic(Pass):
    """Encode operands of products that a run may fill with zeros (PIT, SOSP 2023).

    Two kinds are found: what a ReLU makes (zeros of single elements), and rows that are multiplied by a mask. The other
    operand has to be a finite weight, so that what is left out would have added zero, and finding the zeros must cost
    little beside the dense product. That stays in the code: each run decides by what it counts.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    #e = affine_map<(m, k) -> (m, k)>
    func.func @main(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
      %zero = arith.constant 0.0 : f32
      %w = arith.constant dense<1.0> : tensor<4096x4096xf32>
      %p = tensor.empty() : tensor<64x4096xf32>
      %h = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<64x4096xf32>) outs(%p : tensor<64x4096xf32>) {
      ^bb0(%v: f32, %o: f32):
        %r = arith.maximumf %v, %zero : f32
        linalg.yield %r : f32
      } -> tensor<64x4096xf32>
      %f = linalg.fill ins(%zero : f32) outs(%p : tensor<64x4096xf32>) -> tensor<64x4096xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%h, %w : tensor<64x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<64x4096xf32>) {
      ^bb0(%l: f32, %r: f32, %o: f32):
        %m = arith.mulf %l, %r : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      } -> tensor<64x4096xf32>
      return %y : tensor<64x4096xf32>
    }
    ```
    After:
    ```mlir
    sparse_tile.matmul
    ```
    """

    name: ClassVar[str] = "tile-plan-dynamic"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "sparse_tile")

    def run(self, op: ir.Operation) -> None:
        """Product by product."""
        from tilewright.plan.sparse.dynamic.operands import encode_operands  # numpy and kernels: when it runs

        encode_operands(op)
