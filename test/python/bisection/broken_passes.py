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
    """Exchange the operands of an operation, as if it were commutative."""

    name: ClassVar[str] = "test-swap-operands"

    op: str = option("arith.subf", "name of the operation")
    nth: int = option(-1, "which of them, counted from 0; -1: all")

    def run(self, op: ir.Operation) -> None:
        """Exchange them."""
        for number, found in enumerate(operations(op, self.op)):
            if self.nth in (-1, number):
                a, b = found.operands
                found.operands[0], found.operands[1] = b, a


@register
@dataclass(frozen=True)
class NothingAtAll(Pass):
    """Change nothing."""

    name: ClassVar[str] = "test-nothing"

    def run(self, op: ir.Operation) -> None:
        """Do nothing."""
