# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Candidates for a nest of the IR, ranked by the performance model.

A candidate is a schedule that the code generator can carry out: a register tile of rows and lanes, a tile per task, an
order. Register tiles come first (rules 1 and 3 leave a few dozen), the best of them are scaled up to tasks along
the axis with the best reuse, in both orders; the model ranks what results (Roller, sections 3.3 and 3.4). The tile
that the planner's own reasoning gives is one candidate more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import ceil, prod

from tilewright.devices.device import Device
from tilewright.plan.cost.construct import reuse_score
from tilewright.plan.cost.cost import Model, Prediction, Schedule, tile_loops
from tilewright.plan.cost.expression import Expression
from tilewright.plan.cost.rtile import RTile
from tilewright.plan.cost.rules import Machine, accumulators, bank_free, fits_registers, hides_latency, machine_of
from tilewright.plan.model.tiles import even

_ROWS = 16  # of a register tile
_PARTS = 2, 4, 8  # of a vector
_UNITS = 6  # register tiles that are scaled up
_LARGEST_TASK = 1e-3  # seconds: larger tasks share the work badly
_SMALLEST_TASK = 2e-6  # seconds: smaller ones are mostly dispatch
_VARIANT = 2e-3  # what another tile shape in the code may cost: it is compiled, and fills the instruction cache


@dataclass(frozen=True)
class Ranked:
    """A schedule, its predicted times on one core and on all, and the figure that candidates are ordered by."""

    schedule: Schedule
    one: Prediction
    all: Prediction
    rank: float


@lru_cache(512)
def rank(expression: Expression, base: Schedule, device: Device, wide: bool = False) -> tuple[Ranked, ...]:
    """All candidates of a nest, best first; among equals the planner's own tile, then the order of construction.

    Args:
        expression: the nest.
        base: the tile that the planner's reasoning gives; its loops with a register tile are the rows and lanes.
        device: the machine.
        wide: scale all register tiles up, not the best ones only: for measurements, and to judge the ranking.
    """
    model, machine = Model(device), machine_of(device)
    schedules = list(dict.fromkeys([base, *_candidates(expression, base, model, machine, wide)]))
    ranked = [_evaluate(expression, schedule, model) for schedule in schedules]
    return tuple(sorted(ranked, key=lambda r: r.rank))  # stable: deterministic among equals


def one_of_several(expression: Expression, schedule: Schedule, device: Device, last: bool) -> Ranked:
    """The prediction of a nest in a task of several, whose schedule is given."""
    return _evaluate(expression, schedule, Model(device), last)


def _evaluate(expression: Expression, schedule: Schedule, model: Model, last: bool = True) -> Ranked:
    cores = model.device.units.count
    one, most = model.on_cores(expression, schedule, (1, cores), last=last)
    figure = (one.seconds + cores * most.seconds) * (1 + _VARIANT * (model.variants(expression, schedule) - 1))
    return Ranked(schedule, one, most, float(f"{figure:.2e}"))  # what differs by less than 1 % is equal


# Register tiles -----------------------------------------------------------------------------------------------------


def _candidates(
    expression: Expression, base: Schedule, model: Model, machine: Machine, wide: bool
) -> Iterator[Schedule]:
    base = replace(base, block=None)
    units = list(dict.fromkeys([base.register, *_register_tiles(expression, base, machine, wide)]))
    whole = replace(base, task=expression.extents)
    cost = {unit: model.compute_cycles(expression, replace(whole, register=unit)) for unit in units}
    best = sorted(units, key=lambda unit: float(f"{cost[unit]:.2e}"))[: None if wide else _UNITS]
    for unit in best:
        yield from _tasks(expression, replace(base, register=unit), model, 0.0 if wide else _SMALLEST_TASK)


def _register_tiles(expression: Expression, base: Schedule, machine: Machine, wide: bool) -> Iterator[tuple[int, ...]]:
    """Register tiles along the rows and lanes of `base` that fit the registers, fill the pipes and keep rows in L1.

    `wide` adds some that break rules 1 and 3, parts of vectors and rows that evict each other: the model should know.
    """
    rows, lane = tile_loops(expression, base.register)
    if not expression.macs:
        yield from _other_lanes(expression, machine, wide)
    if lane is None:
        return
    widths = _widths(expression.extents[lane], machine.lanes, 4 if expression.macs else 8)
    if wide and lane not in expression.reductions and not any(o.fixed for o in expression.inputs):
        widths = [*(w for w in _PARTS if w < min(widths)), *widths]
    for width, heights in product(widths, _heights(expression, rows)):
        sizes = {lane: width, **dict(zip(rows, heights, strict=True))}
        tile = RTile(expression, tuple(sizes.get(d, 1) for d in range(expression.rank)))
        if _product_tile(tile, machine) if expression.macs else _map_tile(tile, machine):
            yield tile.shape


