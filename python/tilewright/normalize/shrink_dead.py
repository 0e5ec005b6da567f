# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-shrink-dead`: slices of tensors that pruned weights make useless are not computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, located, option, register


@register
@dataclass(frozen=True)
class ShrinkDead(Pass):
    """Leave out the slices of tensors that pruned weights make useless.

    Weights whose rows, columns, filters or heads are zero say what other tensors need not hold: forward, a result that
    is zero; backward, what only multiplies zeros (SparTA's propagation, derived from maps, iterator types and bodies).
    Whole indices go, from all tensors that have them; axes of more than 16 keep whole vectors. What is not known
    counts as finite. A reduction that could do with less than what others need gathers what it reads, or spreads what
    it makes, where that pays. Constants are gathered at compile time. A remark tells what is left.

    With `trials`, operations also run on that many random inputs, and slices that hold the same number each time count
    as known (SparTA's "tensor scrambling"). That finds what no rule says, and may be wrong: a remark says how many
    slices it is about.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x2xf32>, %u: tensor<2x4xf32>) -> tensor<8x2xf32> {
      %v = arith.constant dense<[[1.0, 2.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]> : tensor<4x2xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
      %w = arith.constant dense<[[1.0, 5.0, 2.0, 6.0], [3.0, 7.0, 4.0, 8.0]]> : tensor<2x4xf32>
      %h = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x2xf32>, tensor<2x4xf32>) outs(%f : tensor<8x4xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %t = arith.mulf %p, %q : f32
        %s = arith.addf %o, %t : f32
        linalg.yield %s : f32
      } -> tensor<8x4xf32>
      %g = tensor.empty() : tensor<8x2xf32>
      %i = linalg.fill ins(%zero : f32) outs(%g : tensor<8x2xf32>) -> tensor<8x2xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%h, %v : tensor<8x4xf32>, tensor<4x2xf32>) outs(%i : tensor<8x2xf32>) {
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
    linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<8x2xf32>) -> tensor<8x2xf32>
    ```
    """

    name: ClassVar[str] = "tile-shrink-dead"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "ml_program")

    trials: int = option(0, "random trials that look for further constant slices, which is no proof; 0: none, or 2 on")

    def run(self, op: ir.Operation) -> None:
        """Function by function.

        Raises:
            UserError: a number of trials that can show nothing.
            InternalError: a trial shows that a rule is wrong.
        """
        if self.trials < 0 or self.trials == 1:
            text = f"tile-shrink-dead{{trials={self.trials}}}: give 0 (no trials), or 2 or more, which can be compared"
            raise located(UserError(text), op)
        from tilewright.normalize.sparsity.shrink import shrink  # numpy and the tables of arithmetic: when it runs

        for function in walk(op, "func.func"):
            for block in function.regions[0].blocks if function.regions else ():
                shrink(block, self.trials)
