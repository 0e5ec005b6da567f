# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-skip-padding`: what works token by token leaves out padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class SkipPadding(Pass):
    """Pack real tokens of batches of sentences (PIT, SOSP 2023), where padding is not read.

    Products with weights, what leads to them token by token, and what follows from them so, run on as many rows as
    there are tokens. Where tokens meet (attention) a loop over sentences does, if each is worth a launch. At outputs
    tokens are put to their places, with zeros at padding.

    Without the option a mask must say for sure that no result depends on padding: its numbers hide keys from
    attention, and results pool what it does not hide, or are of places that stay. A remark says what keeps padding.

    Before:
    ```mlir
    #x = affine_map<(b, s, n, k) -> (b, s, k)>
    #w = affine_map<(b, s, n, k) -> (k, n)>
    #y = affine_map<(b, s, n, k) -> (b, s, n)>
    func.func @main(%x: tensor<4x16x8xf32> {tile.name = "x"}, %mask: tensor<4x16xi64> {tile.name = "mask"})
        -> tensor<4x16x32xf32> {
      %zero = arith.constant 0.0 : f32
      %w = arith.constant dense<1.0> : tensor<8x32xf32>
      %e = tensor.empty() : tensor<4x16x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
      %y = linalg.generic {indexing_maps = [#x, #w, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<4x16x8xf32>, tensor<8x32xf32>) outs(%f : tensor<4x16x32xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<4x16x32xf32>
      return %y : tensor<4x16x32xf32>
    }
    ```
    After:
    ```mlir
    sparse_tile.index
    ...
    sparse_tile.gather
    ...
    : tensor<?x8xf32>, tensor<8x32xf32>)
    ...
    : tensor<?x32xf32>, tensor<64xi32> to tensor<64x32xf32>
    ```
    """

    name: ClassVar[str] = "tile-skip-padding"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "sparse_tile")

    def run(self, op: ir.Operation) -> None:
        """Look at @main."""
        from tilewright.plan.sparse.padding.skipping import skip_padding  # kernels: when it runs

        skip_padding(op)
