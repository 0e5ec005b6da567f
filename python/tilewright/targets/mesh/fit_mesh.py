# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fit-mesh`: programs get colors and addresses, and are checked; what does not fit is streamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class FitMesh(Pass):
    """Give mesh programs colors and addresses on the module's machine, and check them.

    Checked are races, routes and deadlock.

    Weights stay in the cores' memories from call to call while these hold them; the largest ones beyond that stream in
    from outside (`coremesh.streamed`). A program that needs more memory or colors than a core has is an error.

    Before:
    ```mlir
    func.func @main(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %r = coremesh.program "shift" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
        coremesh.buffer @A : tensor<2x3xf32>
        coremesh.buffer @B : tensor<2x3xf32>
        coremesh.route @left along x ring from (p + 1) mod 3
        coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
        %s = coremesh.send @A on @left
        %t = coremesh.recv @B from @left
        coremesh.wait round %s, %t
        %out = coremesh.collect @B block(y, x) ring : tensor<4x9xf32>
        coremesh.yield %out : tensor<4x9xf32>
      }
      return %r : tensor<4x9xf32>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @A : tensor<2x3xf32> address 4096
    coremesh.buffer @B : tensor<2x3xf32> address 4120
    coremesh.route @left along x ring from (p + 1) mod 3 colors [0, 1, 2] by ...
    ```
    """

    name: ClassVar[str] = "tile-fit-mesh"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)

    def run(self, op: ir.Operation) -> None:
        """Visit the functions."""
        from tilewright.targets.mesh.fit_mesh_rewrite import rewrite

        rewrite(self, op)
