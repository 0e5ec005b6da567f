# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The micro-performance model: time of a nest with given tiles, from numbers that a machine is measured for once.

Roller (section 3.4) takes the slowest of the pipeline's stages, compute and the transfers between levels, each from
micro-benchmarks. A CPU's transfers hide each other less than a GPU's: they add up, as in the execution-cache-memory
model (Treibig and Hager, PPAM 2009), and computing hides them up to a measured fraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, prod
from types import MappingProxyType
from typing import Any, NamedTuple

from tilewright.devices.device import Device, Level
from tilewright.plan.cost.cache_traffic import Prefetcher, fetched, loops_of, run_bytes
from tilewright.plan.cost.expression import Expression, Index, Operand
from tilewright.plan.cost.rules import set_conflicts

#: Accumulators of the register tile that `start` is measured with.
_STARTED = 16


@dataclass(frozen=True)
class Schedule:
    """What the code generator carries out: sizes per task and per register tile, and the traversal order."""

    task: tuple[int, ...]
    register: tuple[int, ...]
    order: tuple[int, ...]
    #: input that each task copies into panels of its own, if any
    copied: int | None = None
    #: sizes of the blocks that a task takes of its reductions, where it does not run them at once
    block: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Prediction:
    """Where the time goes.

    Attributes:
        seconds: of the whole.
        compute: of arithmetic, loads and stores that hit the L1 cache.
        data: per level, what waiting for its lines would take.
        dispatch: of handing out tasks.
        moved: bytes that come from each level.
    """

    seconds: float
    compute: float
    data: Mapping[str, float]
    dispatch: float
    moved: Mapping[str, int]

    @property
    def bound(self) -> str:
        """What takes longest: ``compute``, ``dispatch`` or the name of a level."""
        parts = {"compute": self.compute, "dispatch": self.dispatch, **self.data}
        return max(parts, key=lambda name: parts[name])


class _Served(NamedTuple):
    """What one level serves: bytes, bytes by their cost, and jumps of the address streams."""

    level: Level
    moved: int
    weighted: float
    jumps: float