def _heights(expression: Expression, rows: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Sizes of the rows' loops, up to 16 rows: parts of the innermost one, or several of its whole lines."""
    if not rows:
        yield ()
        return
    *outer, last = rows
    line = expression.extents[last]
    for height in range(1, min(line, _ROWS) + 1):
        yield (*(1 for _ in outer), height)
    if outer:
        for lines in range(2, min(expression.extents[outer[-1]], _ROWS // line) + 1):
            yield (*(1 for _ in outer[1:]), lines, line)


def _other_lanes(expression: Expression, machine: Machine, wide: bool) -> Iterator[tuple[int, ...]]:
    """Lanes along each loop that is contiguous in an operand: a window may be summed for many results at a time.

    Rows of windows that overlap are summed side by side: what they share is loaded once.
    """
    for lane, extent in enumerate(expression.extents):
        if extent == 1 or not any(abs(o.factor(lane)) == 1 for o in expression.operands):
            continue
        strided = all(abs(o.factor(lane)) != 1 for o in expression.inputs)  # LLVM merges parts that lie side by side
        for width in [*(_PARTS if wide and strided else ()), *_widths(extent, machine.lanes, 8)]:
            for row, height in [(lane, width), *_window_rows(expression, lane)]:
                sizes = {row: height, lane: width}
                tile = RTile(expression, tuple(sizes.get(d, 1) for d in range(expression.rank)))
                if (wide or bank_free(tile, machine)) and fits_registers(tile, machine):
                    yield tile.shape


def _window_rows(expression: Expression, lane: int) -> Iterator[tuple[int, int]]:
    """Loops of which neighbouring rows share parts of their windows, and how many rows.

    A tile walks a dimension of an operand by one loop only: lanes along a window are no lanes beside its rows.
    """
    windows = [dict(terms) for o in expression.inputs for terms in o.index if terms is not None and len(terms) > 1]
    for row in expression.parallel:
        shared = [terms for terms in windows if row in terms]
        if row != lane and expression.extents[row] > 2 and shared and all(lane not in terms for terms in shared):
            yield row, 2


def _product_tile(tile: RTile, machine: Machine) -> bool:
    return fits_registers(tile, machine) and hides_latency(tile, machine) and bank_free(tile, machine)


def _map_tile(tile: RTile, machine: Machine) -> bool:
    """Tiles of rows are transposed in registers, so all of one lies there; tiles of a single row pass through."""
    rows, _ = tile_loops(tile.expression, tile.shape)
    return bank_free(tile, machine) and (not rows or accumulators(tile, machine) + 2 <= machine.registers)


def _widths(extent: int, lanes: int, most: int) -> list[int]:
    """Whole vectors, or the whole axis where it is no longer."""
    return sorted({min(extent, lanes * vectors) for vectors in range(1, most + 1) if vectors in (1, 2, 3, 4, 6, 8)})


# Tasks --------------------------------------------------------------------------------------------------------------


def _tasks(expression: Expression, base: Schedule, model: Model, smallest: float) -> Iterator[Schedule]:
    """Scale a register tile up along the axes of best reuse, until a task is too long to share or does not grow."""
    task = [e if d in expression.reductions else min(s, e) for d, (s, e) in enumerate(_pairs(expression, base))]
    per_point = _seconds_per_point(expression, base, model)
    while True:
        seconds = per_point * prod(task)
        if seconds >= smallest:
            for order in _orders(expression, base):
                yield replace(base, task=tuple(task), order=order)
        grown = _grow(expression, base, task)
        if grown is None:
            break
        if per_point * prod(grown) > _LARGEST_TASK and seconds >= smallest:
            break
        task = grown
    if per_point * prod(task) < smallest:
        yield replace(base, task=tuple(task))


def _pairs(expression: Expression, base: Schedule) -> Iterator[tuple[int, int]]:
    return zip(base.register, expression.extents, strict=True)


def _seconds_per_point(expression: Expression, base: Schedule, model: Model) -> float:
    whole = replace(base, task=expression.extents)
    return model.predict(expression, whole).seconds / max(expression.points, 1)


def _grow(expression: Expression, base: Schedule, task: Sequence[int]) -> list[int] | None:
    """The task doubled along the axis with the best reuse score; the innermost of equals."""
    tile = RTile(expression, tuple(task))
    best: tuple[float, int] | None = None
    sizes = {}
    for d in expression.parallel:
        step = min(base.register[d], expression.extents[d])
        size = min(ceil(2 * task[d] / step) * step, expression.extents[d])
        if size > task[d]:
            sizes[d] = even(expression.extents[d], size, step)
            score = (reuse_score(tile, d, size, 64), d)
            best = max(best, score) if best else score
    if best is None:
        return None
    grown = list(task)
    grown[best[1]] = max(sizes[best[1]], task[best[1]] + 1)
    return grown


def _orders(expression: Expression, base: Schedule) -> Iterator[tuple[int, ...]]:
    """The order of `base`, and for products the one with the loops of rows and lanes exchanged."""
    yield base.order
    rows, lane = tile_loops(expression, base.register)
    if not expression.macs or not rows or lane is None or {*rows, lane} & expression.reductions:
        return
    order = [d for d in base.order if d != lane]
    places = [order.index(d) for d in rows]
    before = base.order.index(lane) < min(base.order.index(d) for d in rows)
    order.insert(max(places) + 1 if before else min(places), lane)
    yield tuple(order)
