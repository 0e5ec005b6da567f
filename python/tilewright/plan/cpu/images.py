# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of contractions with constant weights whose rows are several loops: convolutions over images.

The weights are packed in panels of the register tile's lanes. A panel is read once per register tile of rows, so tiles
should be as tall as the registers allow: where a line of the image is shorter, several lines make one tile. Tasks keep
the order panels, then rows: a panel stays in the L2 cache (in L1 where it is small) while the image passes by. Where
all panels fit, tasks cut the image; otherwise they cut the weights, so that each weight comes from memory once (the
reasoning of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008, section 4, with the image
in the role of the streamed operand).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from tilewright.ir.structure import LinalgOp
from tilewright.plan.model.tiles import ENOUGH_TASKS, Machine

#: Steps of a window that one round of its innermost loop takes: each is code of its own.
_WINDOW = 8


def stacked_lines(
    op: LinalgOp, rows: Sequence[int], row: int, register: list[int], limit: int, vectors: int, machine: Machine
) -> None:
    """Lets a register tile cover several whole lines of `row` where one line does not fill the registers.

    Sets the size of the loop next to `row` among `rows` in `register`, which may stay 1.
    """
    width = op.extents[row]
    outer = [d for d in rows if d != row and op.extents[d] > 1]
    if register[row] != width or not outer:
        return

    def tile(lines: int) -> float:
        count = lines * width
        busy = max(count * vectors, machine.chains)
        return busy + machine.rate("operand_load") * count + machine.rate("weight_load") * vectors

    def cost(lines: int) -> float:
        whole, rest = divmod(op.extents[outer[-1]], lines)
        return whole * tile(lines) + (tile(rest) if rest else 0)

    choices = range(1, min(op.extents[outer[-1]], limit // width) + 1)
    register[outer[-1]] = min(choices, key=lambda lines: (round(cost(lines), 3), lines), default=1)


def weights_stay(op: LinalgOp, lane: int, register: Sequence[int], l2_bytes: int) -> bool:
    """Whether all packed weights of an f32 contraction stay in the L2 cache beside the image."""
    panels = ceil(op.extents[lane] / register[lane])
    return panels * 4 * prod(op.extents[d] for d in op.reductions) * register[lane] <= l2_bytes // 4


def image_task(op: LinalgOp, rows: Sequence[int], lane: int, register: Sequence[int], machine: Machine) -> list[int]:
    """Sizes of a task: the image is cut where all weights stay in L2, else the weights first.

    Where a run brings the number of images, it may bring one.
    """
    task = list(op.extents)
    depth = prod(op.extents[d] for d in op.reductions)
    panels = ceil(op.extents[lane] / register[lane])
    panel_bytes = 4 * depth * register[lane]
    for d in op.parallel:
        if d != lane and d not in rows:
            task[d] = 1
    count = prod(ceil(e / t) for d, (e, t) in enumerate(zip(op.extents, task, strict=True)) if d not in op.dynamic)
    near = weights_stay(op, lane, register, machine.l2_bytes)
    if not near:
        keep = max(min(machine.l2_bytes // 4 // panel_bytes, panels * count // ENOUGH_TASKS), 1)
        task[lane] = min(keep * register[lane], op.extents[lane])
        count *= ceil(panels / keep)
    least = machine.count("image_task_macs")
    _cut_rows(task, register, rows, least if near else max(prod(task) * count // ENOUGH_TASKS, least))
    return task


def _cut_rows(task: list[int], register: Sequence[int], rows: Sequence[int], budget: int) -> None:
    """Cuts the loops of the image evenly, outermost first, down to `budget` multiply-adds."""
    for d in rows:
        parts = ceil(prod(task) / budget)
        if parts <= 1:
            return
        size = max(ceil(task[d] / parts), 1)
        task[d] = min(ceil(size / register[d]) * register[d], task[d])
        if size > register[d]:
            return  # as even as whole lines allow


def window_tiling(
    op: LinalgOp, row: int, lane: int, register: Sequence[int], machine: Machine
) -> tuple[list[int], list[int]]:
    """Task sizes and traversal order where both operands have the lanes: depthwise convolutions.

    Each input is used by a few neighbours only, so the order is that of memory: lanes innermost, then the row of the
    image. A task is some lines, all channels: what it reads of its neighbours' input is a small part. The loop of the
    window along `row` is the innermost one.
    """
    others = [d for d in op.parallel if d not in (row, lane)]
    task = list(op.extents)
    budget = max(prod(op.extents) // ENOUGH_TASKS, machine.count("window_task_macs"))
    _cut_rows(task, register, [*others, row] if row != lane else others, budget)
    along = {d for access in op.inputs for uses in access.uses if row in uses for d in uses}
    return task, [*others, row, lane, *sorted(op.reductions, key=lambda d: (d in along, d))]


def channel_register(op: LinalgOp, row: int, lane: int, machine: Machine) -> list[int]:
    """The register tile of a window over places whose channels lie side by side.

    Places along `row` share what the window reads of them: beside the sums, all but one of them stay in registers, and
    a vector of the filter. One vector of channels over many places loads the least; short lines take two.
    """
    register = [1] * op.rank
    vectors = 1 if op.extents[row] > machine.registers // 4 else min(2, ceil(op.extents[lane] / machine.lanes))
    register[lane] = min(op.extents[lane], vectors * machine.lanes)
    limit = max((machine.registers - 2) // (2 * vectors), 1)
    register[row] = ceil(op.extents[row] / ceil(op.extents[row] / limit))
    return register


def window_unroll(op: LinalgOp, order: Sequence[int]) -> list[int] | None:
    """Steps per round of the innermost loop of a window: all, so that what they share is loaded once."""
    sizes = [1] * op.rank
    sizes[order[-1]] = op.extents[order[-1]]
    return sizes if 1 < sizes[order[-1]] <= _WINDOW else None


def plane_tiling(op: LinalgOp, lane: int, machine: Machine) -> tuple[list[int], list[int], list[int]]:
    """Task, register tile and order where lanes run along the lines of a window: some lines at once.

    Lines that the window shares between results are loaded once: the loop down the window is the innermost one, and the
    lines that it needs again stay in registers beside the sums and the filter.
    """
    register = [1] * op.rank
    vectors = min(2, ceil(op.extents[lane] / machine.lanes))
    register[lane] = min(op.extents[lane], vectors * machine.lanes)
    others = [d for d in op.output.dims if d is not None and d != lane and op.extents[d] > 1]
    if not others:
        return window_tiling(op, lane, lane, register, machine)[0], register, [*op.parallel, *sorted(op.reductions)]
    row = others[-1]
    taps = prod(op.extents[d] for d in op.reductions)
    kept = taps if taps <= machine.registers // 3 else 1
    register[row] = min(op.extents[row], max((machine.registers - 2 - kept + vectors) // (2 * vectors), 8 // vectors))
    task, order = window_tiling(op, row, lane, register, machine)
    return task, register, order
