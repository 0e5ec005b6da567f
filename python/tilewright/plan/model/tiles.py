# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of tiles that all tilings share, and the tiles of memory-bound nests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd, prod

from tilewright.devices.device import Device
from tilewright.devices.rates import usual_rate
from tilewright.ir.structure import Kind, LinalgOp, transposed_row
from tilewright.mlir import ir
from tilewright.plan.model.traffic import LINE_BYTES, element_bytes

#: Functions that are one instruction.
_NATIVE = frozenset(f"math.{n}" for n in "absf absi ceil floor fma round roundeven trunc sqrt copysign".split())
#: Points of loops that only choose among values: as many as there are vector registers, some in memory.
_CHOICES = 64
#: Tasks per kernel that let a few cores share the work evenly: the planner's aim, whatever the machine.
ENOUGH_TASKS = 16
#: Tasks in which a softmax still meets its products.
FEW_TASKS = 8


@dataclass(frozen=True)
class Machine:
    """What tiles depend on: f32 lanes of a register, registers, bytes of caches, cores, instructions."""

    lanes: int
    registers: int
    l2_bytes: int
    cores: int = 2
    #: bytes of the L1 data cache, and lines that may lie in each of its sets
    l1_bytes: int = 49152
    l1_ways: int = 12
    #: element types whose products in groups one instruction adds, see `dot_product.py`
    dots: frozenset[str] = frozenset()
    #: element types that a matrix unit multiplies, see `matrix.py`
    matrix: frozenset[str] = frozenset()
    #: whose rates are asked; None: a usual CPU
    device: Device | None = None

    def rate(self, name: str) -> float:
        """Return a rate of the device, see `devices/kinds/cpu.toml`."""
        return usual_rate("cpu", name) if self.device is None else self.device.rate(name)

    def count(self, name: str) -> int:
        """Return a rate that counts: elements, multiply-adds, bytes."""
        return int(self.rate(name))

    @cached_property
    def task_macs(self) -> int:
        """Multiply-adds of a task of a compute-bound nest, at least."""
        return self.count("task_macs")

    @cached_property
    def chains(self) -> int:
        """Multiply-adds under way that keep all pipes busy."""
        return 8 if self.device is None else self.device.chains

    @property
    def wide(self) -> int:
        """Lanes of a tile that is moved only: eight vectors at a time."""
        return 8 * self.lanes

    def resident_lines(self, stride: int) -> int | None:
        """Lines at that distance in bytes that the L1 cache holds; None where the distance reaches all of its sets."""
        sets = max(self.l1_bytes // (LINE_BYTES * self.l1_ways), 1)
        step = gcd(stride // LINE_BYTES, sets) if stride % LINE_BYTES == 0 else 1
        return sets // step * self.l1_ways if step > 1 else None

    def budget(self, points: int) -> int:
        """Points per task of a memory-bound nest: enough tasks to share, none too small to pay for its dispatch."""
        return max(self.count("least_task_elements"), min(self.count("task_elements"), points // ENOUGH_TASKS))

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
    #: loops that a task runs over as a whole, whatever their extent turns out to be
    whole: frozenset[int] = frozenset()
    #: sizes of one instruction's operands, where it takes several elements of a reduction
    mma: list[int] | None = None
    #: whether the tasks of a thread take each block of the reduction together
    together: bool = False

    def __str__(self) -> str:
        block = f"block = {self.block}, " if self.block else ""
        task = ", ".join("?" if d in self.whole else str(size) for d, size in enumerate(self.task))
        mma = f", mma = {self.mma}" if self.mma else ""
        unroll = f", unroll = {self.unroll}" if self.unroll else ""
        return f"#tile.rtile<{block}l2 = [{task}]{mma}, register = {self.register}{unroll}, order = {self.order}>"


def tile_elementwise(op: LinalgOp, members: Sequence[LinalgOp], machine: Machine, wide: int) -> Tiling:
    """A nest of `members` without reductions, whose root is `op`: lanes along the contiguous loop of its result."""
    register, order = [1] * op.rank, list(range(op.rank))
    if op.rank:
        lane = op.output.dims[-1]
        lane = op.rank - 1 if lane is None else lane
        register[lane] = min(op.extents[lane], wide)
        row = transposed_row(op, lane)
        row = _row_of_writers(op, members, lane) if row is None else row
        chosen = chosen_loops(op)
        if op.tables:  # what gathers takes its rows from one loop
            chosen = chosen[-1:]
        if chosen and lane not in chosen:
            register[lane] = min(op.extents[lane], machine.lanes)
            for d in chosen:
                register[d] = op.extents[d]
        elif row is not None and not op.tables:
            register[lane] = min(op.extents[lane], machine.lanes)
            register[row] = min(op.extents[row], machine.lanes)
            # What is read runs on from tile to tile, as the hardware prefetches: 30 % faster on images of 56x56.
            order = [*(d for d in order if d not in (lane, row)), lane, row]
    task = list(op.extents)
    cut(task, register, op.parallel, machine.budget(op.points))
    return Tiling(task, register, order)


def chosen_loops(op: LinalgOp) -> list[int]:
    """Loops that only the body's own indices depend on, few enough points for the registers.

    Each point along them is another value made of the same inputs. A tile covers them whole: it computes what they
    share once, and the index of each of its rows is a constant that chooses among values known by then.
    """
    if op.kind is not Kind.ELEMENTWISE or not op.inputs:
        return []
    read = frozenset().union(*(access.loops for access in op.inputs))
    free = [d for d in op.parallel if d not in read and op.extents[d] > 1]
    if not free or prod(op.extents[d] for d in free) > _CHOICES:
        return []
    indexed = _indexed(op)
    return [d for d in free if d in indexed]


def _indexed(op: LinalgOp) -> set[int]:
    """Loops whose index the body takes."""
    operations = op.op.regions[0].blocks[0].operations
    taken = (inner.attributes["dim"] for inner in operations if inner.operation.name == "linalg.index")
    return {ir.IntegerAttr(dim).value for dim in taken}


def _row_of_writers(op: LinalgOp, members: Sequence[LinalgOp], lane: int) -> int | None:
    """The loop of the root `op` that is contiguous in what a later member writes, where its lanes are not."""
    loops: dict[ir.Value, list[int | None]] = {op.result: list(op.output.dims)}
    for member in members:
        access = next((a for a in member.inputs if a.value in loops and a.pure), None)
        if access is None or member is op:
            continue
        own = dict(zip(access.dims, loops[access.value], strict=True))
        written = loops[member.result] = [None if d is None else own.get(d) for d in member.output.dims]
        last = written[-1] if written else None
        if last is not None and last != lane and lane in written and op.extents[last] > 1:
            return last
    return None


def even(extent: int, size: int, multiple: int = 1) -> int:
    """The part when `extent` is cut evenly into as many parts as parts of `size` make, in multiples of `multiple`."""
    if size >= extent:
        return extent
    part = ceil(extent / ceil(extent / max(size, 1)))
    return min(ceil(part / multiple) * multiple, extent)


def cut(task: list[int], register: list[int], dims: Iterable[int], budget: int) -> None:
    """Cuts `task` along `dims`, outermost first, until it covers at most `budget` points."""
    for d in dims:
        rest = prod(task) // max(task[d], 1)
        if prod(task) <= budget:
            return
        size = max(budget // max(rest, 1), 1)
        task[d] = even(task[d], max(size // register[d], 1) * register[d], register[d])


def tile_reduce(op: LinalgOp, machine: Machine, wide: int) -> Tiling:
    """A nest that reduces: lanes along the loop that is contiguous in its largest input."""
    register = [1] * op.rank
    largest = max(op.inputs, key=lambda a: prod(op.extents[d] for d in a.loops), default=op.output)
    lane = largest.dims[-1] if largest.dims else None
    lane = op.rank - 1 if lane is None else lane
    register[lane] = min(op.extents[lane], wide)
    task = list(op.extents)
    cut(task, register, op.parallel, machine.budget(op.points))
    inner = [d for d in op.parallel if d != lane] + ([lane] if lane in op.parallel else [])
    return Tiling(task, register, inner + sorted(op.reductions))


def restrict_to_rows(op: LinalgOp, tiling: Tiling, rows: list[int], share: int, lines: Sequence[int] = ()) -> None:
    """In a task of several nests only the common rows are cut, `share` of them per task, innermost first.

    `lines` are the rows that lie in a line of memory, per loop of `rows` (`line_rows`): no task takes a part of a line.
    """
    tiling.task[:] = op.extents
    for d, line in reversed([*zip(rows, lines or [1] * len(rows), strict=True)]):
        tiling.task[d] = even(op.extents[d], max(share, line), line)
        tiling.register[d] = min(tiling.register[d], tiling.task[d])
        share //= op.extents[d]


def line_rows(op: LinalgOp, rows: Sequence[int]) -> list[int]:
    """How many points of each row lie side by side in a line of memory of which all else is read or written, too.

    Channels of an image whose channels lie innermost: a task of one of them would walk over the lines of all.
    """
    lines = []
    for d in rows:
        beside = [a for a in [*op.inputs, op.output] if a.dims and a.dims[-1] == d and a.loops - {*rows}]
        lines.append(max((max(LINE_BYTES // element_bytes(a.value), 1) for a in beside), default=1))
    return lines


def cut_blocks(op: LinalgOp, tiling: Tiling, rows: list[int], block: int) -> None:
    """In a task with contractions, a block of the innermost common row is cut, and single ones of the others."""
    tiling.task[:] = op.extents
    for d in rows:
        tiling.task[d] = 1
    tiling.task[rows[-1]] = min(block, op.extents[rows[-1]])
    for d in rows:
        tiling.register[d] = min(tiling.register[d], tiling.task[d])
