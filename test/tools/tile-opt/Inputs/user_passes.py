# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of a user, for tests: nothing in Tilewright imports this file."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.core.errors import UnsupportedError
from tilewright.passes import Pass, located, option, register, remark

if TYPE_CHECKING:
    from tilewright.mlir import ir


@register
@dataclass(frozen=True)
class Mark(Pass):
    """Write the options into an attribute.

    ``test-mark`` turns ``func.func @f()`` into ``func.func @f() attributes {test.mark = "..."}``.
    """

    name: ClassVar[str] = "test-mark"
    anchor: ClassVar[str | None] = "func.func"
    label: str = option("none", "text to write")
    max_rows: int = option(8, "a number to write")
    scale: float = option(0.5, "a float to write")
    fast: bool = option(False, "a flag to write")
    sizes: tuple[int, ...] = option((4, 8), "a list to write")
    names: tuple[str, ...] = option((), "a list of texts to write")

    def run(self, op: ir.Operation) -> None:
        """Set the attribute."""
        from tilewright.mlir import ir

        sizes, names = "x".join(map(str, self.sizes)), "+".join(self.names)
        text = f"{self.label} {self.max_rows} {self.scale} {self.fast} {sizes} {names}".rstrip()
        op.attributes["test.mark"] = ir.StringAttr.get(text)


@register
@dataclass(frozen=True)
class MakeExp(Pass):
    """Replace the operand of each return by its exponential: makes ops of a dialect that may not be loaded."""

    name: ClassVar[str] = "test-make-exp"
    dialects: ClassVar[tuple[str, ...]] = ("math",)
    anchor: ClassVar[str | None] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Insert before the terminator."""
        from tilewright.mlir import ir

        terminator = op.regions[0].blocks[0].operations[-1].operation
        value = terminator.operands[0]
        with ir.InsertionPoint(terminator):
            made = ir.Operation.create("math.exp", results=[value.type], operands=[value])
        terminator.operands[0] = made.result


@register
@dataclass(frozen=True)
class Fail(Pass):
    """Fail on functions named ``bad``."""

    name: ClassVar[str] = "test-fail"
    anchor: ClassVar[str | None] = "func.func"
    how: str = option("raise", "raise an unexpected exception, or: unsupported, interrupt, break (make invalid IR)")

    def run(self, op: ir.Operation) -> None:
        """Fail in the chosen way."""
        if op.attributes["sym_name"].value != "bad":
            return
        if self.how == "unsupported":
            inner = op.regions[0].blocks[0].operations[0]
            raise located(UnsupportedError("this function is too bad to compile"), inner)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "break":
            del op.attributes["function_type"]
            return
        raise ValueError("a bad function")


@register
@dataclass(frozen=True)
class ThreadId(Pass):
    """Wait a while and write down the thread that ran it."""

    name: ClassVar[str] = "test-thread-id"
    anchor: ClassVar[str | None] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Sleep without the GIL, so that others can run."""
        from tilewright.mlir import ir

        time.sleep(0.05)
        op.attributes["test.thread"] = ir.StringAttr.get(str(threading.get_ident()))


@register
@dataclass(frozen=True)
class Tell(Pass):
    """Say how many operations a function has, in a remark.

    ``test-tell`` leaves ``func.func @f()`` as it is.
    """

    name: ClassVar[str] = "test-tell"
    anchor: ClassVar[str | None] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Count."""
        count = sum(1 for _ in op.regions[0].blocks[0].operations)
        remark(op, f"{count} operations")