class Model:
    """Predicts for one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.rate = lru_cache(None)(device.rate)
        self.prefetcher = Prefetcher.of(device)
        self.lanes = device.lanes(32)
        self.cycle = 1.0 / device.units.frequency
        self.caches = [level for level in device.levels if level.kind == "cache"]
        self._behind = [*self.caches[1:], device.memory]
        self._room = [int(c.bytes * self.rate("cache_share")) for c in self.caches]
        self._tiles: tuple[Expression | None, dict[Any, float]] = None, {}

    def predict(self, expression: Expression, schedule: Schedule, cores: int = 1, *, last: bool = True) -> Prediction:
        """Time of a nest on some cores.

        Args:
            expression: the nest.
            schedule: its tiles.
            cores: how many share the tasks.
            last: whether it is the last nest of its task, which the dispatch counts for.
        """
        return self.on_cores(expression, schedule, (cores,), last=last)[0]

    def on_cores(
        self, expression: Expression, schedule: Schedule, counts: Sequence[int], *, last: bool = True
    ) -> list[Prediction]:
        """Times of a nest on several numbers of cores."""
        tasks = prod(ceil(e / t) for e, t in zip(expression.extents, schedule.task, strict=True))
        cycles = self.compute_cycles(expression, schedule)
        served = self._served(expression, schedule)
        found = []
        for cores in counts:
            share = ceil(tasks / cores) / tasks  # of the core that gets most tasks
            compute = cycles * self.cycle * share
            data = {name: self._seconds(level, min(cores, tasks)) for name, level in served.items()}
            launch = self.rate("launch") * (1 if cores == 1 else self.rate("launch_cores")) * last
            handed = self.rate("task") * tasks * share * last
            parts = (compute, handed, sum(data.values()))
            seconds = max(parts) + (1 - self.rate("overlap")) * (sum(parts) - max(parts)) + launch
            moved = {name: level.moved for name, level in served.items()}
            found.append(Prediction(seconds, compute, data, handed + launch, moved))
        return found

    # --- data ----------------------------------------------------------------------------------------------------

    def _served(self, expression: Expression, schedule: Schedule) -> dict[str, _Served]:
        """What each level behind L1 serves."""
        block = schedule.block or schedule.task
        blocks = tuple(min(b, t) for b, t in zip(block, schedule.task, strict=True))
        loops = loops_of(expression.extents, [schedule.task, blocks, schedule.register], schedule.order)
        operands = expression.operands
        on_end = [run_bytes(o, expression.extents, loops, schedule.register, self.prefetcher) for o in operands]
        ahead = _fetched_ahead(expression, schedule)
        line = self.caches[0].transaction
        shortest = self.rate("lines_of_jump") * line
        misses = [*fetched(expression, loops, self._room, line), (0,) * len(operands)]
        found = {}
        for at, level in enumerate(self._behind):
            crossings = zip(operands, misses[at], misses[at + 1], strict=True)
            served = [_part(at, *crossing) for crossing in crossings]
            read, written = sum(served[: len(expression.inputs)]), sum(served[len(expression.inputs) :])
            hidden = self.rate("prefetch") * served[ahead] if ahead is not None else 0.0
            weighted = read - hidden + self.rate(f"{level.name}.store", "level.store") * written
            jumps = sum(size / max(run, shortest) for size, run in zip(served, on_end, strict=True))
            found[level.name] = _Served(level, read + written, weighted, jumps)
        return found

    def _seconds(self, served: _Served, busy: int) -> float:
        level = served.level
        shared = busy if level.shared_by == 1 else min(busy, self.rate(f"{level.name}.cores", "level.cores"))
        return (
            served.weighted / ((level.bandwidth or self.rate("bandwidth")) * shared)
            + served.jumps * self._jump(level) / busy
        )

    def _jump(self, level: Level) -> float:
        """Seconds until lines flow again after a jump; from the near L2 cache other work hides them."""
        return 0.0 if level is self.caches[1] else self.rate("jump") * level.latency

    # --- compute ---------------------------------------------------------------------------------------------------

    def compute_cycles(self, expression: Expression, schedule: Schedule) -> float:
        """Cycles of one core for all register tiles, ragged ones by their own shape."""
        rows, lane = tile_loops(expression, schedule.register)
        axes = [*rows, lane] if lane is not None else []
        sizes = zip(expression.extents, schedule.task, schedule.register, strict=True)
        counts = [_pieces(*size) for size in sizes]
        steps = prod(sum(counts[d].values()) for d in expression.reductions if d not in axes)
        others = prod(sum(counts[d].values()) for d in expression.parallel if d not in axes)
        total = 0.0
        for pieces in product(*(counts[d].items() for d in axes)):
            shape = {d: size for d, (size, _) in zip(axes, pieces, strict=True)}
            times = prod(n for d, (_, n) in zip(axes, pieces, strict=True) if d not in expression.reductions)
            inner = prod(n for d, (_, n) in zip(axes, pieces, strict=True) if d in expression.reductions)
            total += times * others * self._tile_cycles(expression, lane, shape, steps * inner)
        return total + self._copy_cycles(expression, schedule)

    @staticmethod
    def variants(expression: Expression, schedule: Schedule) -> int:
        """Shapes of register tiles, whole and ragged, that code is made for."""
        sizes = zip(expression.extents, schedule.task, schedule.register, strict=True)
        return prod(len(_pieces(*size)) * (2 if size[0] % size[1] else 1) for size in sizes)

    def _copy_cycles(self, expression: Expression, schedule: Schedule) -> float:
        if schedule.copied is None:
            return 0.0
        operand = expression.inputs[schedule.copied]
        tasks = prod(ceil(e / t) for e, t in zip(expression.extents, schedule.task, strict=True))
        elements = prod(min(schedule.task[d], expression.extents[d]) for d in operand.loops)
        lane = tile_loops(expression, schedule.register)[1]
        transposed = lane is not None and abs(operand.factor(lane)) != 1
        return tasks * elements / self.lanes * (self.rate("pack") if transposed else self.rate("copy"))

    def _tile_cycles(self, expression: Expression, lane: int | None, shape: Mapping[int, int], steps: int) -> float:
        """Cycles of a register tile, which many schedules of an expression have in common."""
        of, known = self._tiles  # read once: another thread may plan another expression
        if of is not expression:
            known = {}
            self._tiles = expression, known
        key = (lane, tuple(shape.items()), steps)
        if key not in known:
            known[key] = self._count_cycles(expression, lane, shape, steps)
        return known[key]

    def _count_cycles(self, expression: Expression, lane: int | None, shape: Mapping[int, int], steps: int) -> float:
        vectors = ceil(shape[lane] / self.lanes) if lane is not None else 1
        rows = prod(size for d, size in shape.items() if d != lane)
        units = rows * vectors
        loads = sum(self._accesses(o, lane, shape, vectors) for o in expression.inputs)
        stores = sum(self._accesses(o, lane, shape, vectors) for o in expression.outputs)
        slots = units * (expression.macs + expression.work)
        # Wide vectors take two ports each; those of half the width find a third.
        narrow = self.rate("narrow") if lane is not None and 2 * shape[lane] <= self.lanes else 1.0
        step = max(slots / 2, loads / self.rate("loads")) / narrow
        step = max(step, (loads + slots) / self.rate("issue")) + self._evicted(expression, shape)
        if not expression.reductions:
            return max(step, stores * self.rate("store") / narrow) + self.rate("loop")
        # One accumulator waits for the last step's result, unless the next tiles' steps fit between.
        latency = self.rate("latency")
        if narrow > 1 and not expression.macs:
            latency = self.rate("latency.narrow")
        chain = latency * min(1.0, steps * (loads + slots) / self.rate("window"))
        across = self.rate("across") * rows if lane in expression.reductions else 0.0
        finish = stores * self.rate("store") + units * expression.tail / 2 + across
        drained = self.rate("start") * units / _STARTED * min(1.0, steps / 16)
        mispredicted = self.rate("mispredicted") * (steps > self.rate("foreseen"))
        if expression.macs:
            step = max(step, max(slots / 2, chain) / self._efficiency(rows, vectors))
        return steps * max(step, chain) + finish + drained + mispredicted + self.rate("loop")

    def _evicted(self, expression: Expression, shape: Mapping[int, int]) -> float:
        """Cycles that a step waits for lines of rows that share sets of the L1 cache: they are gone when used again."""
        lines = 0
        for operand in expression.inputs:
            for d, size in shape.items():
                stride = abs(operand.factor(d)) * operand.bytes
                if operand.fixed or stride < self.caches[0].transaction:
                    continue
                if set_conflicts(size, stride, self.caches[0], self.device.limit("l1_ways", 8)) > 1:
                    lines += size
        return lines * self.caches[0].transaction / (self.caches[1].bandwidth or self.rate("bandwidth.l2")) / self.cycle

    def _efficiency(self, rows: int, vectors: int) -> float:
        """Fraction of the peak that a register tile reaches from the L1 cache; that of the next smaller one known."""
        return self.rate(*(f"fma.{r}x{vectors}" for r in range(rows, 0, -1)), "fma")

    def _accesses(self, operand: Operand, lane: int | None, shape: Mapping[int, int], vectors: int) -> float:
        """Loads (stores) of one register tile: whole vectors, broadcast elements, or an element at a time."""
        rows = [d for d in shape if d != lane and d in operand.loops]
        count = prod(shape[d] for d in rows)
        if lane is None or lane not in operand.loops:
            return count
        if operand.fixed or abs(operand.factor(lane)) == 1:
            return count * vectors
        contiguous = next((d for d in rows if abs(operand.factor(d)) == 1), None)
        if contiguous is not None:  # blocks of lanes x lanes are transposed in registers, ragged ones at the same cost
            blocks = ceil(shape[contiguous] / self.lanes)
            return count / shape[contiguous] * blocks * self.lanes * vectors * self.rate("transpose")
        return count * vectors * self.lanes


def tile_loops(expression: Expression, register: Sequence[int]) -> tuple[tuple[int, ...], int | None]:
    """Loops of the rows and of the lanes of a register tile, as the code generator takes them.

    Lanes are the last loop, but of two those that lie side by side in the result, in whatever order the loops stand.
    """
    tiled = [d for d, size in enumerate(register) if size > 1]
    if not tiled:
        return (), None
    *rows, lane = tiled
    if len(rows) == 1 and expression.outputs:  # none: all results are kept in registers
        stored = [dim for dim in (_single(terms) for terms in expression.outputs[0].index) if dim in (lane, rows[0])]
        if stored == [lane, rows[0]]:
            return (lane,), rows[0]
    return tuple(rows), lane


def _single(terms: Index) -> int | None:
    """The loop that is a dimension's index, if it is one alone."""
    return terms[0][0] if terms is not None and len(terms) == 1 and terms[0][1] == 1 else None


