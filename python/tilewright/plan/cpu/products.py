# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles, layouts, blocks and prefetches of matrix products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, prod

from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, is_dynamic
from tilewright.plan.cpu import blocking
from tilewright.plan.cpu.copies import FEW_ROWS, copy_pays, is_made_inside, is_shared
from tilewright.plan.cpu.dot_product import Dot, dot_of
from tilewright.plan.cpu.gemv import FEW_VECTORS, stream_rows
from tilewright.plan.cpu.images import (
    channel_register,
    image_task,
    plane_tiling,
    stacked_lines,
    weights_stay,
    window_tiling,
    window_unroll,
)
from tilewright.plan.cpu.matrix import copy_in_groups, tile_matrix
from tilewright.plan.cpu.register_tiles import resident_rows, row_limit, row_tile, vectors_of
from tilewright.plan.cpu.row_loops import row_loops, tile_row_loops
from tilewright.plan.cpu.skinny_gemm import few_columns, tile_columns
from tilewright.plan.model.tiles import ENOUGH_TASKS, Machine, Tiling, cut

#: Lanes of a reduction that fill a vector.
_LEAST_LANES = 16
#: Rows that fill a register tile.
_LEAST_ROWS = 8
#: Steps of a reduction that one round of its loop takes.
_UNROLL = 4
#: Register tiles of rows, at most, that share a panel of weights where a run brings their number: the panel's way from
#: the L3 cache then costs a few percent of their time, and rows that are left balance the cores.
_SHARING = 32
#: Rows from which on each core should get some tasks.
_MANY_ROWS = 512
#: Tasks that still occupy a few cores, where each more repeats work.
_FEW_TASKS = 8


@dataclass(frozen=True)
class Roles:
    """Loops of a contraction: `lane` runs along vectors, `row` along accumulators; either may be missing."""

    lane: int
    row: int | None
    lane_operand: int | None


def contraction_roles(op: LinalgOp) -> Roles:
    """Finds which loop becomes the lanes (contiguous in the result) and which the rows of the register tile."""
    first, second = (a.loops for a in op.inputs[:2])
    lane = next((d for d in reversed(op.output.dims) if d is not None and op.extents[d] > 1), None)
    if lane is None:
        lane = op.output.dims[-1] if op.output.dims and op.output.dims[-1] is not None else op.rank - 1
    in_first, in_second = lane in first, lane in second
    lane_operand = None if in_first == in_second else int(in_second)
    if lane_operand is None:
        rows = [d for d in op.parallel if d != lane and d in first and d not in second]
    else:
        other = op.inputs[1 - lane_operand].loops
        own = op.inputs[lane_operand].loops
        rows = [d for d in op.parallel if d in other and d not in own]
    rows = [d for d in rows if op.extents[d] > 1]
    known = [d for d in rows if d not in op.dynamic]
    if prod(op.extents[d] for d in known) >= _LEAST_ROWS:
        rows = known  # of images there may be one
    return Roles(lane, max(rows, key=lambda d: (min(op.extents[d], _LEAST_ROWS), d), default=None), lane_operand)


def _register_tile(op: LinalgOp, roles: Roles, machine: Machine, lists: bool = False) -> tuple[list[int], int, int]:
    """Rows x lanes of accumulators, the most rows that registers allow, and vectors in a row."""
    register = [1] * op.rank
    resident = None if roles.row is None else resident_rows(op, roles.row, roles.lane_operand, machine)
    vectors = vectors_of(op, roles.row, roles.lane, machine, resident, lists)
    register[roles.lane] = min(op.extents[roles.lane], vectors * machine.lanes)
    vectors = ceil(register[roles.lane] / machine.lanes)
    limit = (machine.registers - vectors - 2) // vectors
    if roles.row is not None:
        limit = row_limit(op, vectors, machine)
        if resident is not None:
            limit = min(limit, resident)
        many = roles.row in op.dynamic
        register[roles.row] = limit if many else row_tile(op.extents[roles.row], limit, vectors, machine)
    return register, limit, vectors


