# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of tools/bench/run."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import models
from bench import machine, records
from bench.assembly import describe, model_loops
from bench.case import Case, Suite, peer_names, suites
from bench.limits import Limits
from bench.measure import Effort, Row, measure
from bench.peers.tilewright import compiled
from bench.table import cells, limits_text, means, table
from bench.together import Turn, together


def _threads(text: str) -> list[int]:
    counts = [int(part) if part.isdecimal() else 0 for part in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of threads as in 1,2, got {text!r}")
    return counts


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools/bench/run", description="Time Tilewright beside its peers, in alternating bursts of one run."
    )
    parser.add_argument("suite", nargs="?", help="name of a suite (see --list)")
    parser.add_argument("--list", action="store_true", help="list suites and cases")
    parser.add_argument("--threads", type=_threads, default=[1, 2], metavar="N,M", help="numbers of threads (1,2)")
    parser.add_argument("--case", metavar="A,B", default="", help="only cases whose name contains A or B")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured to FILE")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 when a row misses its target, or a hot loop spills"
    )
    parser.add_argument("--asm", action="store_true", help="time nothing: show the hot loops of each case's kernels")
    parser.add_argument("--brief", action="store_true", help="with --asm: no listings")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter bursts, for a first look")
    parser.add_argument(
        "--runs", type=int, default=1, metavar="N", help="N runs of each row, of which the worst counts"
    )
    parser.add_argument("--peers", type=lambda text: text.split(","), metavar="A,B", help="only these peers")
    parser.add_argument(
        "--hold",
        type=shlex.split,
        default=[],
        metavar="COMMAND",
        help="keep other work away while bursts run: COMMAND is given a child to run, as in 'flock /tmp/bench.lock'",
    )
    parser.add_argument(
        "--together", type=int, default=1, metavar="N", help="load N rows, then run the bursts of all in one --hold"
    )
    parser.add_argument("--target", default="cpu", help="what ours is compiled for, as cpu:x86-64-v3 (cpu)")
    parser.add_argument(
        "--ours",
        default="tilewright",
        metavar="PEER",
        help="time PEER in our place; a peer against itself shows the method's noise",
    )
    return parser


STATUS = ("ok", "slow", "wrong", "failed")
QUICK = Effort(0.05, 1, 5, 12, budget=12.0)


def show_assembly(cases: Sequence[Case], listing: bool, target: str = "cpu") -> bool:
    """Print the hot loops of each case's kernels; returns whether one of them spills."""
    spilled = []
    for case in cases:
        print(f"== {case.name}")
        file = models.path(case.model, **case.sizes)
        model = compiled(
            file, 1, case.precision, case.accuracy, target=target, program=case.program, padded=case.padded
        )
        for loop in model_loops(model):
            print(describe(loop, listing), flush=True)
            spilled += [f"{case.name}: {loop.kernel}"] * any(loop.spills)
    print(f"hot loops that spill: {', '.join(dict.fromkeys(spilled)) or 'none'}")
    return bool(spilled)


