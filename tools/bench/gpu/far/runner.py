# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each job of the suite in a process of its own, with a limit; a spare process waits with its imports done."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.far.child import Child, Outcome
from bench.gpu.far.row import Row

#: Runs a job, `worker.py`.
WORKER = (sys.executable, "-m", "bench.gpu.far.worker")
#: Seconds of a job on a GPU by stage: contexts take one, a check a few, Inductor up to a minute for a model.
SECONDS = {"machine": 60.0, "check": 60.0, "time": 150.0}
#: A job gets at least this long, or does not begin.
_LEAST = 2.0
#: What cases leave for the last look at the machine: seconds, at most this part of the budget.
_KEPT, _KEPT_PART = 15.0, 0.05


class Budget:
    """Time for the whole command; `kept` seconds of it are not for cases."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.kept = min(_KEPT, _KEPT_PART * seconds)

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()


@dataclass(frozen=True)
class Done:
    """What became of a job: the outcome of its process, and its last line (empty where there is none)."""

    outcome: Outcome
    last: Mapping[str, Any]
    limit: float

    @property
    def whole(self) -> bool:
        """Whether the job came to its end."""
        return self.outcome.status == "ok" and self.last.get("step") == "done"

    @property
    def step(self) -> str:
        """Where the process was when it ended."""
        return self.last.get("step", "start")


class Runner:
    """Processes of the suite, one after the other.

    Args:
        root: folder of the pack.
        budget: of the command; no job outlives it.
        worker: command of a process; the folder and the file of its results follow.
        seconds: limit of each job, instead of that of its stage.
    """

    def __init__(
        self, root: Path, budget: Budget, worker: Sequence[str] = WORKER, seconds: float | None = None
    ) -> None:
        self._root, self._budget, self._worker, self._seconds = root, budget, tuple(worker), seconds
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-suite-")
        self._count = 0
        self._spare = self._start()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._spare.kill()
        self._folder.cleanup()

    @property
    def has_time(self) -> bool:
        """Whether a case may begin."""
        return self._budget.left - self._budget.kept >= _LEAST

    def run(self, job: Mapping[str, Any]) -> Done:
        """Do a job in the spare process, while the next one starts."""
        current, self._spare = self._spare, self._start()
        kept = 0.0 if job["stage"] == "machine" else self._budget.kept
        limit = min(self._seconds or SECONDS[job["stage"]], self._budget.left - kept)
        outcome = current.work(job, limit)
        return Done(outcome, outcome.lines[-1] if outcome.lines else {}, limit)

    def _start(self) -> Child:
        self._count += 1
        results = Path(self._folder.name) / f"{self._count}.jsonl"
        path = os.pathsep.join([str(self._root), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [*self._worker, str(self._root), str(results)]
        return Child(command, results, environment={"PYTHONPATH": path})


def measured(runner: Runner, case: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[Row, Done]:
    """Run a case; once more without each peer that ends its process.

    Returns:
        The row, and what became of the last process.
    """
    without: list[str] = []
    notes: list[str] = []
    while True:
        done = runner.run({**job, "case": case["name"], "without": without})
        peer = done.step.removeprefix("peer ") if done.step.startswith("peer ") else None
        if done.whole or peer is None or peer in without or not runner.has_time:
            break
        notes.append(f"{peer}: {_end(done)}")
        without.append(peer)
    row = Row.of(done.last["row"]) if "row" in done.last else Row.new(case)
    row.notes += notes
    if not done.whole:
        row.status = "failed" if done.outcome.status == "ok" else done.outcome.status
        row.message = _end(done)
    return row, done


def _end(done: Done) -> str:
    """In words, how a process ended."""
    outcome = done.outcome
    how = {
        "hang": f"no end within {done.limit:.0f} s",
        "crash": f"ended by {outcome.signal}",
        "lost": "lost its CUDA context",
    }.get(outcome.status, "ended without a result")
    said = [line for line in outcome.stderr_tail.splitlines() if line.strip()]
    tail = f": {said[-1].strip()}" if said and outcome.status != "hang" else ""
    return f"{how}, in step '{done.step}'{tail}"
