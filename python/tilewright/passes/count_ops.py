# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Count ops: a small pass, and the example to copy from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.passes.base import Pass, option
from tilewright.passes.registry import register

if TYPE_CHECKING:
    from tilewright.mlir import ir


@register
@dataclass(frozen=True)
class CountOps(Pass):
    """Write how many ops of each kind an op holds into an attribute.

    The op itself is not counted.

    Before:
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %0 = arith.addf %x, %x : f32
      return %0 : f32
    }
    ```
    After:
    ```mlir
    module attributes {tile.op_count = {arith.addf = 1 : i64, func.func = 1 : i64, func.return = 1 : i64}} {
    ```
    """

    name: ClassVar[str] = "tile-count-ops"
    only: tuple[str, ...] = option((), "names of the ops to count; all if empty")
    attribute: str = option("tile.op_count", "name of the attribute")

    def run(self, op: ir.Operation) -> None:
        """Count, then set the attribute."""
        from tilewright.mlir import ir

        counts: Counter[str] = Counter()

        def visit(inner: ir.Operation) -> ir.WalkResult:
            if inner != op and (not self.only or inner.name in self.only):
                counts[inner.name] += 1
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        i64 = ir.IntegerType.get_signless(64)
        sizes = {name: ir.IntegerAttr.get(i64, count) for name, count in sorted(counts.items())}
        op.attributes[self.attribute] = ir.DictAttr.get(sizes)