def _tile_along_data(op: LinalgOp, roles: Roles, machine: Machine, weights: Weights) -> Tiling | None:
    """A product whose lanes run along the data that comes with the run, as it lies; None for all others."""
    if (columns := few_columns(op, weights)) is not None:
        return tile_columns(op, columns, machine)
    if roles.row is None and roles.lane_operand is not None and not op.inputs[roles.lane_operand].pure:
        task, register, order = plane_tiling(op, roles.lane, machine)
        return Tiling(task, register, order, window_unroll(op, order))
    return _tile_row_sums(op, roles, machine) if _sums_lanes(op, weights) else None


def tile_contraction(op: LinalgOp, machine: Machine, weights: Weights) -> Tiling:
    """A matrix product, batched product or convolution: rows x lanes accumulators, one step of the reduction."""
    roles = contraction_roles(op)
    if (tiling := _tile_along_data(op, roles, machine, weights)) is not None:
        return tiling
    dot = dot_of(op, roles, machine, weights)
    if dot is not None:
        return tile_matrix(op, roles, dot, machine) if dot.blocks else _tile_dots(op, roles, dot, machine)
    loops = row_loops(op, roles, _lane_access(op, roles), weights, machine)
    register, limit, vectors = _register_tile(op, roles, machine, loops is not None)
    if loops is not None:
        tiling = tile_row_loops(op, loops, register, machine)
        tiling.unroll = _unroll(op, tiling.order)
        return tiling
    if roles.row is not None:
        rows = [d for d in _image_rows(op, roles, weights) if d not in op.dynamic]
        if len(rows) > 1 and roles.row in rows:
            stacked_lines(op, rows, roles.row, register, limit, vectors, machine)
            task = image_task(op, rows, roles.lane, register, machine)
            batch = [d for d in op.parallel if d != roles.lane and d not in rows]
            order = [*batch, roles.lane, *rows, *sorted(op.reductions)]
            # Longer rounds share prefetches, but where accumulators take nearly all registers they spill a few.
            near = weights_stay(op, roles.lane, register, machine.l2_bytes)
            return Tiling(task, register, order, None if near else _unroll(op, order))
        if roles.lane_operand is None and not all(a.pure for a in op.inputs):
            register = channel_register(op, roles.row, roles.lane, machine)
            task, order = window_tiling(op, roles.row, roles.lane, register, machine)
            return Tiling(task, register, order, window_unroll(op, order))
    copied = is_copied(op, roles, machine, weights)
    outer = [d for d in op.parallel if d not in (roles.lane, roles.row)]
    panel = [roles.lane] if roles.row is None else [roles.lane, roles.row]
    reductions = sorted(op.reductions)
    blocks = _product_blocks(op, roles, register, machine, weights)
    if blocks is None or roles.row is None:
        task = _contraction_task(op, roles, register, machine, copied)
        if copied:
            panel.reverse()  # rows come from far, and once; the copied panels are near
        order = outer + panel + reductions
        tiling = Tiling(task, register, order, _unroll(op, order))
        few = roles.row is None or (op.extents[roles.row] < FEW_ROWS and not outer and not op.welded and not op.dynamic)
        if few and not copied:
            stream_rows(op, _lane_access(op, roles), (roles.row, roles.lane), tiling, machine, weights)
        return tiling
    task = list(op.extents)
    cut(task, register, outer, machine.task_macs)
    task[roles.row], task[roles.lane] = blocks.rows, blocks.columns
    order = outer + (panel[::-1] if blocks.rows_outside else panel) + reductions
    block = [*op.extents]
    block[reductions[0]] = blocks.depth
    grid = [*outer, roles.row, roles.lane] if not blocks.rows_outside else None
    return Tiling(task, register, order, _unroll(op, order), block if block != [*op.extents] else None, grid)


def _tile_dots(op: LinalgOp, roles: Roles, dot: Dot, machine: Machine) -> Tiling:
    """A product with packed weights whose steps take a group of the reduction at once."""
    register, _, _ = _register_tile(op, roles, machine)
    register[dot.depth] = dot.group
    mma = [1] * op.rank
    mma[roles.lane], mma[dot.depth] = machine.lanes, dot.group
    task = _contraction_task(op, roles, register, machine, dot.copied)
    rows = [] if roles.row is None else [roles.row]
    outer = [d for d in op.parallel if d not in (roles.lane, roles.row)]
    order = [*outer, *rows, roles.lane] if dot.copied else [*outer, roles.lane, *rows]
    order.extend(sorted(op.reductions))
    return Tiling(task, register, order, _unroll(op, order, register[order[-1]]), mma=mma)


