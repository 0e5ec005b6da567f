# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of a packed suite."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.measure import Budget, Effort, Row, measure
from bench.gpu.far.peers import ABOUT
from bench.gpu.far.table import table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run", description="Checks every kernel against PyTorch, then times it.")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--slice", default="", metavar="A,B", help="only these parts of the suite")
    parser.add_argument("--case", default="", metavar="A,B", help="only cases of these names (with * and ?)")
    parser.add_argument("--peers", metavar="A,B", help="only these peers; none: --peers ''")
    parser.add_argument("--check", action="store_true", help="correctness alone")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter bursts, for a first look")
    parser.add_argument("--emulate", action="store_true", help="on the emulator: correctness of a small pack")
    parser.add_argument("--seed", type=int, help="with --emulate: order of warps and asynchronous work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE")
    parser.add_argument("--budget", type=float, default=560, metavar="S", help="no case starts after S seconds (560)")
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


def _machine(arguments: argparse.Namespace, suite: dict[str, Any]) -> Gpu | Emulator:
    if arguments.emulate:
        if not suite["small"]:
            raise ValueError("this pack has the sizes of a GPU; make one for the emulator with pack --small")
        return Emulator(suite["arch"], arguments.seed)
    from tilewright.runtime.gpu import cuda

    reason = cuda.unavailable()
    if reason is not None:
        raise ValueError(f"{reason}\n(--emulate runs a small pack without a GPU)")
    return Gpu()


def main(root: Path, given: Sequence[str]) -> int:
    """Run the suite in folder `root`; returns 0, or 1 where a case is wrong or failed."""
    arguments = _parser().parse_args(given)
    suite = json.loads((root / "suite.json").read_text())
    try:
        cases = chosen(suite["cases"], arguments.slice, arguments.case)
        if arguments.list:
            print("\n".join(f"{c['slice']:10} {c['name']:24} {c['failure'] or ''}" for c in cases))
            return 0
        machine = _machine(arguments, suite)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    budget = Budget(arguments.budget)
    about, limits = machine.describe(), {} if arguments.check else machine.limits()
    print(", ".join(f"{k} {v}" for k, v in {**about, **{k: round(v, 1) for k, v in limits.items()}}.items()))
    rows = _run_all(root, cases, machine, limits, arguments, budget)
    print(table(rows, {case["name"]: case for case in cases}))
    peers = sorted({name for row in rows for name in row.seconds if name in ABOUT})
    print("\n".join(f"{name}: {ABOUT[name]}" for name in peers))
    if arguments.json:
        record = {"pack": suite["about"], "machine": about, "limits": limits, "rows": [row.as_json() for row in rows]}
        arguments.json.write_text(json.dumps(record, indent=1))
    bad = {"wrong", "failed"} | ({"slow", "not built", "out of time"} if arguments.strict else set())
    return int(any(row.status in bad for row in rows))


def _run_all(
    root: Path,
    cases: Sequence[dict[str, Any]],
    machine: Gpu | Emulator,
    limits: dict[str, float],
    arguments: argparse.Namespace,
    budget: Budget,
) -> list[Row]:
    """Correctness of every case first, then times of those that are right."""
    peers = None if arguments.peers is None else [p for p in arguments.peers.split(",") if p]
    rows = {}
    for case in cases:
        rows[case["name"]] = _one(budget, case, lambda c: measure(root, c, machine, limits, None, peers))
    if machine.timed and not arguments.check:
        effort = Effort(0.01, 3) if arguments.quick else Effort()
        for case in [case for case in cases if rows[case["name"]].status == "ok"]:
            rows[case["name"]] = _one(budget, case, lambda c: measure(root, c, machine, limits, effort, peers))
    return list(rows.values())


def _one(budget: Budget, case: dict[str, Any], run: Callable[[dict[str, Any]], Row]) -> Row:
    start = time.monotonic()
    row = Row(case["name"], case["slice"], "out of time", goal=case["goal"])
    if budget.left > 0:
        row = run(case)
    print(f"{row.status:10} {row.name} ({time.monotonic() - start:.1f} s)", file=sys.stderr, flush=True)
    return row
