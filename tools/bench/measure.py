# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One row: ours and the peers on one case, in alternating bursts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

import models
from bench import arrays
from bench.case import Case, Form
from bench.client import Client, PeerMissing, WorkerError
from bench.hold import Hold
from bench.limits import Limits, Meter
from bench.machine import BUSY, CALM, Neighbours
from bench.together import Turn
from models import lists, sparse
from models.pruned import filled, filled_array

PAUSE = 0.03  # seconds between bursts: ONNX Runtime's and libomp's idle threads stop spinning well before
_LIMIT = "the limit"
OWN = "own "  # how names of rivals begin: forms of the model that are ours, too


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float = 0.2  # per burst
    least: int = 2  # runs per burst
    rounds: int = 10
    most_rounds: int = 25
    budget: float = 120.0  # seconds after which a row has to do with the rounds it has (three at least)
    hold: tuple[str, ...] = ()  # a command that keeps other work away while its child runs


@dataclass
class Row:
    """A line of the result table; times in milliseconds."""

    case: str
    threads: int
    target: float | None  # of the ratio
    ours_ms: float | None = None
    peer: str | None = None
    peer_ms: float | None = None
    ratio: float | None = None
    spread: float | None = None
    peer_spread: float | None = None
    rate: float | None = None  # GFLOP/s, or GB/s where the case counts bytes
    share: float | None = None  # the rate relative to the machine's limit
    limit: float | None = None  # what the share is of
    share_target: float | None = None
    error: float | None = None
    others: float | None = None  # cores that processes outside this run kept busy meanwhile
    status: str = "ok"  # ok, slow, wrong, failed
    message: str = ""
    notes: list[str] = field(default_factory=list)  # about peers that did not take part
    all_ms: dict[str, float] = field(default_factory=dict)
    load_s: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)  # time of a rival, or a peer with a target, in units of ours
    gain_targets: dict[str, float] = field(default_factory=dict)
    bursts_ms: dict[str, list[float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def spread(values: Sequence[float]) -> float:
    """The distance between the 10th and the 90th percentile, relative to the median."""
    low, high = np.percentile(values, [10, 90])
    return float((high - low) / median(values))


def relative_error(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """The largest max|ours - theirs| / max|theirs| over the outputs; infinite where shapes differ or NaN appear."""
    if [a.shape for a in ours] != [b.shape for b in theirs]:
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        b = b.astype(np.float64)
        error = np.abs(a.astype(np.float64) - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-30)
        worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    return worst


def judge(row: Row, bursts: dict[str, list[float]], ours: str, limit: float) -> None:
    """Fill in the row's times, ratio and status from the burst medians (seconds) of everybody."""
    row.bursts_ms = {name: [round(t * 1e3, 5) for t in times] for name, times in bursts.items()}
    row.all_ms = {name: median(times) * 1e3 for name, times in bursts.items()}
    row.ours_ms, row.spread = row.all_ms[ours], spread(bursts[ours])
    rivals = [name for name in bursts if name.startswith(OWN)]
    others = [name for name in bursts if name != ours and name not in rivals]
    for name in [*rivals, *(name for name in row.gain_targets if name in others)]:
        row.gains[name] = median(b / a for a, b in zip(bursts[ours], bursts[name], strict=True))
    row.peer = min(others, key=row.all_ms.__getitem__, default=None)
    if row.peer is not None:
        row.peer_ms, row.peer_spread = row.all_ms[row.peer], spread(bursts[row.peer])
        # Neighbouring bursts share the machine's mood: the median of their ratios is steadier than that of medians.
        row.ratio = median(a / b for a, b in zip(bursts[ours], bursts[row.peer], strict=True))
    if row.error is not None and row.error > limit:
        row.status, row.message = "wrong", f"results differ from the peers': {row.error:.1e} > {limit:.0e}"
    elif row.target is not None and row.ratio is not None and row.ratio > row.target:
        row.status = "slow"
    elif any(row.gains.get(name, least) < least for name, least in row.gain_targets.items()):
        row.status = "slow"


def judge_rate(row: Row, case: Case, limit: float | None, bursts: Sequence[float] = ()) -> None:
    """Fill in the rate and its part of the machine's limit; a part that is too small is slow.

    Args:
        row: with our times.
        case: what the rate counts, and its least part of the limit.
        limit: as measured at the start of the run.
        bursts: seconds of 10^9 operations (or bytes) at the limit, measured between our bursts; they go before `limit`.
    """
    if not case.work or not row.ours_ms:
        return
    row.rate, row.share_target = case.work / row.ours_ms * 1e3, case.share.get(row.threads)
    ours = next(iter(row.bursts_ms.values()), [])
    if bursts:
        row.share = median(case.work * least / time * 1e3 for least, time in zip(bursts, ours, strict=True))
        row.limit = 1 / median(bursts)
    elif limit:
        row.share, row.limit = row.rate / limit, limit
    if row.status == "ok" and row.share is not None and row.share < (row.share_target or 0.0):
        row.status = "slow"


def at_tokens(results: list[np.ndarray], prepared: Mapping[str, str], padded: str) -> list[np.ndarray]:
    """Results [batch, tokens, ...] with zeros where the input `padded` is zero; all of them where none is named."""
    if not padded:
        return results
    mask = arrays.load(Path(prepared["inputs"]))[padded] != 0
    return [np.where(mask.reshape(*mask.shape, *[1] * (one.ndim - 2)), one, 0) for one in results]


def believe(row: Row, results: dict[str, list[np.ndarray]], ours: str, limit: float) -> set[str]:
    """Set the row's error and return the peers whose results are good; the others are named in the row's notes.

    Ours is wrong where no peer agrees with it, and where those that do not agree with it agree with each other.
    """
    peers = [name for name in results if name != ours]
    errors = {name: relative_error(results[ours], results[name]) for name in peers}
    apart = [name for name in peers if errors[name] > limit]
    agree = [name for name in peers if name not in apart]
    if not agree or any(relative_error(results[a], results[b]) <= limit for a in apart for b in apart if a < b):
        row.error = max(errors.values(), default=None)
        return set(peers)
    row.error = max(errors[name] for name in agree)
    row.notes += [f"{name} is left out, its results differ: {errors[name]:.1e} > {limit:.0e}" for name in apart]
    return set(agree)


def alternate(
    clients: Mapping[str, Callable[[], float]], effort: Effort, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    """The times that everybody tells when called, round by round; the order turns around each round."""
    bursts: dict[str, list[float]] = {name: [] for name in clients}
    order, start = list(clients), time.monotonic()
    for done in range(-1, effort.most_rounds):  # round -1 warms up
        if done >= 3 and time.monotonic() - start > effort.budget:
            break
        if done >= effort.rounds and max(spread(b) for b in bursts.values()) < CALM:
            break
        tell(f"round {done + 1} of {effort.rounds}" if done < effort.rounds else f"round {done + 1}, noisy machine")
        for name in order:
            time.sleep(PAUSE)
            seconds = clients[name]()
            if done >= 0:
                bursts[name].append(seconds)
        order.reverse()
    return bursts


def measure(
    case: Case,
    threads: int,
    ours: str,
    effort: Effort,
    tell: Callable[[str], None],
    limits: Limits | None = None,
    target: str = "cpu",
    turn: Turn | None = None,
) -> Row:
    """Measure one case. Whatever goes wrong in our worker ends up in the row's status, in a peer's in its notes.

    Its bursts run in a `turn`, where one is given, else in a hold of their own.
    """
    row = Row(case.name, threads, case.target)
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilewright-bench-")))
            meter = limits.meter(case.limit, threads) if limits and threads in case.share else None
            if meter:
                stack.enter_context(meter)
            bursts = _measure(
                row, case, ours, effort, tell, stack, folder, meter, target, turn or partial(Hold, effort.hold)
            )
        judge_rate(row, case, limits.rate(case.limit, threads) if limits else None, bursts)
    except WorkerError as error:
        row.status, row.message = "failed", str(error)
    return row


def _measure(
    row: Row,
    case: Case,
    ours: str,
    effort: Effort,
    tell: Callable[[str], None],
    stack: ExitStack,
    folder: Path,
    meter: Meter | None,
    target: str,
    turn: Turn,
) -> list[float]:
    """Fill in the row but for its rate; returns the bursts of the meter."""
    tell("building the model")
    own = Form("")
    rivals = {OWN + rival.name: rival for rival in case.rivals}
    row.gain_targets = {name: rival.gain for name, rival in rivals.items() if rival.gain} | dict(case.gains)
    clients: dict[str, Client] = {}
    results: dict[str, list[np.ndarray]] = {}
    prepared: dict[str, dict[str, str]] = {}
    for number, name in enumerate([*_names(ours, case.peers), *rivals]):
        tell(f"{name} loads")
        try:
            form = rivals.get(name) or (own if name == ours else case.peers_form or own)
            if form.name not in prepared:
                prepared[form.name] = prepare(case, form, folder / str(number))
            client = stack.enter_context(Client(ours if name in rivals else name.removesuffix(" (again)"), row.threads))
            asked = dict(
                precision=case.precision,
                accuracy=case.accuracy,
                target=target,
                cover=form.cover,
                without=form.without,
                program=case.program,
                padded=case.padded,
            )
            reply = client.ask("load", **prepared[form.name], **asked)
            results[name] = at_tokens(_outputs(client, folder / f"{number}.npz"), prepared[form.name], case.padded)
        except WorkerError as error:
            if name == ours:
                raise
            text = str(error).splitlines()[0]
            row.notes.append(text if isinstance(error, PeerMissing) else f"without {name}, which failed: {text}")
            continue
        clients[name], row.load_s[name], row.versions[name] = client, reply["seconds"], reply["version"]
        row.settings[name] = reply["settings"]
        row.notes += [reply["expected"]] if name == ours and reply.get("expected") else []
    compared = {name: result for name, result in results.items() if name not in rivals or rivals[name].same}
    good = believe(row, compared, ours, case.error) | (rivals.keys() - compared.keys())
    clients = {name: client for name, client in clients.items() if name == ours or name in good}
    for name, client in clients.items():  # what keeps heavy processes away can tell by their names who is measured
        client.ask("name", name=f"bench-{name}")
    with turn() as hold:
        neighbours = Neighbours([client.pid for client in [*clients.values(), *([meter] if meter else [])]])
        timed = {name: partial(_burst, client, effort) for name, client in clients.items()}
        if meter:
            timed[_LIMIT] = meter.seconds
        bursts = alternate(timed, effort, tell)
        row.others, busiest = neighbours.cores(), neighbours.busiest()
    limit = bursts.pop(_LIMIT, [])
    judge(row, bursts, ours, case.error)
    if hold.lost:
        row.notes.append(f"{effort.hold[0]} ended before the bursts did")
    if row.others > BUSY and not row.message:
        row.message = f"other processes kept {row.others:.1f} cores busy meanwhile ({busiest}): times are too high"
    return limit


def prepare(case: Case, form: Form, folder: Path) -> dict[str, str]:
    """Files of a form of a case: its model, and the inputs in a folder that is made.

    Returns:
        `model` and `inputs`: paths.
    """
    sizes = case.sizes if form.sizes is None else form.sizes
    model = models.path(form.model or case.model, **sizes)
    if case.inputs:
        maker, further = case.inputs
        inputs = {**sparse.INPUTS, **lists.INPUTS}[maker](**{**sizes, **further, **form.inputs})
    else:
        inputs = models.random_inputs(onnx.load(model), sizes=case.run_time)
    folder.mkdir()
    if form.filled:
        inputs = {name: filled_array(array) for name, array in inputs.items()}
        twin = filled(onnx.load(model))
        model = folder / "filled.onnx"
        onnx.save(twin, str(model))
    arrays.save(folder / "inputs", inputs)
    return {"model": str(model), "inputs": str(folder / "inputs.npz")}


def _burst(client: Client, effort: Effort) -> float:
    """The median of seconds per run."""
    return median(client.ask("burst", seconds=effort.seconds, least=effort.least)["times"])


def _names(ours: str, peers: Sequence[str]) -> list[str]:
    """Ours first. Where ours is also a peer, the run measures the noise of the method: that peer appears twice."""
    return [ours, *(f"{peer} (again)" if peer == ours else peer for peer in peers)]


def _outputs(client: Client, file: Path) -> list[np.ndarray]:
    client.ask("outputs", to=str(file))
    return list(arrays.load(file).values())
