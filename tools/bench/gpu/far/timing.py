# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of a case: contestants in turns, each over all copies of the inputs, plainly and as a CUDA graph."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from bench.gpu.far import tensors as made
from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.peers import PEERS, Call, Given, Skip
from bench.gpu.far.row import OURS, Row

if TYPE_CHECKING:
    from bench.gpu.far.measure import Task
    from bench.gpu.far.ours import Ours


@dataclass(frozen=True)
class Effort:
    """How long a case is timed: seconds of a burst, bursts of each contestant."""

    burst: float = 0.03
    rounds: int = 7


@dataclass(frozen=True)
class Timed:
    """What is timed: a call that counts as so many runs of the case."""

    run: Callable[[], Any]
    runs: int = 1


def in_turn(calls: Sequence[Callable[[], Any]]) -> Timed:
    """Each time the next of the calls."""
    if len(calls) == 1:
        return Timed(calls[0])
    turn = itertools.cycle(calls)
    return Timed(lambda: next(turn)())


def contestants(
    row: Row, machine: Gpu | Emulator, ours: Ours, given: Sequence[Given], task: Task, reference: Sequence[torch.Tensor]
) -> dict[str, Timed]:
    """What is timed, by name; peers that cannot, or are wrong, are left out with a note.

    Every peer also runs as a CUDA graph, NAME_graph, where ours does; one that cannot be recorded has a note.

    Raises:
        Lost: a peer cost the process its context.
    """
    calls = {"ours": in_turn([lambda copy=copy: ours.run(copy) for copy in range(ours.copies)])}
    task.report("ours_graph", row)
    graph = _ours_graph(row, machine, ours)
    if graph is not None:
        calls["ours_graph"] = graph
    row.notes += [f"{name}: left out, it ended the process" for name in task.without]
    for name in task.wanted:
        task.report(f"peer {name}", row)
        forms = _peer(row, machine, name, given, reference)
        if forms is None:
            continue
        calls[name] = in_turn(forms)
        twin = f"{name}_graph"
        if graph is not None and twin not in task.without:
            task.report(f"peer {twin}", row)
            recorded = _twin(row, machine, twin, forms, reference)
            calls |= {} if recorded is None else {twin: recorded}
    return calls


def _ours_graph(row: Row, machine: Gpu | Emulator, ours: Ours) -> Timed | None:
    try:
        graph = ours.graph()
    except Exception as error:
        _note(row, machine, "ours_graph: cannot be recorded", error)
        return None
    return None if graph is None else Timed(graph, ours.copies)


def _peer(
    row: Row, machine: Gpu | Emulator, name: str, given: Sequence[Given], reference: Sequence[torch.Tensor]
) -> list[Call] | None:
    """A peer's call for each copy of the inputs; None with a note where it cannot, or is wrong."""
    try:
        calls = [PEERS[name](one) for one in given]
        found = 0.0
        for call in calls:
            for _ in range(3):
                results = call()
            found = max(found, made.error(results, reference))
    except Skip as reason:
        row.notes.append(f"{name}: {reason}")
        return None
    except Exception as error:
        _note(row, machine, name, error)
        return None
    if found > 2 * (row.allowed or 0):
        row.notes.append(f"{name}: left out, error {found:.2g}")
        return None
    return calls


def _twin(
    row: Row, machine: Gpu | Emulator, name: str, calls: Sequence[Call], reference: Sequence[torch.Tensor]
) -> Timed | None:
    """A peer's calls as one graph."""
    results: list[Sequence[torch.Tensor]] = []

    def every() -> None:
        results[:] = [call() for call in calls]

    try:
        replay = machine.record(every)
        made.poison(results[-1])
        replay()
        found = made.error(results[-1], reference)
    except Exception as error:
        _note(row, machine, f"{name}: cannot be recorded", error)
        return None
    if found > 2 * (row.allowed or 0):
        row.notes.append(f"{name}: left out, error {found:.2g}")
        return None
    return Timed(replay, len(calls))


def _note(row: Row, machine: Gpu | Emulator, name: str, error: Exception) -> None:
    """A line about what did not work; the error itself where it cost the context."""
    if machine.is_lost:
        raise error
    text = str(error).splitlines()[0] if str(error) else ""
    row.notes.append(f"{name}: {type(error).__name__}: {text}")


def take_turns(
    row: Row,
    machine: Gpu | Emulator,
    calls: Mapping[str, Timed],
    effort: Effort,
    report: Callable[[str, Row], None],
) -> None:
    """Bursts in turns, so that clocks and heat are the same for all; ours are told after the first round."""
    bursts: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():
        report(f"warm-up of {name}", row)
        machine.seconds(call.run, effort.burst / 3)
    for number in range(effort.rounds):
        report(f"round {number + 1} of the timing", row)
        for name, call in calls.items():
            bursts[name].append(machine.seconds(call.run, effort.burst) / call.runs)
        row.seconds = {name: statistics.median(times) for name, times in bursts.items()}
    best = min((name for name in row.seconds if name in OURS), key=row.seconds.__getitem__)
    row.spread = (max(bursts[best]) - min(bursts[best])) / row.seconds[best]


def judge(row: Row, case: Mapping[str, Any], limits: Mapping[str, float]) -> None:
    """Rates, and whether the goal is reached."""
    ours = row.ours
    assert ours is not None
    row.rate = (case["gbyte"] or case["gflop"] or 0) / ours or None
    if case["goal"] is None or row.status != "ok":
        return
    if "copy" in case["against"]:
        rate = limits.get("copy_gb_s")
        row.reached = case["gbyte"] / ours / rate if rate else None
    else:
        named = {form for name in case["against"] for form in (name, f"{name}_graph")}
        rivals = [seconds for name, seconds in row.seconds.items() if name in named]
        row.reached = min(rivals) / ours if rivals else None
    if row.reached is None:
        row.message = f"none of {', '.join(case['against'])} ran: the goal cannot be judged"
    elif row.reached < case["goal"]:
        row.status = "slow"
