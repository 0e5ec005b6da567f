# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that change what a module computes, to be found: give this file to ``--load-python``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.base import option


def operations(op: ir.Operation, name: str) -> Iterator[ir.Operation]:
    """All operations of a name inside ``op``, in order."""
    for region in op.regions:
        for block in region:
            for inner in list(block.operations):
                if inner.operation.name == name:
                    yield inner.operation
                yield from operations(inner.operation, name)


@register
@dataclass(frozen=True)
class SwapOperands(Pass):
    """Exchange the operands of one operation, as if it were commutative."""

    name: ClassVar[str] = "test-swap-operands"

    op: str = option("arith.subf", "name of the operation")
    nth: int = option(0, "which of them, counted from 0")

    def run(self, op: ir.Operation) -> None:
        """Exchange them."""
        found = list(operations(op, self.op))
        if self.nth < len(found):
            a, b = found[self.nth].operands
            found[self.nth].operands[0] = b
            found[self.nth].operands[1] = a


@register
@dataclass(frozen=True)
class NothingAtAll(Pass):
    """Change nothing."""

    name: ClassVar[str] = "test-nothing"

    def run(self, op: ir.Operation) -> None:
        """Do nothing."""
