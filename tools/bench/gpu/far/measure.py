# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One case: built, checked against a reference in f32, then timed in turns with its peers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench.gpu.far import tensors as made
from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.ours import Ours
from bench.gpu.far.peers import PEERS, Given, Skip

#: Our forms of a call; all other names are peers.
OURS = ("ours", "ours_graph")


@dataclass(frozen=True)
class Effort:
    """How long a case is timed: seconds of a burst, bursts of each contestant."""

    burst: float = 0.03
    rounds: int = 7


@dataclass
class Row:
    """What became of a case.

    Attributes:
        name: of the case.
        slice: of the case.
        status: ok, slow (misses its goal), wrong, failed, not built, out of time.
        message: why, where it is not ok.
        error: max|ours - reference| / max|reference|; `peer_error` that of PyTorch's calls, `allowed` the bound.
        repeatable: whether two runs gave the same bits.
        seconds: median of the bursts, by contestant.
        spread: distance of the slowest and fastest burst of ours relative to the median.
        kernels: of one run of ours.
        notes: peers that were left out, and why.
    """

    name: str
    slice: str
    status: str = "ok"
    message: str = ""
    error: float | None = None
    peer_error: float | None = None
    allowed: float | None = None
    repeatable: bool | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    spread: float | None = None
    kernels: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goal: float | None = None
    reached: float | None = None
    rate: float | None = None

    @property
    def ours(self) -> float | None:
        """The faster form of our call."""
        return min((t for name, t in self.seconds.items() if name in OURS), default=None)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its time."""
        peers = [(t, name) for name, t in self.seconds.items() if name not in OURS]
        return (min(peers)[1], min(peers)[0]) if peers else None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def measure(
    root: Path,
    case: Mapping[str, Any],
    machine: Gpu | Emulator,
    limits: Mapping[str, float],
    effort: Effort | None,
    peers: Sequence[str] | None = None,
) -> Row:
    """Run one case. What goes wrong is in the row: no case stops the suite.

    Args:
        root: folder of the pack.
        case: its entry in suite.json.
        machine: that runs it.
        limits: of the machine.
        effort: of the timing; None: check only.
        peers: only these; None for those of the case.
    """
    row = Row(case["name"], case["slice"], goal=case["goal"])
    if case["folder"] is None:
        row.status, row.message = "not built", case["failure"]
        return row
    try:
        with torch.inference_mode():
            _measure(row, root, case, machine, limits, effort, case["peers"] if peers is None else peers)
    except Exception as error:
        row.status, row.message = "failed", f"{type(error).__name__}: {error}"
    return row


def _measure(
    row: Row,
    root: Path,
    case: Mapping[str, Any],
    machine: Gpu | Emulator,
    limits: Mapping[str, float],
    effort: Effort | None,
    peers: Sequence[str],
) -> None:
    every = made.fill(case["tensors"], root / "weights", case["weights"], machine.place)
    inputs = made.free_inputs(case, every)
    module = made.torch_module(case, every, widen=False)
    outputs = made.empty_outputs(case, machine.place)
    ours = Ours(root / case["folder"], machine, every, outputs)
    reference = made.torch_module(case, made.widened(every), widen=True)(*made.widened(inputs))
    if not _check(row, case, ours, module(*inputs), reference) or effort is None or not machine.timed:
        return
    weights = [t for one, t in zip(case["tensors"], every, strict=True) if one.get("weight")]
    calls = _contestants(row, ours, Given(case, module, inputs, weights), peers, reference)
    _time(row, machine, calls, effort)
    row.kernels = ours.kernels()
    _judge(row, case, limits)


def _check(
    row: Row,
    case: Mapping[str, Any],
    ours: Ours,
    eager: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
) -> bool:
    """Fill in errors; whether ours is right."""
    ours.run()
    first = [tensor.clone() for tensor in ours.results()]
    ours.run()
    row.repeatable = all(torch.equal(a, b) for a, b in zip(first, ours.results(), strict=True))
    row.error, row.peer_error = made.error(first, reference), made.error(eager, reference)
    row.allowed = max(case["error"], 2 * row.peer_error)
    if row.error <= row.allowed:
        return True
    row.status, row.message = "wrong", f"error {row.error:.2g}, allowed {row.allowed:.2g}"
    return False


def _contestants(
    row: Row, ours: Ours, given: Given, peers: Sequence[str], reference: Sequence[torch.Tensor]
) -> dict[str, Callable[[], Any]]:
    """What is timed, by name; peers that cannot, or are wrong, are left out with a note."""
    calls: dict[str, Callable[[], Any]] = {"ours": ours.run}
    graph = ours.graph()
    if graph is not None:
        calls["ours_graph"] = graph
    for name in peers:
        try:
            call = PEERS[name](given)
            for _ in range(3):
                results = call()
            found = made.error(results, reference)
        except Skip as reason:
            row.notes.append(f"{name}: {reason}")
        except Exception as error:
            row.notes.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        else:
            if found > 2 * (row.allowed or 0):
                row.notes.append(f"{name}: left out, error {found:.2g}")
            else:
                calls[name] = call
    return calls


def _time(row: Row, machine: Gpu | Emulator, calls: Mapping[str, Callable[[], Any]], effort: Effort) -> None:
    """Bursts in turns, so that clocks and heat are the same for all."""
    bursts: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        machine.seconds(call, effort.burst / 3)
    for _ in range(effort.rounds):
        for name, call in calls.items():
            bursts[name].append(machine.seconds(call, effort.burst))
    row.seconds = {name: statistics.median(times) for name, times in bursts.items()}
    best = min((name for name in row.seconds if name in OURS), key=row.seconds.__getitem__)
    row.spread = (max(bursts[best]) - min(bursts[best])) / row.seconds[best]


def _judge(row: Row, case: Mapping[str, Any], limits: Mapping[str, float]) -> None:
    """Rates, and whether the goal is reached."""
    ours = row.ours
    assert ours is not None
    row.rate = (case["gbyte"] or case["gflop"] or 0) / ours or None
    if case["goal"] is None:
        return
    if "copy" in case["against"]:
        row.reached = case["gbyte"] / ours / limits["copy_gb_s"]
    else:
        rivals = [row.seconds[name] for name in case["against"] if name in row.seconds]
        row.reached = min(rivals) / ours if rivals else None
    if row.reached is None:
        row.message = f"none of {', '.join(case['against'])} ran: the goal cannot be judged"
    elif row.reached < case["goal"]:
        row.status = "slow"


class Budget:
    """Time for the whole suite."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()
