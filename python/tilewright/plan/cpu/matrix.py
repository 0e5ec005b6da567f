# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of products that a matrix unit makes (x86's AMX: eight registers of 16 rows of 64 bytes).

Four registers hold 2x2 blocks of sums, which two blocks of rows and two of lanes feed: each load is used twice, and a
product takes as long as two loads that hit L1 (Intel 64 and IA-32 Architectures Optimization Reference Manual, section
on Intel AMX). With one block of rows, four of lanes share it. One operand, or a part of it, stays in the L2 cache
while the other streams by (Goto and van de Geijn, see blocking.py); tasks that share the part follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import TYPE_CHECKING

from tilewright.ir.structure import LinalgOp
from tilewright.plan.model.tiles import ENOUGH_TASKS, Machine, Tiling, even

if TYPE_CHECKING:
    from tilewright.plan.cpu.dot_product import Dot
    from tilewright.plan.cpu.products import Roles

#: Tasks of a core that each lay out their lanes of a run-time operand, for all rows.
_COPIES_PER_CORE = 2
#: Lanes of a block.
_BLOCK = 16
#: Bytes of a group.
_GROUP_BYTES = 4


def tile_matrix(op: LinalgOp, roles: Roles, dot: Dot, machine: Machine) -> Tiling:
    """Register tiles of 2x2 blocks (1x4 where rows are few), under which one operand stays in the L2 cache."""
    assert dot.blocks is not None and roles.row is not None
    mma, register = [1] * op.rank, [1] * op.rank
    mma[roles.row], mma[roles.lane], mma[dot.depth] = dot.blocks
    tall = 2 if op.extents[roles.row] >= 2 * mma[roles.row] else 1
    register[roles.row] = tall * mma[roles.row]
    register[roles.lane] = min(op.extents[roles.lane], 4 // tall * mma[roles.lane])
    register[dot.depth] = mma[dot.depth]
    outer = [d for d in op.parallel if d not in (roles.row, roles.lane)]
    whole = op.extents[roles.row] % mma[roles.row] != 0  # the last rows are computed twice, by those before them
    near, far = _near_and_far(op, roles, dot, machine, whole)
    task = [1 if d in outer else e for d, e in enumerate(op.extents)]
    if near == roles.lane or not whole:
        task[near] = _part(op, near, _near_points(op, dot, machine), register[near])
    if dot.copied:
        _share(op, (roles.lane,), task, register, _COPIES_PER_CORE * machine.cores)
    else:
        _share(op, (roles.lane,) if whole else (far, near), task, register, ENOUGH_TASKS)
    return Tiling(task, register, [*outer, far, near, *sorted(op.reductions)], mma=mma, grid=[*outer, near, far])


def _near_points(op: LinalgOp, dot: Dot, machine: Machine) -> int:
    """Rows or lanes that stay in the L2 cache: half of it, through the rest the other operand streams."""
    bytes_each = _GROUP_BYTES // dot.group * prod(op.extents[d] for d in op.reductions)
    return max(machine.l2_bytes // 2 // bytes_each, 1)


def _near_and_far(op: LinalgOp, roles: Roles, dot: Dot, machine: Machine, whole: bool) -> tuple[int, int]:
    """Which of rows and lanes stay near, under all of the others: what then comes from far is read least often."""
    row, lane = roles.row or 0, roles.lane
    if dot.copied or whole:
        return (lane, row) if dot.copied else (row, lane)
    most = _near_points(op, dot, machine)

    def far_points(near: int, far: int) -> int:
        return op.extents[near] + op.extents[far] * ceil(op.extents[near] / most)

    return (lane, row) if far_points(lane, row) <= far_points(row, lane) else (row, lane)


def _part(op: LinalgOp, d: int, most: int, register: int) -> int:
    """At most so many points of a loop, in parts of equal size."""
    return even(op.extents[d], max(most // register, 1) * register, register)


def _share(op: LinalgOp, dims: tuple[int, ...], task: list[int], register: list[int], enough: int) -> None:
    """Halves tasks until there are enough, along the first of `dims` as far as it goes."""
    for d in dims:
        while task[d] > register[d] and prod(ceil(e / t) for e, t in zip(op.extents, task, strict=True)) < enough:
            task[d] = _part(op, d, task[d] // 2, register[d])


def copy_in_groups(tiling: Tiling, loops: Sequence[int | None], group: int) -> Tiling:
    """The copy of a task's part of a run-time operand; `loops` are its dimensions, lanes and depth last."""
    task = [1 if d is None else tiling.task[d] for d in loops]
    register = [1] * len(task)
    block = tiling.register[loops[-2] or 0]
    register[-2:] = [max(d for d in range(1, min(block, 2 * _BLOCK) + 1) if block % d == 0), group]
    return Tiling(task, register, list(range(len(task))))
