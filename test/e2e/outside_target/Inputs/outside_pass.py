# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass of the package: registered when its target is asked for its pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.pipeline import PassSpec

SPEC = PassSpec("outside-count-kernels", "a machine of tiles holds its kernels in a table: this is its size")


@register
@dataclass(frozen=True)
class CountKernels(Pass):
    """Write the number of kernels on the module.

    Before:
    ```mlir
    module { }
    ```
    After:
    ```mlir
    module attributes {outside.kernels = 0 : i64} { }
    ```
    """

    name: ClassVar[str] = SPEC.name
    anchor: ClassVar[str | None] = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        """Count."""
        count = sum(child.operation.name == "tile.kernel" for child in op.regions[0].blocks[0].operations)
        op.attributes["outside.kernels"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), count)