@lru_cache(4096)
def _cached_pieces(extent: int, task: int, register: int) -> Mapping[int, int]:
    counts: Counter[int] = Counter()
    for part, number in ((task, extent // task), (extent % task, 1)):
        if part:
            counts[min(register, part)] += number * max(part // register, 0 if part >= register else 1)
            if part > register and part % register:
                counts[part % register] += number
    return MappingProxyType(counts)


def _pieces(extent: int, task: int, register: int) -> Mapping[int, int]:
    """How many register tiles of which size a loop makes."""
    return _cached_pieces(extent, min(task, extent), min(register, task, extent))


def _part(at: int, operand: Operand, crossing: int, beyond: int) -> int:
    """Bytes that the cache or memory number `at` behind L1 serves: what its caller misses and it has."""
    if operand.near:
        return crossing if at == 0 else 0
    return max(crossing - beyond, 0)


def _fetched_ahead(expression: Expression, schedule: Schedule) -> int | None:
    """The input of a product whose next tile is fetched while one is in use: the one that stays in the inner loop."""
    rows, lane = tile_loops(expression, schedule.register)
    if not expression.macs or lane is None or not rows:
        return None
    inner = next(d for d in reversed(schedule.order) if d in (*rows, lane))
    stays = (i for i, o in enumerate(expression.inputs) if inner not in o.loops and len(o.loops) > 1)
    return next(stays, None)