def _sums_lanes(op: LinalgOp, weights: Weights) -> bool:
    """Whether few vectors meet the rows of a run-time matrix that lie along the reduction: keys that meet a query.

    Lanes then run along the reduction, and are summed at the end: that costs less than to transpose the matrix.
    """
    access = _lane_access(op, contraction_roles(op))
    along = access.dims[-1] if access is not None and access.dims else None
    if access is None or weights.only(access.value) or along in op.dynamic:
        return False
    others = [d for d in op.parallel if d not in access.loops]
    if op.dynamic.intersection(others):
        return False
    vectors = prod(op.extents[d] for d in others)
    return vectors <= FEW_VECTORS and along in op.reductions and op.extents[along] >= _LEAST_LANES


def _tile_row_sums(op: LinalgOp, roles: Roles, machine: Machine) -> Tiling:
    """Some rows of the matrix at a time, read as they lie, for all vectors."""
    access = _lane_access(op, roles)
    assert access is not None and access.dims[-1] is not None
    along, loops = access.dims[-1], access.loops
    register = [1] * op.rank
    register[along] = min(op.extents[along], 2 * machine.lanes)
    register[roles.lane] = min(op.extents[roles.lane], machine.count("row_streams"))
    task = _contraction_task(op, roles, register, machine, copied=False)
    batch = [d for d in op.parallel if d in loops and d != roles.lane]
    vectors = [d for d in op.parallel if d not in loops]
    return Tiling(task, register, [*batch, roles.lane, *vectors, *sorted(op.reductions, key=lambda d: d == along)])


def _product_blocks(
    op: LinalgOp, roles: Roles, register: list[int], machine: Machine, weights: Weights
) -> blocking.Blocks | None:
    """Cache blocks of a product of matrices, or of a batch of them; None for windows and for products of vectors.

    Where it is not known how many rows share the weights, panels of them stay while all rows at hand pass.
    """
    access = _lane_access(op, roles)
    if roles.row is None or access is None or len(op.reductions) != 1:
        return None
    if roles.row in op.dynamic and weights.only(access.value):
        return None
    batch = [d for d in op.parallel if d not in (roles.row, roles.lane)]
    if any(d not in a.loops for d in batch for a in op.inputs) or not all(a.pure for a in op.inputs):
        return None
    product = blocking.Product(
        rows=op.extents[roles.row],
        columns=op.extents[roles.lane],
        depth=prod(op.extents[d] for d in op.reductions),
        batch=prod(op.extents[d] for d in batch),
        row_tile=register[roles.row],
        lane_tile=register[roles.lane],
        machine=machine,
    )
    if min(op.extents) == 0:
        return None
    if weights.only(access.value):
        return blocking.block_packed(product)
    return blocking.block_copied(product) if is_copied(op, roles, machine, weights) else None


def _unroll(op: LinalgOp, order: list[int], step: int = 1) -> list[int] | None:
    """Steps per round of the innermost reduction: counter and branch, and prefetches, are shared by four of them.

    Weights that share a byte are all of a round: each takes its bits by shifts that are known then.
    """
    sizes = [1] * op.rank
    if op.unpacks and 1 < op.extents[order[-1]] < 2 * _UNROLL:
        sizes[order[-1]] = op.extents[order[-1]]
        return sizes
    sizes[order[-1]] = _UNROLL
    return sizes if op.extents[order[-1]] // step >= 2 * _UNROLL else None


