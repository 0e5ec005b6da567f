# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tile-plan-tiles` asks: which of the ranked schedules a nest takes, and what is written about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.devices.device import Device
from tilewright.ir import decisions
from tilewright.ir.structure import LinalgOp, set_attribute
from tilewright.mlir import ir
from tilewright.plan.cost.choose import Ranked, one_of_several, rank
from tilewright.plan.cost.cost import Schedule, tile_loops
from tilewright.plan.cost.describe import nest_expression
from tilewright.plan.model.tiles import Tiling


@dataclass
class Decider:
    """Ranks schedules for nests and picks one.

    Attributes:
        device: the machine.
        choices: kernel's name -> number of the candidate that it takes (measured choices).
    """

    device: Device
    choices: Mapping[str, int] = field(default_factory=dict)

    def decide(
        self,
        kernel: str,
        root: LinalgOp,
        members: Sequence[LinalgOp],
        own: Schedule,
        *,
        free: bool,
        packed: frozenset[ir.Value] = frozenset(),
        task: Sequence[LinalgOp] = (),
        keep: bool = False,
        lane: int | None = None,
    ) -> Schedule:
        """Return the schedule of a nest and set `tile.prediction` on its root.

        Args:
            kernel: name of the kernel.
            root: the nest's root.
            members: the nest's operations.
            own: what the planner's own reasoning gives.
            packed: values that are stored as the nest reads them.
            task: operations of the nest's task, in order.
            keep: whether only a measured choice may replace the planner's own tile.
            lane: loop that layouts make the lanes of; tiles with other lanes are kept.
            free: whether the schedule may be chosen: the nest is alone in its task, and no element is gathered.
        """
        if not root.rank:
            return own
        if not free:
            expression = nest_expression(root, members, packed, self.device, task)
            last = not task or task[-1] in members
            set_attribute(
                root.op, decisions.PREDICTION, _text(one_of_several(expression, own, self.device, last), None, 1)
            )
            return own
        wide = kernel in self.choices  # numbers of measured choices count in the wide list
        expression = nest_expression(root, members, packed, self.device)
        keep |= lane is not None and tile_loops(expression, own.register)[1] != lane
        ranked = rank(expression, own, self.device, wide)
        number = self._number(kernel, ranked, own, keep)
        chosen = ranked[number]
        runner_up = next((r for r in ranked if r is not chosen), None)
        set_attribute(root.op, decisions.PREDICTION, _text(chosen, runner_up, len(ranked)))
        return chosen.schedule

    def _number(self, kernel: str, ranked: Sequence[Ranked], own: Schedule, keep: bool) -> int:
        if kernel in self.choices:
            return min(self.choices[kernel], len(ranked) - 1)
        number = _number_of(ranked, own)
        # What promises less than predictions err by is no gain.
        sure = ranked[0].rank < (1 - self.device.rate("prediction_error")) * ranked[number].rank
        return 0 if sure and not keep else number


def _number_of(ranked: Sequence[Ranked], schedule: Schedule) -> int:
    return next(i for i, r in enumerate(ranked) if r.schedule == schedule)


def rtile_text(schedule: Schedule) -> str:
    """The schedule as an attribute."""
    return str(Tiling(list(schedule.task), list(schedule.register), list(schedule.order)))


def _text(chosen: Ranked, runner_up: Ranked | None, candidates: int) -> str:
    one = chosen.one
    fields = [
        f"ns = {_ns(one.seconds)} : i64",
        f"all_cores_ns = {_ns(chosen.all.seconds)} : i64",
        f'bound = "{one.bound}"',
        f"compute_ns = {_ns(one.compute)} : i64",
        f"dispatch_ns = {_ns(one.dispatch)} : i64",
        f"candidates = {candidates} : i64",
        *(f"{name}_bytes = {moved} : i64" for name, moved in one.moved.items()),
    ]
    if runner_up is not None:
        fields.append(f"runner_up = {rtile_text(runner_up.schedule)}")
        fields.append(f"runner_up_ns = {_ns(runner_up.one.seconds)} : i64")
    return "{" + ", ".join(fields) + "}"


def _ns(seconds: float) -> int:
    return round(float(f"{seconds:.3e}") * 1e9)


def prediction_of(op: ir.Operation | ir.OpView) -> dict[str, object]:
    """What `tile.prediction` of an operation says, numbers as int, the rest as text; empty where it has none."""
    attributes = op.operation.attributes
    if decisions.PREDICTION not in attributes:
        return {}
    found = {}
    for named in ir.DictAttr(attributes[decisions.PREDICTION]):
        value = named.attr
        found[named.name] = value.value if isinstance(value, ir.IntegerAttr | ir.StringAttr) else str(value)
    return found