class Progress:
    """One line that is rewritten on a terminal; nothing but finished rows elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._live:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def done(self, text: str) -> None:
        """Replace the line and keep it."""
        self.show("")
        print(text, file=sys.stderr, flush=True)


def _list(all_suites: dict[str, Suite]) -> str:
    lines = []
    for suite in all_suites.values():
        lines.append(f"{suite.name}: {suite.summary}")
        for case in suite.cases:
            target = f"ratio <= {case.target:.2f}" if case.target else "no target"
            least = {**{rival.name: rival.gain for rival in case.rivals}, **case.gains}
            gains = [f"{name} >= {gain:.2f}x" for name, gain in least.items() if gain]
            target = ", ".join(gains) if gains and not case.target else ", ".join([target, *gains])
            lines.append(f"  {case.name:24s} {target:16s} peers: {', '.join(case.peers)}")
    return "\n".join(lines)


def run_cases(
    cases: Sequence[Case],
    threads: Sequence[int],
    ours: str,
    effort: Effort,
    limits: Limits,
    keep: Callable[[list[Row]], None],
    runs: int = 1,
    target: str = "cpu",
    at_once: int = 1,
) -> list[Row]:
    """Measure every case with every number of threads, reporting as it goes; `keep` gets the rows after each one.

    Of several runs of a case the worst one counts. So many rows `at_once` are loaded before they are timed.
    """
    progress, rows = Progress(), []
    plan = [(case, count) for case in cases for count in threads]

    def one(i: int, turn: Turn | None) -> Row:
        case, count = plan[i]
        where = f"[{i + 1}/{len(plan)}] {case.name}, {count} thread(s)"
        tell: Callable[[str], None] = lambda text: progress.show(f"{where}: {text}")  # noqa: E731
        start = time.monotonic()
        row = worst([measure(case, count, ours, effort, tell, limits, target, turn) for _ in range(runs)])
        _, _, mine, peer, theirs, ratio, *_, verdict = cells(row)
        took = f"{time.monotonic() - start:.0f} s"
        gains = "".join(f", {gain:.2f}x {name}" for name, gain in row.gains.items())
        progress.done(f"{where}: ours {mine} ms{gains}, {peer} {theirs} ms, ratio {ratio}: {verdict} ({took})")
        return row

    for first in range(0, len(plan), at_once):
        numbers = range(first, min(first + at_once, len(plan)))
        if at_once == 1:
            rows.append(one(first, None))
        else:
            rows += together(effort.hold, [partial(one, i) for i in numbers])
        keep(rows)
    return rows


def worst(rows: Sequence[Row]) -> Row:
    """The row with the worst status, of equal ones that with the largest ratio, and a note of all ratios."""
    row = max(rows, key=lambda row: (STATUS.index(row.status), row.ratio or 0.0))
    if len(rows) > 1:
        ratios = ", ".join("-" if other.ratio is None else f"{other.ratio:.2f}" for other in rows)
        row.notes.append(f"the worst of {len(rows)} runs, whose ratios were {ratios}")
    return row


def exit_code(rows: Sequence[Row], strict: bool, mean_target: float | None = None) -> int:
    """1 for a wrong or failed row at any time; when strict also for a slow one and for a mean above its target."""
    bad = {"wrong", "failed"} | ({"slow"} if strict else set())
    slow = strict and mean_target is not None and any(mean > mean_target for mean in means(rows).values())
    return int(slow or any(row.status in bad for row in rows))


def _choose(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[Case]:
    known = suites()
    if arguments.suite not in known:
        parser.error(f"unknown suite {arguments.suite!r}; known: {', '.join(known)}")
    wanted = arguments.case.split(",")
    cases = [case for case in known[arguments.suite].cases if any(text in case.name for text in wanted)]
    if not cases:
        parser.error(f"no case of suite {arguments.suite} has {arguments.case!r} in its name")
    if arguments.peers:
        known_peers = peer_names()
        unknown = set(arguments.peers) - set(known_peers)
        if unknown:
            parser.error(f"unknown peer {', '.join(sorted(unknown))}; known: {', '.join(known_peers)}")
        cases = [replace(case, peers=tuple(p for p in case.peers if p in arguments.peers)) for case in cases]
    return cases


def main(argv: Sequence[str]) -> int:
    """Run a suite; returns the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.list or arguments.suite is None:
        print(_list(suites()))
        return 0 if arguments.list else 2
    cases = _choose(parser, arguments)
    if arguments.asm:
        return int(show_assembly(cases, not arguments.brief, arguments.target) and arguments.strict)
    if arguments.together > 1 and arguments.runs > 1:
        parser.error("--together times each row once: leave out --runs")
    if arguments.json and not arguments.json.parent.is_dir():
        parser.error(f"--json {arguments.json}: there is no folder {arguments.json.parent}")
    about = machine.describe()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load'][0]:.1f}")  # type: ignore[index]
    effort = QUICK if arguments.quick else Effort()
    effort = replace(effort, hold=tuple(arguments.hold))
    march = arguments.target.partition(":")[2] or "native"
    with Limits(arguments.threads, effort.hold, march) as limits:
        rows = _run(arguments, cases, effort, limits, argv, about)
    mean_target = suites()[arguments.suite].mean_target
    print(table(rows, mean_target))
    return exit_code(rows, arguments.strict, mean_target)


def _run(
    arguments: argparse.Namespace,
    cases: Sequence[Case],
    effort: Effort,
    limits: Limits,
    argv: Sequence[str],
    about: dict[str, object],
) -> list[Row]:
    """Measure; the record is written after each row."""
    print(limits_text(limits.rates), flush=True)
    words = [Path(a).name if a.endswith(".json") else a for a in argv]
    record = {
        "suite": arguments.suite,
        "target": arguments.target,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["tools/bench/run", *records.without_folders(words)]),
        "machine": about,
        "limits": limits.rates,
        "effort": {**vars(effort), "hold": records.without_folders(effort.hold)},
    }

    def keep(rows: list[Row]) -> None:
        if arguments.json:
            records.write(arguments.json, {**record, "rows": [row.as_dict() for row in rows]})

    return run_cases(
        cases,
        arguments.threads,
        arguments.ours,
        effort,
        limits,
        keep,
        max(1, arguments.runs),
        arguments.target,
        max(1, arguments.together),
    )
