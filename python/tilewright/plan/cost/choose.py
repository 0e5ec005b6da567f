# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Candidates for a nest of the IR, ranked by the performance model.

A candidate is a schedule that the code generator can carry out: a register tile of rows and lanes, a tile per task, an
order. `construct.py` makes register tiles; the best of them are scaled up to tasks, in both orders; the model ranks
what results (Roller, section 3.4). The tile that the planner's own reasoning gives is one candidate more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tilewright.devices.device import Device
from tilewright.plan.cost.construct import scale_up, unit_tiles
from tilewright.plan.cost.cost import Model, Prediction, Schedule, tile_loops
from tilewright.plan.cost.expression import Expression
from tilewright.plan.cost.rtile import RTile
from tilewright.plan.cost.rules import Machine, machine_of

_UNITS = 6  # register tiles that are scaled up: a bound of the search


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
    figure = (one.seconds + cores * most.seconds) * (
        1 + model.rate("variant") * (model.variants(expression, schedule) - 1)
    )
    return Ranked(schedule, one, most, float(f"{figure:.2e}"))  # what differs by less than 1 % is equal


def _candidates(
    expression: Expression, base: Schedule, model: Model, machine: Machine, wide: bool
) -> Iterator[Schedule]:
    base = replace(base, block=None)
    units = list(dict.fromkeys([base.register, *unit_tiles(expression, base.register, machine, wide)]))
    whole = replace(base, task=expression.extents)
    cost = {unit: model.compute_cycles(expression, replace(whole, register=unit)) for unit in units}
    best = sorted(units, key=lambda unit: float(f"{cost[unit]:.2e}"))[: None if wide else _UNITS]
    smallest = model.rate("smallest_task")
    for unit in best:
        yield from _tasks(expression, replace(base, register=unit), model, machine, 0.0 if wide else smallest)


def _tasks(
    expression: Expression, base: Schedule, model: Model, machine: Machine, smallest: float
) -> Iterator[Schedule]:
    """Scale a register tile up until a task is too long to share; of tasks too short to hand out the longest."""
    whole = replace(base, task=expression.extents)
    per_point = model.predict(expression, whole).seconds / max(expression.points, 1)
    largest, seconds, task = model.rate("largest_task"), 0.0, base.register
    unit = RTile(expression, tuple(map(min, base.register, expression.extents)))
    for tile in scale_up(unit, machine):
        before, seconds = seconds, per_point * prod(tile.shape)
        if before and before >= smallest and seconds > largest:
            return
        task = tile.shape
        if seconds >= smallest:
            for order in _orders(expression, base):
                yield replace(base, task=task, order=order)
    if seconds < smallest:
        yield replace(base, task=task)


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
