# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-apply-sparsity`: the covers that were decided become products with encoded operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class ApplySparsity(Pass):
    """Multiply pruned weights as `tile.sparsity` says.

    Each region of the cover becomes a `sparse_tile.matmul` whose encoded operand is packed at compile time; the regions
    add to each other's results. Families of kernels whose lists run along the sum get the transposed weight on the
    left, and transposed activations and results, which `tile-fold-transposes` gives to their neighbours. What the
    decision says is obeyed as it stands, and refused where it does not fit the weight.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
      %w = arith.constant dense<[[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]> : tensor<4x2xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x2xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x4xf32>, tensor<4x2xf32>) outs(%f : tensor<8x2xf32>)
          attrs = {tile.sparsity = {cover = #sparse_tile.tesa<nm<2 : 4, axis = 0>>, kernels = ["panels"]}} {
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
    %p = sparse_tile.pack %w : tensor<4x2xf32> to tensor<4x2xf32, #tesa>
    %v:2 = sparse_tile.parts %p : tensor<4x2xf32, #tesa> to tensor<2x2xf32>, tensor<2x2xi8>
    %q = sparse_tile.assemble %v#0, %v#1 : tensor<2x2xf32>, tensor<2x2xi8> to tensor<4x2xf32, #tesa>
    %y = sparse_tile.matmul %x, %q, %f {kernel = "panels"}
    ```
    """

    name: ClassVar[str] = "tile-apply-sparsity"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "tile", "sparse_tile", "func", "ml_program")

    def run(self, op: ir.Operation) -> None:
        """Product by product."""
        decided = [one for one in walk(op, "linalg.generic") if decisions.SPARSITY.on(one)]
        if not decided:
            return
        from tilewright.plan.sparse.applying import apply  # numpy: when it runs

        for one in decided:
            apply(one)
