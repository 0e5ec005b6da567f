# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fault injection: mutate the PTX of working kernels and report how many faults the emulator catches.

With --mesh: programs of meshes of cores, and what their checks and simulator catch (faulting/mesh.py).

A fault counts if it changes a result under some order of warps and of asynchronous work (without any check); the catch
rate is the part of those that a rule or a wrong result gives away when the checks are on (faulting/mutate.py).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from faulting import mutate
from faulting.judging import Work, one
from faulting.subjects import generate, prototypes, subject


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/faults", description=__doc__)
    names = ", ".join(prototypes())
    parser.add_argument("what", nargs="*", help=f"of {names} (default: all of these), or folders of compiled models")
    parser.add_argument("--generated", nargs="?", const="", metavar="NAME",
                        help="compile and break one kernel of each kind for both architectures; NAME: those with it in "
                        "their name@arch")  # fmt: skip
    parser.add_argument("--mesh", action="store_true",
                        help="break programs of a mesh of cores instead, and count what checks and the functional "
                        "simulator catch")  # fmt: skip
    parser.add_argument("--count", type=int, default=100, help="mutants per model (default: 100); 0: all of them")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are chosen (default: 0)")
    parser.add_argument("--orders", type=int, default=6, help="orders in which a fault may show (default: 6)")
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        help="random orders in which checks may catch it, besides the fixed (default: 1)",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--all", action="store_true", help="print every mutant's verdict, not only what was missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write a table of all kernels there (Markdown)")
    parser.add_argument("--at-least", type=float, default=0.95, help="exit status 1 below this rate (default: 0.95)")
    return parser.parse_args()


def describe(name: str, work: Work, verdict: mutate.Verdict) -> str:
    """One line about a mutant."""
    mutant = verdict.mutant
    state = "refused" if verdict.refused else f"{verdict.harmful or 'no effect'} / {verdict.caught or 'not caught'}"
    place = f"{name} {work.module} line {mutant.line}"
    return f"{place} {mutant.kind}: {state}: {mutant.before[:80]} => {mutant.after[:80]}"


def chosen(place: str, options: argparse.Namespace) -> tuple[list[Work], int]:
    """A sample of the mutants of a subject, and how many there are."""
    module_of = {m: name for name, text in subject(place).modules.items() for m in mutate.mutants(text)}
    found = list(module_of)
    some = mutate.sample(found, options.count, options.seed) if options.count else found
    return [Work(place, module_of[m], m, options.orders, options.seeds) for m in some], len(found)


def rows(name: str, works: list[Work], verdicts: list[mutate.Verdict]) -> Iterator[dict[str, object]]:
    """What is written as JSON."""
    for work, v in zip(works, verdicts, strict=True):
        yield {"model": name, "kernel": work.module, "line": v.mutant.line, "kind": v.mutant.kind,
               "before": v.mutant.before, "after": v.mutant.after, "harmful": v.harmful, "caught": v.caught,
               "refused": v.refused}  # fmt: skip


def run(places: Mapping[str, str], options: argparse.Namespace) -> int:
    """Judge mutants of all subjects, print tables, write files."""
    everything: dict[str, list[mutate.Verdict]] = {}
    written: list[dict[str, object]] = []
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:  # compiling made threads
        for name, place in places.items():
            works, total = chosen(place, options)
            verdicts = list(pool.map(one, works))
            for work, verdict in zip(works, verdicts, strict=True):
                if options.all or (verdict.harmful and not verdict.caught):
                    print(describe(name, work, verdict))
            print(f"\n{name}: {len(works)} of {total} mutants\n{mutate.table(verdicts)}\n", flush=True)
            everything[name] = verdicts
            written += rows(name, works, verdicts)
    together = [verdict for verdicts in everything.values() for verdict in verdicts]
    print(f"all kernels\n{mutate.table(together)}")
    if options.json:
        options.json.write_text(json.dumps(written, indent=1))
    if options.table:
        options.table.write_text(mutate.by_kernel({**everything, "all": together}))
    return int(mutate.catch_rate(together) < options.at_least)


def main() -> int:
    """Run, print tables, write files."""
    options = parse()
    if options.mesh:
        from faulting.mesh import campaign  # its programs are those of tests

        return campaign(options.count, options.seed, options.jobs, options.at_least, options.all, options.json)
    given = {Path(place).name: place for place in options.what}
    if options.generated is None:
        return run(given or {name: name for name in prototypes()}, options)
    with tempfile.TemporaryDirectory() as folder:
        return run({**given, **generate(Path(folder), options.generated)}, options)


if __name__ == "__main__":
    raise SystemExit(main())
