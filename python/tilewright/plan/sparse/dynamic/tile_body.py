# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of an elementwise `linalg.generic` on f32 as lines of a kernel: the same steps on tiles."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import maker
from tilewright.mlir import ir

_BINARY = frozenset(f"arith.{name}" for name in "addf subf mulf divf maximumf minimumf maxnumf minnumf".split())
_UNARY = frozenset(["arith.negf", *(f"math.{name}" for name in "absf exp log sqrt rsqrt tanh erf sin cos".split())])
_ORDERS = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


def is_plain(block: ir.Block, unread: ir.Value | None = None) -> bool:
    """Whether each step of a body has a counterpart on tiles of f32.

    Args:
        block: the body.
        unread: an argument that no step may read.
    """
    *steps, _ = block.operations
    if unread is not None and list(unread.uses):
        return False
    return all(_is_step(step.operation) for step in steps)


def _is_step(op: ir.Operation) -> bool:
    if op.name == "arith.select":
        return isinstance(op.results[0].type, ir.F32Type)
    if op.name == "arith.constant":
        return isinstance(op.results[0].type, ir.F32Type)
    known = op.name in _BINARY or op.name in _UNARY or op.name == "arith.cmpf"
    return known and all(isinstance(value.type, ir.F32Type) for value in op.operands)


class TileBody:
    """Lines of a kernel that computes bodies one after the other, on tiles of one shape."""

    def __init__(self, shape: Sequence[int]) -> None:
        """Begin without a line.

        Args:
            shape: of all tiles.
        """
        self.lines: list[str] = []
        self._shape = "x".join(map(str, shape))
        self._count = 0

    @property
    def tile(self) -> str:
        """The type of values."""
        return f"!tile.tile<{self._shape}xf32>"

    def add(self, block: ir.Block, arguments: Sequence[str | None], wanted: ir.Value) -> str:
        """Repeat a body's steps up to the one that makes a value.

        Args:
            block: a body of which :func:`is_plain` holds.
            arguments: names of the tiles in the place of its arguments; None for one that nothing reads.
            wanted: what is asked for.

        Returns:
            The name of its tile.
        """
        names = {value: name for value, name in zip(block.arguments, arguments, strict=True) if name is not None}
        return self._named(wanted, names)

    def _named(self, value: ir.Value, names: dict[ir.Value, str]) -> str:
        if value not in names:
            op = maker(value)
            assert op is not None
            operands = [] if op.name == "arith.constant" else [self._named(one, names) for one in op.operands]
            names[value] = self._step(op, operands)
        return names[value]

    def _step(self, op: ir.Operation, operands: list[str]) -> str:
        self._count += 1
        name = f"%step{self._count}"
        if op.name == "arith.constant":
            number = str(op.attributes["value"]).split(" : ")[0]
            text = f"arith.constant dense<{number}> : {self.tile}"
        elif op.name == "arith.cmpf":
            order = _ORDERS[ir.IntegerAttr(op.attributes["predicate"]).value]
            text = f"arith.cmpf {order}, {', '.join(operands)} : {self.tile}"
        elif op.name == "arith.select":
            text = f"tile.select {', '.join(operands)} : !tile.tile<{self._shape}xi1>, {self.tile}"
        else:
            text = f"{op.name} {', '.join(operands)} : {self.tile}"
        self.lines.append(f"{name} = {text}")
        return name