def prefetched(op: LinalgOp, tiling: Tiling, machine: Machine) -> list[int]:
    """The inputs of a contraction whose next tile is fetched while one is in use.

    It is the operand that stays while the loops inside of its own run: packed weights under all rows, or rows under the
    copied panels of a task, be it a single one. It comes from far, is used at once by every tile, and the other streams
    keep the hardware from seeing it come.
    """
    roles = contraction_roles(op)
    if roles.row is None or roles.lane_operand is None or tiling.unroll is None or op.unpacks:
        return []
    parallel = [d for d in tiling.order if d not in op.reductions]
    rows = [d for d in parallel if d not in op.inputs[roles.lane_operand].loops]
    inner = rows if parallel[-1] != roles.lane else [roles.lane]
    if inner == [roles.lane] and rows and tiling.task[roles.lane] <= tiling.register[roles.lane]:
        inner = []  # all lanes are one tile: each tile of rows is new, and used once
    if not inner and tiling.task[roles.row] > tiling.register[roles.row]:
        return [1 - roles.lane_operand]
    if all(tiling.task[d] <= tiling.register[d] for d in inner):
        return []
    if inner == rows and roles.row in op.dynamic and op.is_step:
        return []  # the step before has just read them; few rows have no time to fetch anything beside
    if inner == rows and len(rows) > 1 and weights_stay(op, roles.lane, tiling.register, machine.l2_bytes):
        return []
    return [1 - roles.lane_operand if inner == [roles.lane] else roles.lane_operand]


def _image_rows(op: LinalgOp, roles: Roles, weights: Weights) -> list[int]:
    """The loops of the rows of a product with packed weights, `roles.row` last."""
    access = _lane_access(op, roles)
    if access is None or roles.row is None or not weights.only(access.value):
        return []
    own = access.loops
    rows = [d for d in op.parallel if d not in own and d != roles.row and op.extents[d] > 1]
    return [*rows, roles.row]


