# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions of earlier passes, read from the IR: whoever edited them by hand hears what they must be."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.errors import UserError
from tilewright.ir.diagnostics import located
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir


def read_integer(op: ir.Operation, name: str) -> int:
    """The integer attribute `name` of an operation.

    Raises:
        UserError: there is none, or it is no integer.
    """
    if name not in op.attributes:
        raise located(UserError(f"has no `{name}`"), op)
    found = op.attributes[name]
    if not isinstance(found, ir.IntegerAttr):
        raise located(UserError(f"has a `{name}` that is no integer: {found}"), op)
    return found.value


def members_of_nest(root: LinalgOp, members: Iterable[LinalgOp]) -> list[LinalgOp]:
    """Those of a task's operations that are in the nest (`tile.nest`) of one of them.

    Raises:
        UserError: an operation is in no nest.
    """
    number = read_integer(root.op, "tile.nest")
    return [member for member in members if read_integer(member.op, "tile.nest") == number]


def read_loops(op: LinalgOp, name: str) -> list[int]:
    """The attribute `name` of an operation that has one, which names loops of it.

    Raises:
        UserError: it is no array of i64, or names a loop that the operation does not have.
    """
    found = op.op.attributes[name]
    loops = list(found) if isinstance(found, ir.DenseI64ArrayAttr) else [-1]
    if any(not 0 <= d < len(op.extents) for d in loops):
        raise located(UserError(f"has a `{name}` that is no array of its loops: {found}"), op.op)
    return loops
