# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operands that a run brings are copied into panels before they are multiplied."""

from __future__ import annotations

from tilewright.ir import decisions
from tilewright.ir.generics import maker
from tilewright.ir.structure import Access, LinalgOp, is_dynamic
from tilewright.plan.cpu.register_tiles import resident_lines
from tilewright.plan.model.tiles import Machine

#: Rows from which on a copy of what they multiply pays.
FEW_ROWS = 32
#: Sets of the L1 cache that hold next to nothing of a panel. In a task of several nests, a copy costs what it saves
#: where there are more: keys of 128 numbers lie in 8 sets of 64.
_FEW_SETS = 2
#: Rows from which on an operand that all tasks share is copied before them, where each task would read it as it lies.
_SHARED_ROWS = 1024


def copy_pays(op: LinalgOp, access: Access, at: int, machine: Machine) -> bool:
    """A run-time operand is copied where its lanes do not lie together, or where many rows reuse a strided panel."""
    if at != len(access.dims) - 1:
        return True  # where sizes are known at run time only, by a task of its own
    if is_dynamic(access.value):
        return False
    reuse = op.reuse(access) >= FEW_ROWS
    return reuse and (not op.welded or _evicts(op, access, machine) or is_shared(op, access))


def is_shared(op: LinalgOp, access: Access) -> bool:
    """Whether tasks of several nests read a lane operand from outside so often that a copy before them costs nothing.

    It begins anywhere, as the caller has it: half of its vectors then lie across two cache lines.
    """
    if not (op.welded and access.pure and op.reuse(access) >= _SHARED_ROWS and decisions.TASK.on(op.op)):
        return False
    return not (is_made_inside(op, access) or op.dynamic or is_dynamic(access.value))


def is_made_inside(op: LinalgOp, access: Access) -> bool:
    """Whether an operand's maker is in the task of its reader: no task between them can copy it."""
    made = maker(access.value)
    while made is not None and made.name.startswith("tensor.") and len(made.operands):  # another view of it
        made = maker(made.operands[0])
    both = made is not None and decisions.TASK.on(made) and decisions.TASK.on(op.op)
    return both and decisions.TASK.read(made) == decisions.TASK.read(op.op)


def _evicts(op: LinalgOp, access: Access, machine: Machine) -> bool:
    """Whether the steps of a panel share so few sets of the L1 cache, a large power of two apart, that none stays."""
    step = max(op.reductions)
    near = resident_lines(access, step, machine)
    return near is not None and near <= _FEW_SETS * machine.l1_ways and near < op.extents[step]
