# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One case inside its process: built, checked against a reference in f32, then timed in turns with its peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench.gpu.far import tensors as made
from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.ours import Ours
from bench.gpu.far.peers import Given
from bench.gpu.far.row import Row
from bench.gpu.far.timing import Effort, contestants, judge, take_turns

#: Runs that are compared bit by bit where CTAs share work in an order that may differ, and elsewhere.
MANY, FEW = 50, 2


class Lost(Exception):
    """The process has no usable CUDA context any more."""


@dataclass
class Task:
    """What is to be done with a case.

    Attributes:
        case: its entry in suite.json.
        machine: that runs it.
        limits: rates of the machine at best.
        effort: of the timing; None: check only.
        peers: that it is timed with; None: those of the case.
        without: peers among them that are left out, as they ended a process before.
        many: runs that are compared where CTAs share work in an order that may differ.
        report: is called with the name of each step before it begins, and the row so far: what is known if it is the
            last.
    """

    case: Mapping[str, Any]
    machine: Gpu | Emulator
    limits: Mapping[str, float] = field(default_factory=dict)
    effort: Effort | None = None
    peers: Sequence[str] | None = None
    without: Sequence[str] = ()
    many: int = MANY
    report: Callable[[str, Row], None] = lambda step, row: None

    @property
    def wanted(self) -> list[str]:
        """The peers' names."""
        return [n for n in (self.case["peers"] if self.peers is None else self.peers) if n not in self.without]


def measure(root: Path, task: Task) -> Row:
    """Run one case of the pack in folder `root`; an error is in the row.

    Raises:
        Lost: an error after which no call of this process succeeds; `task.report` has told the row.
    """
    row = Row.new(task.case)
    if row.status == "not built":
        return row
    try:
        with torch.inference_mode():
            _measure(row, root, task)
    except Exception as error:
        row.status, row.message = "failed", f"{type(error).__name__}: {error}"
        if isinstance(error, Lost) or task.machine.is_lost:
            raise Lost(str(error)) from error
    return row


def _measure(row: Row, root: Path, task: Task) -> None:
    case, machine = task.case, task.machine
    task.report("inputs", row)
    every = made.fill(case["tensors"], root / "weights", case["weights"], machine.place)
    timed = task.effort is not None and machine.timed
    copies = [every]
    if timed:
        count = made.copies_beyond(every, machine.l2_bytes)
        copies += [[tensor.clone() for tensor in every] for _ in range(count - 1)]
    row.copies = len(copies)
    module = made.torch_module(case, every, widen=False)
    given = [Given(case, module, *_split(case, every))]
    given += [Given(case, _with(case, module, copy), *_split(case, copy)) for copy in copies[1:]]
    task.report("loading", row)
    ours = Ours(root / case["folder"], machine, copies, made.empty_outputs(case, machine.place))
    row.code, row.notes = ours.code, list(ours.remarks)
    row.kernels = ours.kernels(timed=False)
    task.report("reference", row)
    wide = made.torch_module(case, made.widened(every), widen=True)
    reference = wide(*made.widened(made.free_inputs(case, every)))
    eager = given[0].module(*given[0].inputs)
    task.report("check", row)
    first = _check(row, task, ours, eager, reference)
    if row.status != "ok" or not timed:
        return
    assert task.effort is not None
    calls = contestants(row, machine, ours, given, task, reference)
    take_turns(row, machine, calls, task.effort, task.report)
    row.clocks = machine.state()
    task.report("check after timing", row)
    _check_after(row, ours, calls, first, reference)
    judge(row, case, task.limits)
    task.report("time of each kernel", row)
    row.kernels = ours.kernels(timed=True)


def _split(case: Mapping[str, Any], every: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The tensors that are no weights, and the weights."""
    weights = [tensor for one, tensor in zip(case["tensors"], every, strict=True) if one.get("weight")]
    return made.free_inputs(case, every), weights


def _with(case: Mapping[str, Any], module: torch.nn.Module, every: Sequence[torch.Tensor]) -> torch.nn.Module:
    """The module of another copy of the weights; without weights the same one, which is compiled once then."""
    return made.torch_module(case, every, widen=False) if _split(case, every)[1] else module


def _check(
    row: Row, task: Task, ours: Ours, eager: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Fill in errors, and whether runs give the same bits; returns the bits of the first."""
    first: list[torch.Tensor] = []
    row.repeatable, row.peer_error = True, made.error(eager, reference)
    row.allowed = max(task.case["error"], 2 * row.peer_error)
    for number in range(max(FEW, task.many) if ours.may_vary else FEW):
        ours.poison()
        ours.run()
        results = ours.results()
        row.runs = number + 1
        if number == 0:
            first = made.bits(results)
            row.error = made.error(results, reference)
            _refuse(row, row.error, made.untouched(results), "")
        elif not made.equal_bits(first, results):
            row.repeatable = False
            _refuse(row, made.error(results, reference), made.untouched(results), f"run {number + 1}: ")
            return first
        if row.status != "ok":
            return first
    return first


def _refuse(row: Row, error: float, untouched: int, where: str) -> None:
    """Mark the row where an error is too large."""
    assert row.allowed is not None
    if error <= row.allowed:
        return
    row.status, row.message = "wrong", f"{where}error {error:.2g}, allowed {row.allowed:.2g}"
    if untouched:
        row.message += f"; {untouched} elements are as they were before the run, or NaN"


def _check_after(
    row: Row,
    ours: Ours,
    calls: Mapping[str, Any],
    first: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
) -> None:
    """Results once more, of each form of ours: what many runs and other kernels in between may have broken."""
    for name, call in calls.items():
        if name not in ("ours", "ours_graph"):
            continue
        ours.poison()
        call.run()
        results = ours.results()
        found = made.error(results, reference)
        row.error_after = max(found, row.error_after or 0.0)
        _refuse(row, found, made.untouched(results), f"{name} after timing: ")
        if row.repeatable and not made.equal_bits(first, results):
            row.repeatable = False
            row.notes.append(f"{name} after timing gave other bits than before")
