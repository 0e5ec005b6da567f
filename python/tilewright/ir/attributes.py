# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations a decision brings together."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.ir import decisions
from tilewright.ir.structure import LinalgOp


def members_of_nest(root: LinalgOp, members: Iterable[LinalgOp]) -> list[LinalgOp]:
    """Those of a task's operations that are in the nest (`tile.nest`) of one of them.

    Raises:
        UserError: an operation is in no nest.
    """
    number = decisions.NEST.read(root.op)
    return [member for member in members if decisions.NEST.read(member.op) == number]
