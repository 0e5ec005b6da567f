# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run ONNX's backend tests: each is compiled, saved, and run from the artifact in another process.

Exit status 0 where all results are as unsupported.toml says.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from . import cases, lists, names, records
from .pool import Server


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/conformance", description=__doc__)
    parser.add_argument("--suite", default=",".join(cases.SUITES), help="suites, separated by commas (default: all)")
    parser.add_argument(
        "-k", type=names.Choice.parse, default="", help="parts of names: a,b or 'a or b'; 'a and not b'"
    )
    parser.add_argument(
        "--target", default="cpu", help="cpu, cpu:NAME, cuda:ARCH (emulated), mesh:NAME (simulated) or reference"
    )
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th test only")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="number of the first test, from 0 on")
    parser.add_argument("--operators", action="store_true", help="one test of each operator; --first: which one")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    parser.add_argument("--update-list", action="store_true", help="write unsupported.toml anew")
    parser.add_argument("--json", type=Path, help="write all results to this file")
    parser.add_argument("--record", type=Path, help="write states and shares, test by test, to this file; others stay")
    parser.add_argument("-v", action="store_true", help="print every test that does not pass, listed or not")
    return parser.parse_args(arguments)


def selected(options: argparse.Namespace) -> list[cases.Case]:
    """The cases to run."""
    found = [case for case in cases.load(options.suite.split(",")) if options.k.takes(case.name)]
    if not found:
        raise SystemExit(f"no test of suite {options.suite} has a name with -k {options.k.text!r}")
    if options.operators:
        return cases.of_operators(found, options.first)
    return found[options.first :: options.sample]


def run(chosen: Sequence[cases.Case], target: str, jobs: int, timeout: float) -> list[dict[str, Any]]:
    """Compile, save, load and run each case; results in the order of the cases."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        pairs: SimpleQueue = SimpleQueue()
        servers = []
        for i in range(jobs):
            log = Path(folder) / f"log-{i}"
            pair = (Server("build_side", timeout, log), Server("run_side", timeout, log))
            servers += pair
            pairs.put(pair)

        def one(case: cases.Case) -> dict[str, Any]:
            build, execute = pair = pairs.get()
            try:
                return _one(case, build, execute, target, Path(folder))
            finally:
                pairs.put(pair)

        with ThreadPoolExecutor(jobs) as threads:
            results = list(threads.map(one, chosen))
        for server in servers:
            server.close()
    return results


def _one(case: cases.Case, build: Server, execute: Server, target: str, folder: Path) -> dict[str, Any]:
    artifact = folder / f"{case.suite}-{case.name}.tw"
    task = {"key": case.key, "folder": str(case.folder), "artifact": str(artifact), "target": target}
    result = build.ask(task)
    if result["state"] == "built":
        result = {**execute.ask(task), "compile_seconds": result["seconds"]}
        artifact.unlink(missing_ok=True)
    return result


def headline(results: Sequence[dict[str, Any]]) -> str:
    """One line per suite."""
    lines = []
    for suite in dict.fromkeys(result["key"].split("/")[0] for result in results):
        states = collections.Counter(r["state"] for r in results if r["key"].split("/")[0] == suite)
        rest = ", ".join(f"{n} {state}" for state, n in sorted(states.items()) if state != "passed")
        lines.append(f"{suite}: {states['passed']} of {states.total()} pass{f' ({rest})' if rest else ''}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, compare with the list."""
    options = parse(arguments)
    start = time.monotonic()
    chosen = selected(options)
    results = run(chosen, options.target, max(1, min(options.jobs, len(chosen))), options.timeout)
    listed = lists.read(options.target)
    if options.update_list:
        lists.write(lists.updated(results, listed), options.target)
        listed = lists.read(options.target)
    unexpected = lists.surprises(results, listed)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
        options.json.with_suffix(".summary").write_text(json.dumps({"unexpected": len(unexpected)}) + "\n")
    if options.record:
        records.write(options.record, results)
    if options.v:
        for result in results:
            if result["state"] != "passed":
                print(f"{result['key']} {result['state']}: {result['detail']}")
    if not options.v:
        print("\n".join(unexpected), end="\n" if unexpected else "")
    slow = sorted((r.get("compile_seconds", 0.0) for r in results), reverse=True)
    print(headline(results))
    if options.record:
        print(records.summary(options.record))
    print(
        f"{len(unexpected)} not as listed; {time.monotonic() - start:.0f} s; slowest compilation {slow[0]:.2f} s"
        if slow
        else "no tests"
    )
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
