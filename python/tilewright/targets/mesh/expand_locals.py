# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-expand-locals`: what each core computes alone becomes a program, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class ExpandLocals(Pass):
    """Replace `coremesh.local` by a `coremesh.program` of one computation, on blocks as their layouts say.

    Before:
    ```mlir
    #tile = #coremesh.layout<grid(3, 2), [y, x]>
    func.func @f(%a: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
      %0 = coremesh.local (%x = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
        %1 = arith.negf %x : tensor<3x4xf32>
        coremesh.yield %1 : tensor<3x4xf32>
      }
      return %0 : tensor<7x8xf32, #tile>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : ...
    coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      ...
    }
    %r = coremesh.collect @out0 block(y, x) : ...
    ```
    """

    name: ClassVar[str] = "tile-expand-locals"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)

    def run(self, op: ir.Operation) -> None:
        """Visit all of them."""
        from tilewright.targets.mesh.expand_locals_rewrite import rewrite

        rewrite(self, op)
