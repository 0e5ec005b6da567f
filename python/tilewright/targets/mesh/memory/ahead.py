# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What comes in while the program before runs, as the second of two buffers: where that has room for it."""

from __future__ import annotations

import numpy as np

from tilewright.ir.generics import maker
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import AHEAD, FIXED
from tilewright.targets.mesh.memory.held import Held, Memory


def bring_ahead(memory: Memory, room: int) -> None:
    """Mark what comes in ahead, and count it beside the program that runs then.

    Args:
        room: bytes that a core has for all.
    """
    for one in memory.held:
        if one.op.name != "coremesh.distribute" or one.stays or not one.spans or one.op in memory.unread:
            continue
        at = int(np.searchsorted(memory.at, one.made, "left")) - 1
        if at < 0 or memory.needs[at] + one.count > room or not _is_there(one, int(memory.at[at]), memory):
            continue
        one.op.attributes[AHEAD] = ir.UnitAttr.get()
        memory.needs[at] += one.count


def _is_there(one: Held, before: int, memory: Memory) -> bool:
    """Whether a value can come in before the program at a place has ended: it follows in the same block."""
    program, source = memory.operations[before], maker(one.op.operands[0])
    if program.block != one.op.block:
        return False
    if source is None or FIXED in one.op.attributes:
        return True
    return source in memory.places and memory.places[source] < before
