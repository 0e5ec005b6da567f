# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of a packed suite. This process neither imports PyTorch nor has a CUDA context."""

from __future__ import annotations

import argparse
import fnmatch
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu.far.lines import Lines
from bench.gpu.far.row import BAD, Row
from bench.gpu.far.runner import WORKER, Budget, Runner, measured
from bench.gpu.far.table import table

_ABOUT = """Checks every kernel against PyTorch, then times it. Each case runs in a process of its own: what hangs,
crashes or loses its CUDA context takes nothing else with it. A case has a line in FILE.jsonl as soon as it is done;
called again, the command goes on with the cases that have none."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run", description=_ABOUT)
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--slice", default="", metavar="A,B", help="only these parts of the suite")
    parser.add_argument("--case", default="", metavar="A,B", help="only cases of these names (with * and ?)")
    parser.add_argument("--peers", metavar="A,B", help="only these peers; none: --peers ''")
    parser.add_argument("--check", action="store_true", help="correctness alone")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter bursts, for a first look")
    parser.add_argument("--again", action="store_true", help="run cases that have a result, too; keeps FILE.jsonl.old")
    parser.add_argument("--emulate", action="store_true", help="on the emulator: correctness of a small pack")
    parser.add_argument("--seed", type=int, help="with --emulate: order of warps and asynchronous work")
    parser.add_argument("--many", type=int, metavar="N", help="runs compared bit by bit (50; on the emulator 3)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="summary, FILE.jsonl beside it (results.json in the pack's folder)"
    )
    parser.add_argument("--budget", type=float, default=560, metavar="S", help="everything ends within S seconds (560)")
    parser.add_argument("--seconds", type=float, metavar="S", help="limit of a process (check 60, time 150)")
    parser.add_argument("--dry-run", action="store_true", help="launch every kernel once, without PyTorch or checks")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal is missed, too")
    return parser


def chosen(cases: Sequence[dict[str, Any]], slices: str, names: str) -> list[dict[str, Any]]:
    """The cases of these slices and names; all where nothing is named.

    Raises:
        ValueError: a slice that does not exist, or nothing is left.
    """
    wanted = [s for s in slices.split(",") if s]
    known = {case["slice"] for case in cases}
    if set(wanted) - known:
        raise ValueError(f"no slice {', '.join(sorted(set(wanted) - known))}; there are {', '.join(sorted(known))}")
    patterns = [n for n in names.split(",") if n]
    found = [case for case in cases if not wanted or case["slice"] in wanted]
    found = [c for c in found if not patterns or any(fnmatch.fnmatch(c["name"], p) for p in patterns)]
    if not found:
        raise ValueError("no case is left; --list shows all")
    return found


def _check_place(arguments: argparse.Namespace, suite: Mapping[str, Any]) -> None:
    """Raise ValueError where the suite cannot begin here."""
    if arguments.emulate:
        if not suite["small"]:
            raise ValueError("this pack has the sizes of a GPU; make one for the emulator with pack --small")
        return
    from tilewright.runtime.gpu import cuda

    reason = cuda.unavailable()
    if reason is not None:
        raise ValueError(f"{reason}\n(--emulate runs a small pack without a GPU)")


def main(root: Path, given: Sequence[str], worker: Sequence[str] = WORKER) -> int:
    """Run the suite in folder `root`; returns 0, or 1 where a case is wrong or its process ended badly."""
    arguments = _parser().parse_args(given)
    suite = json.loads((root / "suite.json").read_text())
    try:
        cases = chosen(suite["cases"], arguments.slice, arguments.case)
        if arguments.list:
            print("\n".join(f"{c['slice']:10} {c['name']:24} {c['failure'] or ''}" for c in cases))
            return 0
        _check_place(arguments, suite)
        lines = Lines(arguments.json or root / "results.json")
        if arguments.again:
            lines.clear()
        lines.check(suite["about"])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.dry_run:
        from bench.gpu.far.dry import dry_run

        return dry_run(root, cases, suite, arguments.emulate)
    timed = not arguments.check and not arguments.emulate
    command = shlex.join(["run", *given])
    with Runner(root, Budget(arguments.budget), worker, arguments.seconds) as runner:
        try:
            _Slice(runner, lines, arguments, suite, timed, command).run(cases)
        finally:
            lines.write_summary(suite["cases"], timed)
    rows = lines.rows(cases, timed)
    print(table(rows, {case["name"]: case for case in cases}))
    print(f"{lines.summary}, {lines.file}")
    bad = {*BAD, *(("slow", "not built", "out of time") if arguments.strict else ())}
    return int(any(row.status in bad for row in rows))


class _Slice:
    """What one call of the command does."""

    def __init__(
        self,
        runner: Runner,
        lines: Lines,
        arguments: argparse.Namespace,
        suite: Mapping[str, Any],
        timed: bool,
        command: str,
    ) -> None:
        self._runner, self._lines, self._timed = runner, lines, timed
        self._suite, self._command = suite, command
        many = arguments.many or (3 if arguments.emulate else None)
        peers = None if arguments.peers is None else [p for p in arguments.peers.split(",") if p]
        self._job = {"emulate": arguments.emulate, "seed": arguments.seed, "many": many, "peers": peers}
        self._job["effort"] = [0.01, 3] if arguments.quick else None

    def run(self, cases: Sequence[Mapping[str, Any]]) -> None:
        """Correctness of every case first, then times of those that are right."""
        about = self._machine()
        self._lines.add("start", pack=self._suite["about"], date=_now(), command=self._command, **about)
        print(", ".join(f"{k} {v}" for k, v in {**about["machine"], **about["limits"]}.items()), flush=True)
        if about["missing"]:
            _say(f"the machine could not be looked at: {about['missing']}")
        for case in cases:
            self._one(case, "check", {})
        for case in cases if self._timed else ():
            row = self._lines.row(case["name"], "check")
            if row is not None and row.status == "ok":
                self._one(case, "time", about["limits"])
        self._lines.add("end", date=_now(), **self._machine())

    def _machine(self) -> dict[str, Any]:
        """What the machine is, its rates at best and its clocks now; what could not be found out, and why."""
        empty: dict[str, Any] = {"machine": {}, "limits": {}, "state": None}
        done = self._runner.run({**self._job, "stage": "machine", "measured": self._timed})
        found = {key: done.last.get(key, value) for key, value in empty.items()}
        missing = None if done.whole else f"{done.outcome.status} in step '{done.step}': {done.outcome.stderr_tail}"
        return {**found, "missing": missing}

    def _one(self, case: Mapping[str, Any], stage: str, limits: Mapping[str, float]) -> None:
        """Run a stage of a case that has no line yet, and write its line; one that the budget cut short has none."""
        name, lines = case["name"], self._lines
        if lines.row(name, stage) is not None:
            return
        start = time.monotonic()
        if case["folder"] is None:
            lines.add("case", case=name, stage=stage, outcome="ok", step="done", seconds=0, row=Row.new(case).as_json())
            return
        if not self._runner.has_time:
            return
        row, done = measured(self._runner, case, {**self._job, "stage": stage, "limits": dict(limits)})
        if done.outcome.status == "hang" and not self._runner.has_time:
            _say(f"cut short  {name} {stage}: out of time")
            return
        ended = {"outcome": done.outcome.status, "step": done.step, "signal": done.outcome.signal}
        ended |= {} if done.whole else {"stderr": done.outcome.stderr_tail}
        lines.add("case", case=name, stage=stage, seconds=round(done.outcome.seconds, 3), **ended, row=row.as_json())
        lines.write_summary(self._suite["cases"], self._timed)
        _say(f"{row.status:10} {name} {stage} ({time.monotonic() - start:.1f} s)")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
