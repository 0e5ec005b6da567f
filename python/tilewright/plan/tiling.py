# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides the tiles of each loop nest (`tile.rtile`) and the layouts of matrix operands (`tile.layouts`).

Tiles are constructed from the description of the machine, not searched (Roller's idea; its alignment rules and cost
model come with the next version of this pass): a register tile fills the vector registers, a task is large enough to
pay for its dispatch and small enough that the cores share the work evenly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from tilewright.devices import resolve
from tilewright.errors import UserError
from tilewright.mlir import ir
from tilewright.passes import Pass, located, option, register
from tilewright.plan import blocking
from tilewright.plan.images import image_task, plane_tiling, stacked_lines, weights_stay, window_tiling
from tilewright.plan.names import kernel_name
from tilewright.plan.roller.cost import Schedule, tile_loops
from tilewright.plan.roller.decide import Decider
from tilewright.plan.structure import Access, Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.plan.traffic import Levels, is_streamed

#: Functions that are one instruction.
_NATIVE = frozenset(f"math.{n}" for n in "absf absi ceil floor fma round roundeven trunc sqrt copysign".split())
#: Elements that a task of a memory-bound nest should cover: about 64 KB of f32.
_TASK_ELEMENTS = 16384
#: Elements of the rows of a task of several nests: what they hand on stays in the L1 cache (16 KB of f32).
_ROW_ELEMENTS = 4096
#: Multiply-adds of a task of a compute-bound nest.
_TASK_MACS = 1 << 20
#: Multiply-adds that are worth a dispatch: some microseconds with weights from the L2 cache, one vector of rows.
_LEAST_MACS = 1 << 15
#: Rows of a matrix that are read side by side: as many streams as prefetchers follow.
_STREAMS = 8
#: Bytes of a page: sums of as many columns stay in the L1 cache.
_PAGE = 4096
#: Ways of the L1 data cache (48 KB, both on Zen 5 and on recent Xeons).
_L1_WAYS = 12
#: Steps of a reduction that one round of its loop takes.
_UNROLL = 4
#: Tasks that still occupy a few cores, where each more repeats work.
_FEW_TASKS = 8
#: Tasks per kernel that let a few cores share the work evenly.
_ENOUGH_TASKS = 16


@dataclass(frozen=True)
class Machine:
    """What tiles depend on: f32 lanes of a vector register, number of registers, bytes of the L2 cache, cores."""

    lanes: int
    registers: int
    l2_bytes: int
    cores: int = 2

    @property
    def wide(self) -> int:
        """Lanes of a tile that is moved only: eight vectors at a time."""
        return 8 * self.lanes

    def lanes_for(self, members: Iterable[LinalgOp]) -> int:
        """Lanes of a memory-bound tile: many where bodies are short, few where functions fill the registers."""
        heavy = any(_has_function(op) for op in members)
        return 2 * self.lanes if heavy else self.wide


def _has_function(op: LinalgOp) -> bool:
    """Whether a body calls what becomes a polynomial: that many constants leave registers for two vectors only."""
    return any(
        inner.operation.name.startswith("math.") and inner.operation.name not in _NATIVE
        for inner in op.op.regions[0].blocks[0].operations
    )


@dataclass
class Tiling:
    """Sizes per loop at the task's level and in registers, and the traversal order.

    Products also have steps per round of the innermost loop, blocks of the reduction, and an order of tasks.
    """

    task: list[int]
    register: list[int]
    order: list[int]
    unroll: list[int] | None = None
    block: list[int] | None = None
    grid: list[int] | None = None

    def __str__(self) -> str:
        block = f"block = {self.block}, " if self.block else ""
        unroll = f", unroll = {self.unroll}" if self.unroll else ""
        return f"#tile.rtile<{block}l2 = {self.task}, register = {self.register}{unroll}, order = {self.order}>"