def _contraction_task(op: LinalgOp, roles: Roles, register: list[int], machine: Machine, copied: bool) -> list[int]:
    """Cuts batch loops first, then panels of lanes, then rows: the packed panel of a task stays in L2."""
    task = list(op.extents)
    batch = [d for d in op.parallel if all(d in a.loops for a in op.inputs) and d != roles.lane]
    rows = [d for d in op.parallel if d not in batch and d != roles.lane]
    if roles.row is None and not rows:
        # A product of one row reads each element once: bandwidth is what more cores bring.
        cut(
            task,
            register,
            [*batch, roles.lane],
            max(machine.count("least_task_macs"), min(machine.task_macs, op.points // ENOUGH_TASKS)),
        )
        return task
    cut(task, register, batch, machine.task_macs)
    macs = prod(task)
    if roles.lane not in batch and macs > machine.task_macs:
        panels = max(ceil(task[roles.lane] / register[roles.lane]), 1)
        per_panel = macs // panels
        keep = max(min(machine.task_macs // max(per_panel, 1), panels // ENOUGH_TASKS), 1)
        if copied:
            depth = prod(op.extents[d] for d in op.reductions)
            keep = max(min(machine.l2_bytes // 4 // (4 * depth * register[roles.lane]), panels // _FEW_TASKS), 1)
        task[roles.lane] = min(task[roles.lane], keep * register[roles.lane])
    if rows:
        count = prod(ceil(e / t) for e, t in zip(op.extents, task, strict=True))
        work = (
            machine.task_macs
            if count < ENOUGH_TASKS
            else max(machine.task_macs, machine.l2_bytes // 8 * register[roles.lane])
        )
        if copied:
            # Each task copies its panels: many rows must share the work.
            work = (
                macs if count >= _FEW_TASKS else max(machine.task_macs, prod(task) // prod(task[d] for d in rows) * 128)
            )
        if roles.row in op.dynamic:  # there may be few rows of each kind: let the ones at hand share a panel
            sharing = _sharing(op, roles, task, register, machine)
            work = sharing * register[roles.row] * prod(task[d] for d in (roles.lane, *op.reductions))
        cut(task, register, rows, work)
    return task


def _sharing(op: LinalgOp, roles: Roles, task: list[int], register: list[int], machine: Machine) -> int:
    """Register tiles of rows that share a panel: their rows stay in half of L2, and many rows give each core tasks."""
    assert roles.row is not None
    tall = register[roles.row]
    near = machine.l2_bytes // 2 // (4 * tall * prod(op.extents[d] for d in op.reductions))
    panels = ceil(op.extents[roles.lane] / task[roles.lane])
    share = _MANY_ROWS * panels // (4 * machine.cores * tall)
    return max(min(_SHARING, near, share), 1)


def align_lanes(op: LinalgOp, tiling: Tiling) -> None:
    """Lanes of a contraction lie in panels of the register tile's width: where tasks cut them, each starts at one."""
    if op.kind is not Kind.CONTRACTION:
        return
    lane = contraction_roles(op).lane
    if tiling.task[lane] < op.extents[lane]:
        width, step = tiling.register[lane], gcd(tiling.register[lane], tiling.task[lane])
        tiling.register[lane] = max(w for w in range(step, width + 1, step) if tiling.task[lane] % w == 0)


def _lane_access(op: LinalgOp, roles: Roles) -> Access | None:
    """The operand that alone holds the lanes, where it can be laid out anew: a dimension of it is the lane loop."""
    if roles.lane_operand is None:
        return None
    access = op.inputs[roles.lane_operand]
    return access if access.pure and roles.lane in access.dims else None


def is_copied(op: LinalgOp, roles: Roles, machine: Machine, weights: Weights) -> bool:
    """Whether each task copies its part of the lane operand: one known at run time only, where it pays."""
    access = _lane_access(op, roles)
    if access is None or weights.only(access.value) or _sums_lanes(op, weights):
        return False
    return copy_pays(op, access, access.dims.index(roles.lane), machine)


def layouts(op: LinalgOp, tiling: Tiling, machine: Machine, weights: Weights) -> tuple[list[str], list[str]]:
    """Layout and copy tile per input of a contraction: `unit` where the operand is read as it lies."""
    kinds, copies = ["unit"] * len(op.inputs), ["unit"] * len(op.inputs)
    roles = contraction_roles(op)
    if (columns := few_columns(op, weights)) is not None:
        kinds[columns.operand] = f"#tile.layout<perm = {columns.order}>"
        return kinds, copies
    dot = dot_of(op, roles, machine, weights) if tiling.mma else None
    if dot is not None and roles.lane_operand is not None:
        rows = op.inputs[1 - roles.lane_operand]
        if rows.dims[-1] != dot.depth:  # weights: the groups that they lend lie together
            at = rows.dims.index(dot.depth)
            kinds[1 - roles.lane_operand] = f"#tile.layout<inner = [{at}], tiles = [{dot.group}]>"
    access = _lane_access(op, roles)
    if access is None:
        return kinds, copies
    assert roles.lane_operand is not None
    at = access.dims.index(roles.lane)
    rank = len(access.dims)
    if weights.only(access.value) or dot is not None:
        rest = [t for t in range(rank) if t != at]
        block = tiling.register[roles.lane]
        inner, tiles = [at], [block]
        if dot is not None:
            inner.append(access.dims.index(dot.depth))
            tiles.append(dot.group)
        kinds[roles.lane_operand] = f"#tile.layout<perm = {[at, *rest]}, inner = {inner}, tiles = {tiles}>"
        kinds[2:] = _beside(op, roles.lane, block)
        if dot is not None and not weights.only(access.value):
            loops = [d for d in access.dims if d not in (roles.lane, dot.depth)]
            copies[roles.lane_operand] = str(copy_in_groups(tiling, [*loops, roles.lane, dot.depth], dot.group))
    elif is_copied(op, roles, machine, weights) and not (copies_apart(op, tiling) and is_made_inside(op, access)):
        block = tiling.register[roles.lane]
        perm = [t for t in range(rank) if t != at]
        if tiling.task[roles.lane] > block and not is_dynamic(access.value):
            kinds[roles.lane_operand] = f"#tile.layout<perm = {[at, *perm]}, inner = [{at}], tiles = [{block}]>"
            copies[roles.lane_operand] = str(_panel_tile(op, access, perm, tiling, machine))
        else:
            kinds[roles.lane_operand] = f"#tile.layout<perm = {[*perm, at]}>"
            copies[roles.lane_operand] = str(_copy_tile(op, access, [*perm, at], tiling, machine))
    return kinds, copies


def _beside(op: LinalgOp, lane: int, block: int) -> list[str]:
    """The layouts of what weights are scaled by: in panels as they are, so that both stream by."""
    kinds = []
    for access in op.inputs[2:]:
        at = access.dims.index(lane) if lane in access.dims else -1
        rest = [t for t in range(len(access.dims)) if t != at]
        kinds.append("unit" if at < 0 else f"#tile.layout<perm = {[at, *rest]}, inner = [{at}], tiles = [{block}]>")
    return kinds


def copies_apart(op: LinalgOp, tiling: Tiling) -> bool:
    """Whether run-time operands are copied by tasks of their own: one cannot know how much it would copy.

    Or all tasks would copy the same.
    """
    lane = contraction_roles(op).lane_operand
    if lane is None or not is_dynamic(op.inputs[lane].value):
        return lane is not None and is_shared(op, op.inputs[lane])
    return not op.welded or any(d in tiling.whole for d in op.inputs[lane].loops)


def _copy_tile(op: LinalgOp, access: Access, perm: list[int], tiling: Tiling, machine: Machine) -> Tiling:
    if copies_apart(op, tiling):
        return _copy_task_tile(op, access, perm, machine)
    dims = [access.dims[t] for t in perm]
    task = [1 if d is None else tiling.task[d] for d in dims]
    register = [1] * len(perm)
    register[-1] = min(task[-1], machine.wide)
    contiguous = perm.index(len(perm) - 1)
    if contiguous != len(perm) - 1:
        register[-1] = min(task[-1], machine.lanes)
        register[contiguous] = min(task[contiguous], machine.lanes)
    return Tiling(task, register, list(range(len(perm))))


def _panel_tile(op: LinalgOp, access: Access, rest: list[int], tiling: Tiling, machine: Machine) -> Tiling:
    """The copy of a run-time operand into panels: `rest` are its dimensions but the lanes', which it may transpose."""
    (lane,) = (d for d in access.dims if d is not None and access.dims.index(d) not in rest)
    block, apart = tiling.register[lane], copies_apart(op, tiling)
    sizes = op.extents if apart else tiling.task
    task = [*(1 if (d := access.dims[t]) is None else sizes[d] for t in rest), sizes[lane]]
    register = [1] * len(task)
    register[-1] = min(block, machine.wide)
    if len(rest) and rest[-1] == len(access.dims) - 1:  # lanes do not lie together: transpose in registers
        register[-1] = min(block, machine.lanes)
        register[-2] = min(task[-2], machine.lanes)
    if apart:  # threads share it; none of its tasks takes a part of a panel's row
        cut(task, register, range(len(rest)), machine.budget(prod(task)))
    return Tiling(task, register, list(range(len(task))))


def _copy_task_tile(op: LinalgOp, access: Access, perm: list[int], machine: Machine) -> Tiling:
    """A copy that has tasks of its own: squares of vectors, transposed in registers."""
    extents = [1 if (d := access.dims[t]) is None else op.extents[d] for t in perm]
    register = [1] * len(perm)
    for t in (len(perm) - 1, perm.index(len(perm) - 1)):
        register[t] = min(extents[t], machine.lanes)
    task = list(extents)
    cut(task, register, range(len(perm)), machine.budget(prod(extents)))
    return Tiling(task, register, list(range(len(perm))))


def tile_products(op: LinalgOp, rows: list[int], count: int, machine: Machine, weights: Weights) -> list[int]:
    """The task's sizes along the common rows of `count` products of the size of `op`: together they are a task's work.

    With few rows the lane operand's bytes are the work, and memory bandwidth is what more cores bring.
    """
    tiling = tile_contraction(op, machine, weights)
    depth = prod(op.extents[d] for d in op.reductions)
    work = max(machine.count("least_task_macs"), min(machine.task_macs, op.points * count // ENOUGH_TASKS)) // (
        count * depth
    )
    roles = contraction_roles(op)
    if len(_image_rows(op, roles, weights)) > 1:
        return [tiling.task[d] for d in rows]  # more tasks would read weights again
    for d in [*(d for d in rows if d not in (roles.row, roles.lane)), roles.lane, roles.row]:
        if d in rows:
            cut(tiling.task, tiling.register, [d], work * depth)
    return [tiling.task[d] for d in rows]
