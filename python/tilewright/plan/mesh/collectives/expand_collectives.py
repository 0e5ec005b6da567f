# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-expand-collectives`: collectives on laid-out tensors become programs of single cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class ExpandCollectives(Pass):
    """Replace collectives by programs (`coremesh.program`), each by the algorithm that it names.

    The algorithm is a decision, as an attribute that can be edited before: products by `meshgemm`, `cannon`, `summa` or
    `allgather`, reductions along a line by a chain, a star, a tree, in two phases or by a K-tree. A cache takes a token
    at a length that is a constant, or, unless it shifts, that a run brings. `distribute`, `assemble` and `local` stay.

    Before:
    ```mlir
    #here = #coremesh.layout<grid(2, 3), [y, x]>
    #next = #coremesh.layout<grid(2, 3), [y, x rotate 1]>
    func.func @f(%a: tensor<4x9xf32, #here>) -> tensor<4x9xf32, #next> {
      %0 = coremesh.shift %a along x by 1 : tensor<4x9xf32, #here> to tensor<4x9xf32, #next>
      return %0 : tensor<4x9xf32, #next>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @x : tensor<2x3xf32>
    coremesh.buffer @y : tensor<2x3xf32>
    coremesh.route @x_shift along x from (p + 1) mod 3
    coremesh.place %in in @x block(y, x) : ...
    %s = coremesh.send @x on @x_shift
    %t = coremesh.recv @y from @x_shift
    coremesh.wait round %s, %t
    %r = coremesh.collect @y block(y, (x + 1) mod 3) : ...
    ```
    """

    name: ClassVar[str] = "tile-expand-collectives"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "cf", "coremesh", "linalg", "math", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit all collectives."""
        from tilewright.plan.mesh.collectives.expand_collectives_rewrite import rewrite

        rewrite(self, op)
