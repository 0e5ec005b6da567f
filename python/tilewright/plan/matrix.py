# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of products that a matrix unit makes (x86's AMX: eight registers of 16 rows of 64 bytes).

Four registers hold 2x2 blocks of sums, which two blocks of rows and two of lanes feed: each load is used twice, and a
product takes as long as two loads that hit L1 (Intel 64 and IA-32 Architectures Optimization Reference Manual, section
on Intel AMX). With one block of rows, four of lanes share it. A task's rows and lanes stay in the L2 cache together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import TYPE_CHECKING

from tilewright.plan.structure import LinalgOp
from tilewright.plan.tiles import ENOUGH_TASKS, Machine, Tiling, even

if TYPE_CHECKING:
    from tilewright.plan.dots import Dot
    from tilewright.plan.products import Roles

#: Rows and lanes of a task, at most: more share no more work, and tasks should be many.
_TASK = 256
#: Lanes of a block.
_BLOCK = 16
#: Bytes of a group.
_GROUP_BYTES = 4


def tile_matrix(op: LinalgOp, roles: Roles, dot: Dot, machine: Machine) -> Tiling:
    """Register tiles of 2x2 blocks (1x4 where rows are few), and tasks of which both factors stay in the L2 cache."""
    assert dot.blocks is not None and roles.row is not None
    mma, register = [1] * op.rank, [1] * op.rank
    rows, lanes = op.extents[roles.row], op.extents[roles.lane]
    mma[roles.row], mma[roles.lane], mma[dot.depth] = dot.blocks
    tall = 2 if rows >= 2 * mma[roles.row] else 1
    register[roles.row] = tall * mma[roles.row]
    register[roles.lane] = min(lanes, 4 // tall * mma[roles.lane])
    register[dot.depth] = mma[dot.depth]
    task = [1 if d in op.parallel else e for d, e in enumerate(op.extents)]
    bytes_each = _GROUP_BYTES // dot.group * prod(op.extents[d] for d in op.reductions)
    most = min(_TASK, machine.l2_bytes // 4 // bytes_each)
    for d in (roles.row, roles.lane):
        # Rows read the lanes' panel, which is copied once for each task: all of them, then.
        limit = rows if dot.copied and d == roles.row else most
        task[d] = even(op.extents[d], max(limit // register[d], 1) * register[d], register[d])
    _share(op, (roles.lane,) if dot.copied else (roles.lane, roles.row), task, register)
    if rows % mma[roles.row]:
        task[roles.row] = rows  # the last rows are computed twice, by the task that has those before
    outer = [d for d in op.parallel if d not in (roles.row, roles.lane)]
    return Tiling(task, register, [*outer, roles.lane, roles.row, *sorted(op.reductions)], mma=mma)


def _share(op: LinalgOp, dims: tuple[int, ...], task: list[int], register: list[int]) -> None:
    """Halves tasks, the longer side first, until there are enough."""
    while prod(ceil(e / t) for e, t in zip(op.extents, task, strict=True)) < ENOUGH_TASKS:
        d = max(dims, key=lambda d: task[d])
        if task[d] <= register[d]:
            return
        task[d] = even(task[d], max(task[d] // 2 // register[d], 1) * register[d], register[d])


def copy_in_groups(tiling: Tiling, loops: Sequence[int | None], group: int) -> Tiling:
    """The copy of a task's part of a run-time operand; `loops` are its dimensions, lanes and depth last."""
    task = [1 if d is None else tiling.task[d] for d in loops]
    register = [1] * len(task)
    register[-2:] = [min(task[-2], 2 * _BLOCK), group]
    return Tiling(task, register, list(range(len(task))))