def tile_elementwise(op: LinalgOp, machine: Machine, wide: int) -> Tiling:
    """A nest without reductions: lanes along the contiguous loop of the result."""
    register = [1] * op.rank
    if op.rank:
        lane = op.output.dims[-1]
        lane = op.rank - 1 if lane is None else lane
        register[lane] = min(op.extents[lane], wide)
        row = _transposed_row(op, lane)
        if row is not None and not op.tables:
            register[lane] = min(op.extents[lane], machine.lanes)
            register[row] = min(op.extents[row], machine.lanes)
    task = list(op.extents)
    _cut(task, register, op.parallel, _budget(op.points))
    return Tiling(task, register, list(range(op.rank)))


def _transposed_row(op: LinalgOp, lane: int) -> int | None:
    """The loop that is contiguous in an input whose lanes are not: both are tiled and transposed in registers."""
    for access in op.inputs:
        last = access.dims[-1] if access.dims else None
        if last is not None and last != lane and lane in access.dims and op.extents[last] > 1:
            return last
    return None


def _budget(points: int) -> int:
    """Points per task of a memory-bound nest: enough tasks to share, none too small to pay for its dispatch."""
    return max(2048, min(_TASK_ELEMENTS, points // _ENOUGH_TASKS))


def _even(extent: int, size: int, multiple: int = 1) -> int:
    """The part when `extent` is cut evenly into as many parts as parts of `size` make, in multiples of `multiple`."""
    if size >= extent:
        return extent
    part = ceil(extent / ceil(extent / size))
    return min(ceil(part / multiple) * multiple, extent)


def _cut(task: list[int], register: list[int], dims: Iterable[int], budget: int) -> None:
    """Cuts `task` along `dims`, outermost first, until it covers at most `budget` points."""
    for d in dims:
        rest = prod(task) // max(task[d], 1)
        if prod(task) <= budget:
            return
        size = max(budget // max(rest, 1), 1)
        task[d] = _even(task[d], max(size // register[d], 1) * register[d], register[d])


def tile_reduce(op: LinalgOp, machine: Machine, wide: int) -> Tiling:
    """A nest that reduces: lanes along the loop that is contiguous in its largest input."""
    register = [1] * op.rank
    largest = max(op.inputs, key=lambda a: prod(op.extents[d] for d in a.loops), default=op.output)
    lane = largest.dims[-1] if largest.dims else None
    lane = op.rank - 1 if lane is None else lane
    register[lane] = min(op.extents[lane], wide)
    task = list(op.extents)
    _cut(task, register, op.parallel, _budget(op.points))
    inner = [d for d in op.parallel if d != lane] + ([lane] if lane in op.parallel else [])
    return Tiling(task, register, inner + sorted(op.reductions))


@dataclass(frozen=True)
class Roles:
    """Loops of a contraction: `lane` runs along vectors, `row` along accumulators; either may be missing."""

    lane: int
    row: int | None
    lane_operand: int | None


def contraction_roles(op: LinalgOp) -> Roles:
    """Finds which loop becomes the lanes (contiguous in the result) and which the rows of the register tile."""
    first, second = (a.loops for a in op.inputs)
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
    return Roles(lane, max(rows, key=lambda d: (min(op.extents[d], 8), d), default=None), lane_operand)


def _row_tile(extent: int, limit: int, vectors: int, latency: int = 8) -> int:
    """Rows of the register tile: the count in 1..limit with the fewest cycles per step of the reduction.

    A tile of r rows and v vectors issues r*v multiply-adds; below `latency` of them the pipes run dry. Loads of the
    lane operand (v per tile) are shared by the rows.
    """

    def cost(rows: int) -> float:
        def tile(r: int) -> float:
            return max(r * vectors, latency) + 0.25 * (r + vectors)

        whole, rest = divmod(extent, rows)
        return whole * tile(rows) + (tile(rest) if rest else 0)

    return min(range(1, min(extent, limit) + 1), key=lambda rows: (round(cost(rows), 3), -rows))


def _power_of_two_stride(op: LinalgOp, roles: Roles) -> bool:
    """Rows at a stride of a large power of two share a set of the L1 cache: no more of them stay than it has ways."""
    if roles.row is None or roles.lane_operand is None:
        return False
    access = op.inputs[1 - roles.lane_operand]
    shape = ir.RankedTensorType(access.value.type).shape
    stride = 1
    for size, uses in zip(reversed(shape), reversed(access.uses), strict=True):
        if roles.row in uses:
            return stride % 1024 == 0
        stride *= size
    return False


def tile_contraction(op: LinalgOp, machine: Machine, weights: Weights) -> Tiling:
    """A matrix product, batched product or convolution: rows x lanes accumulators, one step of the reduction."""
    roles = contraction_roles(op)
    if roles.row is None and roles.lane_operand is not None and not op.inputs[roles.lane_operand].pure:
        task, register, order = plane_tiling(op, roles.lane, machine.lanes)
        return Tiling(task, register, order)
    register = [1] * op.rank
    vectors = 2 if roles.row is not None else 4
    register[roles.lane] = min(op.extents[roles.lane], vectors * machine.lanes)
    vectors = ceil(register[roles.lane] / machine.lanes)
    if roles.row is not None:
        limit = (machine.registers - vectors - 2) // vectors
        if machine.registers >= 32 and all(a.pure for a in op.inputs):
            limit -= 1  # with 14 x 2 accumulators LLVM spills one of them where a round has four steps
        if _power_of_two_stride(op, roles):
            limit = min(limit, _L1_WAYS)
        register[roles.row] = _row_tile(op.extents[roles.row], limit, vectors)
        rows = _image_rows(op, roles, weights)
        if len(rows) > 1:
            stacked_lines(op, rows, roles.row, register, limit, vectors)
            task = image_task(op, rows, roles.lane, register, machine.l2_bytes)
            batch = [d for d in op.parallel if d != roles.lane and d not in rows]
            order = [*batch, roles.lane, *rows, *sorted(op.reductions)]
            # Longer rounds share prefetches, but where accumulators take nearly all registers they spill a few.
            near = weights_stay(op, roles.lane, register, machine.l2_bytes)
            return Tiling(task, register, order, None if near else _unroll(op, order))
        if roles.lane_operand is None and not all(a.pure for a in op.inputs):
            task, order = window_tiling(op, roles.row, roles.lane, register)
            return Tiling(task, register, order, _unroll(op, order))
    copied = _is_copied(op, roles, weights)
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
        if roles.row is None and not copied:
            _stream_rows(op, roles, tiling, machine, weights)
        return tiling
    task = list(op.extents)
    _cut(task, register, outer, _TASK_MACS)
    task[roles.row], task[roles.lane] = blocks.rows, blocks.columns
    order = outer + (panel[::-1] if blocks.rows_outside else panel) + reductions
    block = [*op.extents]
    block[reductions[0]] = blocks.depth
    grid = [*outer, roles.row, roles.lane] if not blocks.rows_outside else None
    return Tiling(task, register, order, _unroll(op, order), block if block != [*op.extents] else None, grid)


def _stream_rows(op: LinalgOp, roles: Roles, tiling: Tiling, machine: Machine, weights: Weights) -> None:
    """A vector times a matrix that lies as it is: some rows of the matrix at a time, over all columns of a task.

    Sums in registers would walk down a narrow strip, a page of memory per row; a few rows side by side are streams
    that the hardware prefetches. The sums of a task wait in the L1 cache.
    """
    access = _lane_access(op, roles)
    if access is None or len(op.reductions) != 1 or weights.only(access.value):
        return
    (depth,) = op.reductions
    if access.dims[-1] != roles.lane or op.extents[depth] < 2 * _STREAMS:
        return
    width = tiling.register[roles.lane]
    columns = _even(op.extents[roles.lane], max(op.extents[roles.lane] // (2 * machine.cores), _PAGE // 4), width)
    tiling.task[roles.lane] = min(columns, _PAGE)
    tiling.block = [*op.extents]
    tiling.block[depth] = _STREAMS
    tiling.unroll = [1] * op.rank
    tiling.unroll[depth] = _STREAMS


def _product_blocks(
    op: LinalgOp, roles: Roles, register: list[int], machine: Machine, weights: Weights
) -> blocking.Blocks | None:
    """Cache blocks of a product of matrices, or of a batch of them; None for windows and for products of vectors."""
    access = _lane_access(op, roles)
    if roles.row is None or access is None or len(op.reductions) != 1:
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
        l2_bytes=machine.l2_bytes,
        cores=machine.cores,
    )
    if min(op.extents) == 0:
        return None
    if weights.only(access.value):
        return blocking.block_packed(product)
    return blocking.block_copied(product) if _is_copied(op, roles, weights) else None


def _unroll(op: LinalgOp, order: list[int]) -> list[int] | None:
    """Steps per round of the innermost reduction: counter and branch, and prefetches, are shared by four of them."""
    sizes = [1] * op.rank
    sizes[order[-1]] = _UNROLL
    return sizes if op.extents[order[-1]] >= 2 * _UNROLL else None


def prefetched(op: LinalgOp, tiling: Tiling, machine: Machine) -> list[int]:
    """The inputs of a contraction whose next tile is fetched while one is in use.

    It is the operand that stays while the loops inside of its own run: packed weights under all rows, or rows under the
    copied panels of a task. It comes from far, is used at once by every tile, and the other streams keep the hardware
    from seeing it come.
    """
    roles = contraction_roles(op)
    if roles.row is None or roles.lane_operand is None or tiling.unroll is None:
        return []
    parallel = [d for d in tiling.order if d not in op.reductions]
    rows = [d for d in parallel if d not in op.inputs[roles.lane_operand].loops]
    inner = rows if parallel[-1] != roles.lane else [roles.lane]
    if all(tiling.task[d] <= tiling.register[d] for d in inner):
        return []
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
        _cut(task, register, [*batch, roles.lane], max(_LEAST_MACS, min(_TASK_MACS, op.points // _ENOUGH_TASKS)))
        return task
    _cut(task, register, batch, _TASK_MACS)
    macs = prod(task)
    if roles.lane not in batch and macs > _TASK_MACS:
        panels = max(ceil(task[roles.lane] / register[roles.lane]), 1)
        per_panel = macs // panels
        keep = max(min(_TASK_MACS // max(per_panel, 1), panels // _ENOUGH_TASKS), 1)
        if copied:
            depth = prod(op.extents[d] for d in op.reductions)
            keep = max(min(machine.l2_bytes // 4 // (4 * depth * register[roles.lane]), panels // _FEW_TASKS), 1)
        task[roles.lane] = min(task[roles.lane], keep * register[roles.lane])
    if rows:
        count = prod(ceil(e / t) for e, t in zip(op.extents, task, strict=True))
        budget = _TASK_MACS if count < _ENOUGH_TASKS else max(_TASK_MACS, machine.l2_bytes // 8 * register[roles.lane])
        if copied:
            # Each task copies its panels: many rows must share the work.
            budget = macs if count >= _FEW_TASKS else max(_TASK_MACS, prod(task) // prod(task[d] for d in rows) * 128)
        _cut(task, register, rows, budget)
    return task


def _lane_access(op: LinalgOp, roles: Roles) -> Access | None:
    """The operand that alone holds the lanes, where it can be laid out anew: a dimension of it is the lane loop."""
    if roles.lane_operand is None:
        return None
    access = op.inputs[roles.lane_operand]
    return access if access.pure and roles.lane in access.dims else None


def _is_copied(op: LinalgOp, roles: Roles, weights: Weights) -> bool:
    """Whether each task copies its part of the lane operand: one known at run time only, where it pays."""
    access = _lane_access(op, roles)
    if access is None or weights.only(access.value):
        return False
    return _copy_pays(op, access, access.dims.index(roles.lane))


def layouts(op: LinalgOp, tiling: Tiling, machine: Machine, weights: Weights) -> tuple[list[str], list[str]]:
    """Layout and copy tile per input of a contraction: `unit` where the operand is read as it lies."""
    kinds, copies = ["unit"] * len(op.inputs), ["unit"] * len(op.inputs)
    roles = contraction_roles(op)
    access = _lane_access(op, roles)
    if access is None:
        return kinds, copies
    assert roles.lane_operand is not None
    at = access.dims.index(roles.lane)
    rank = len(access.dims)
    if weights.only(access.value):
        rest = [t for t in range(rank) if t != at]
        block = tiling.register[roles.lane]
        kinds[roles.lane_operand] = f"#tile.layout<perm = {[at, *rest]}, inner = [{at}], tiles = [{block}]>"
    elif _is_copied(op, roles, weights):
        block = tiling.register[roles.lane]
        perm = [t for t in range(rank) if t != at]
        if op.extents[roles.lane] % block == 0 and tiling.task[roles.lane] > block:
            kinds[roles.lane_operand] = f"#tile.layout<perm = {[at, *perm]}, inner = [{at}], tiles = [{block}]>"
            copies[roles.lane_operand] = str(_panel_tile(op, access, perm, tiling, machine))
        else:
            kinds[roles.lane_operand] = f"#tile.layout<perm = {[*perm, at]}>"
            copies[roles.lane_operand] = str(_copy_tile(op, access, [*perm, at], tiling, machine))
    return kinds, copies


def _copy_pays(op: LinalgOp, access: Access, at: int) -> bool:
    """A run-time operand is copied where its lanes do not lie together, or where many rows reuse a strided panel."""
    if at != len(access.dims) - 1:
        return True
    rows = prod(op.extents[d] for d in op.parallel if d not in access.loops)
    return rows >= 32 and not op.welded


def _copy_tile(op: LinalgOp, access: Access, perm: list[int], tiling: Tiling, machine: Machine) -> Tiling:
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
    block, sizes = tiling.register[lane], [1 if (d := access.dims[t]) is None else tiling.task[d] for t in rest]
    task = [tiling.task[lane] // block, *sizes, block]
    register = [1] * len(task)
    register[-1] = min(block, machine.wide)
    order = [*range(1, len(task) - 1), 0, len(task) - 1]
    if len(rest) and rest[-1] == len(access.dims) - 1:  # lanes do not lie together: transpose in registers
        register[-1] = min(block, machine.lanes)
        register[-2] = min(sizes[-1], machine.lanes)
        order = list(range(len(task)))
    return Tiling(task, register, order)


def tile_op(op: LinalgOp, members: Iterable[LinalgOp], machine: Machine, weights: Weights) -> Tiling:
    """The tiling of a nest of `members` whose root is `op`."""
    if op.kind is Kind.CONTRACTION:
        return tile_contraction(op, machine, weights)
    wide = machine.lanes_for(members)
    if op.kind is Kind.REDUCE:
        return tile_reduce(op, machine, wide)
    return tile_elementwise(op, machine, wide)


def restrict_to_rows(op: LinalgOp, tiling: Tiling, rows: list[int], share: int) -> None:
    """In a task of several nests only the common rows are cut, `share` of them per task, innermost first."""
    tiling.task[:] = op.extents
    for d in reversed(rows):
        tiling.task[d] = _even(op.extents[d], max(share, 1))
        share //= op.extents[d]


def tile_products(op: LinalgOp, rows: list[int], count: int, machine: Machine, weights: Weights) -> list[int]:
    """The task's sizes along the common rows of `count` products of the size of `op`: together they are a task's work.

    With few rows the lane operand's bytes are the work, and memory bandwidth is what more cores bring.
    """
    tiling = tile_contraction(op, machine, weights)
    depth = prod(op.extents[d] for d in op.reductions)
    budget = max(_LEAST_MACS, min(_TASK_MACS, op.points * count // _ENOUGH_TASKS)) // (count * depth)
    roles = contraction_roles(op)
    if len(_image_rows(op, roles, weights)) > 1:
        return [tiling.task[d] for d in rows]  # more tasks would read weights again
    for d in [*(d for d in rows if d not in (roles.row, roles.lane)), roles.lane, roles.row]:
        if d in rows:
            _cut(tiling.task, tiling.register, [d], budget * depth)
    return [tiling.task[d] for d in rows]


def _decided(
    decider: Decider,
    op: LinalgOp,
    members: list[LinalgOp],
    tiling: Tiling,
    machine: Machine,
    weights: Weights,
    free: bool,
) -> Tiling:
    """The tiling that the performance model says, with the prediction on `op`."""
    nest = [m for m in members if m.op.attributes["tile.nest"] == op.op.attributes["tile.nest"]]
    copied = None
    if op.kind is Kind.CONTRACTION:
        roles = contraction_roles(op)
        copied = roles.lane_operand if _is_copied(op, roles, weights) else None
    block = tuple(tiling.block) if tiling.block else None
    own = Schedule(tuple(tiling.task), tuple(tiling.register), tuple(tiling.order), copied, block)
    kernel = _text(members, "tile.kernel")
    kinds = layouts(op, tiling, machine, weights)[0] if op.kind is Kind.CONTRACTION else []
    packed = frozenset(a.value for a, kind in zip(op.inputs, kinds, strict=False) if kind != "unit")
    # Candidates have no cache blocks (blocking.py), and their lanes must be those that the layouts were chosen for.
    keep = bool(tiling.block or tiling.grid)
    keep |= op.kind is Kind.CONTRACTION and tile_loops(tiling.register)[1] != contraction_roles(op).lane
    chosen = decider.decide(kernel, op, nest, own, free=free, packed=packed, task=members, keep=keep)
    if chosen == own:
        return tiling
    return Tiling(list(chosen.task), list(chosen.register), list(chosen.order), tiling.unroll)


def _text(members: list[LinalgOp], name: str) -> str:
    return next(ir.StringAttr(m.op.attributes[name]).value for m in members if name in m.op.attributes)


def cut_blocks(op: LinalgOp, tiling: Tiling, rows: list[int], block: int) -> None:
    """In a task with contractions, a block of the innermost common row is cut, and single ones of the others."""
    tiling.task[:] = op.extents
    for d in rows:
        tiling.task[d] = 1
    tiling.task[rows[-1]] = min(block, op.extents[rows[-1]])
    for d in rows:
        tiling.register[d] = min(tiling.register[d], tiling.task[d])


def followers(root: LinalgOp, members: list[LinalgOp]) -> list[LinalgOp] | None:
    """The members that use the result of `root`: elementwise, over the same points; None where one is not."""
    shape = tuple(ir.RankedTensorType(root.result.type).shape)
    values, after = {root.result}, []
    for member in members:
        if not any(a.value in values for a in member.inputs):
            continue
        whole = tuple(range(len(shape)))
        if member.extents != shape or member.reductions or member.output.dims != whole or member.tables:
            return None
        if any(a.value in values and a.dims != whole for a in member.inputs) or len(member.op.results) != 1:
            return None
        values.add(member.result)
        after.append(member)
    inner = {m.result for m in members} - values
    if any(a.value in inner for m in after for a in m.inputs):
        return None
    ends = [m for m in after if not any(a.value == m.result for n in after for a in n.inputs)]
    return after if len(ends) <= 1 and (not ends or ends[0] is after[-1]) else None


def _number(op: ir.Operation, name: str) -> int:
    """An integer attribute."""
    found = op.attributes[name]
    if not isinstance(found, ir.IntegerAttr):
        raise located(UserError(f"has a `{name}` that is no integer: {found}"), op)
    return found.value


def _loops(op: LinalgOp, name: str) -> list[int]:
    """An attribute that names loops of the operation."""
    found = op.op.attributes[name]
    loops = list(found) if isinstance(found, ir.DenseI64ArrayAttr) else [-1]
    if any(not 0 <= d < len(op.extents) for d in loops):
        raise located(UserError(f"has a `{name}` that is no array of its loops: {found}"), op.op)
    return loops


@register
@dataclass(frozen=True)
class PlanTiles(Pass):
    """Give each operation of a nest its tile sizes (`tile.rtile`), and matrix operands their layouts.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %e = tensor.empty() : tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
          tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>)
        attrs = {tile.kernel = "map_64", tile.nest = 0 : i64,
                 tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>, tile.task = 0 : i64} {
    ```
    """

    name: ClassVar[str] = "tile-plan-tiles"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    lanes: int = option(16, "f32 lanes of a vector register")
    registers: int = option(32, "vector registers")
    l2_bytes: int = option(1048576, "bytes of the L2 cache of a core")
    l3_bytes: int = option(33554432, "bytes of the largest cache")
    l3_rate: float = option(120.0, "bytes per nanosecond that a core moves to and from it")
    memory_rate: float = option(41.0, "the same for memory")
    device: str = option("", "name of the description that times are predicted for; empty: no prediction")
    choices: tuple[str, ...] = option((), "KERNEL:NUMBER, the candidate that a kernel takes instead of the first")
    cores: int = option(2, "cores that share the work")

    def run(self, op: ir.Operation) -> None:
        """Give tiles to the nests of each task that `tile-plan-fusion` made."""
        machine = Machine(self.lanes, self.registers, self.l2_bytes, self.cores)
        weights = Weights()
        decider = self._decider()
        for block in blocks(op):
            tasks: dict[int, list[LinalgOp]] = {}
            for member in linalg_ops(block, weights):
                if "tile.task" in member.op.attributes:
                    tasks.setdefault(_number(member.op, "tile.task"), []).append(member)
            for members in tasks.values():
                self._tile_task(members, machine, weights, decider)

    def _decider(self) -> Decider | None:
        if not self.device:
            return None
        choices = (text.rpartition(":") for text in self.choices)
        return Decider(resolve(self.device), {name: int(number) for name, _, number in choices})

    def _tile_task(self, members: list[LinalgOp], machine: Machine, weights: Weights, decider: Decider | None) -> None:
        roots = [m for m in members if "tile.rows" in m.op.attributes]
        if not roots:
            raise located(UserError("is in a task of which no operation has `tile.rows`"), members[0].op)
        rows = [_loops(root, "tile.rows") for root in roots]
        inner = max(
            prod(e for d, e in enumerate(r.extents) if d not in own) for r, own in zip(roots, rows, strict=True)
        )
        count = prod(roots[-1].extents[d] for d in rows[-1])
        share = max(min(_ROW_ELEMENTS // max(inner, 1), count // _ENOUGH_TASKS), 1)
        block = self._block(roots[-1])
        name = ir.StringAttr.get(kernel_name(members, roots), roots[0].op.context)
        roots[-1].op.attributes["tile.kernel"] = name
        products = not block and len(roots) > 1 and all(root.kind is Kind.CONTRACTION for root in roots)
        sizes = tile_products(roots[-1], rows[-1], len(roots), machine, weights) if products else []
        for op, own in zip(roots, rows, strict=True):
            del op.op.attributes["tile.rows"]
            nest = [m for m in members if m.op.attributes["tile.nest"] == op.op.attributes["tile.nest"]]
            op.welded = block > 0
            tiling = tile_op(op, nest, machine, weights)
            gathered = self._keep_gathers(op, tiling)
            if block:
                cut_blocks(op, tiling, own, block)
            elif products:
                tiling.task[:] = op.extents
                for d, size in zip(own, sizes, strict=True):
                    tiling.task[d] = size
            elif len(roots) > 1:
                restrict_to_rows(op, tiling, own, share)
            self._mark_stream(op, nest, members)
            if decider is not None:
                free = len(roots) == 1 and not gathered
                tiling = _decided(decider, op, members, tiling, machine, weights, free)
            tiling.block = self._split_sum(op, tiling, members) if len(roots) == 1 else None
            set_attribute(op.op, "tile.rtile", str(tiling))
            if tiling.grid and len(roots) == 1:
                set_attribute(op.op, "tile.grid", f"array<i64: {', '.join(map(str, tiling.grid))}>")
            if op.kind is Kind.CONTRACTION:
                self._lay_out(op, tiling, machine, weights)

    def _mark_stream(self, root: LinalgOp, nest: list[LinalgOp], members: list[LinalgOp]) -> None:
        """Marks a nest whose results for others had better go past the caches; what its task reads again stays."""
        levels = Levels(self.l2_bytes, self.l3_bytes, 0.0, self.l3_rate, self.memory_rate)
        inside, own = {member.op for member in members}, {member.op for member in nest}
        if any(op.kind is Kind.CONTRACTION for op in nest):
            return  # it may read again what it wrote, block by block of its reduction
        written = [op for op in nest if not {use.owner.operation for use in op.result.uses} <= inside]
        for op in written:
            users = {use.owner.operation for use in op.result.uses}
            if users & (inside - own) or not is_streamed(op.result, levels):
                return
        if written:
            root.op.attributes["tile.stream"] = ir.UnitAttr.get(root.op.context)

    @staticmethod
    def _block(root: LinalgOp) -> int:
        """The block of rows that fusion chose for a task with contractions; 0 where it chose none."""
        if "tile.block" not in root.op.attributes:
            return 0
        block = _number(root.op, "tile.block")
        del root.op.attributes["tile.block"]
        if block < 1:
            raise located(UserError(f"has a `tile.block` of {block}"), root.op)
        return block

    @staticmethod
    def _split_sum(root: LinalgOp, tiling: Tiling, members: list[LinalgOp]) -> list[int] | None:
        """Where a reduction runs in blocks: what follows it becomes a nest of its own, run on the whole sum of a task.

        Returns the blocks, or None where what follows is no elementwise chain over the points of the sum.
        """
        if tiling.block is None:
            return None
        after = followers(root, members)
        if after is None:
            return None
        if after:
            number = max(_number(m.op, "tile.nest") for m in members) + 1
            sizes = [1 if d is None else tiling.task[d] for d in root.output.dims]
            register = [1 if d is None else tiling.register[d] for d in root.output.dims]
            for member in after:
                set_attribute(member.op, "tile.nest", f"{number} : i64")
            order = sorted(range(len(sizes)), key=lambda t: register[t] > 1)
            set_attribute(after[-1].op, "tile.rtile", str(Tiling(sizes, register, order)))
        return tiling.block

    @staticmethod
    def _keep_gathers(op: LinalgOp, tiling: Tiling) -> bool:
        """Each element that has an index of its own is a tile of its own: nothing lies side by side."""
        gathers = set(op.gathers)
        if "tile.gathers" in op.op.attributes:
            gathers |= set(_loops(op, "tile.gathers"))
            del op.op.attributes["tile.gathers"]
        for d in gathers:
            tiling.register[d] = 1
        return bool(gathers)

    def _lay_out(self, op: LinalgOp, tiling: Tiling, machine: Machine, weights: Weights) -> None:
        ahead = prefetched(op, tiling, machine)
        if ahead:
            set_attribute(op.op, "tile.prefetch", f"array<i64: {', '.join(map(str, ahead))}>")
        kinds, copies = layouts(op, tiling, machine, weights)
        if any(k != "unit" for k in kinds):
            set_attribute(op.op, "tile.layouts", f"[{', '.join(kinds)}]")
            set_attribute(op.op, "tile.pack_rtiles", f"[{', '.join(copies)}]")
