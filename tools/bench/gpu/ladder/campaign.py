# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults drawn by a seed in the probes of the ladder: does it fail at the right rung and name the right cause?

The emulator runs without its checks, so that a probe shows what a GPU would: numbers, or a phase that does not end. A
fault counts if some order of asynchronous work shows it.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause
from bench.gpu.ladder.faulty.family import Family, Fault
from bench.gpu.ladder.faulty.rungs import FAMILIES
from tilewright.core.errors import UserError
from tilewright.sim import ptx as emulate

#: what can become of a fault
RIGHT, UNKNOWN, WRONG, QUIET, REFUSED = "right cause", "unknown", "wrong cause", "no effect", "refused"
_INSTRUCTIONS = 2_000_000


@dataclass(frozen=True)
class Outcome:
    """What became of a fault.

    Attributes:
        fault: what was put in.
        rung: the first that failed, "" if none did.
        verdict: one of the five.
        text: what the ladder said.
    """

    fault: Fault
    rung: str
    verdict: str
    text: str


def device(completion: str) -> emulate.Device:
    """An emulator without optional checks; asynchronous work is done "late" or "early"."""
    return emulate.Device(options=emulate.Options(checks=frozenset(), completion=completion, limit=_INSTRUCTIONS))


def climb(fault: Fault, families: Sequence[Family] = FAMILIES) -> Outcome:
    """Run the ladder with one fault in it, in one order of asynchronous work after the other until one shows it."""
    died = ""
    for completion in ("late", "early"):
        try:
            found = _climb(fault, families, completion)
        except emulate.EmulationError as error:
            died = f"the emulator stops it: {error.rule}"
            continue
        except UserError as error:
            return Outcome(fault, fault.rung, REFUSED, str(error))
        if found is not None:
            return found
    return Outcome(fault, fault.rung, UNKNOWN, died) if died else Outcome(fault, "", QUIET, "")


def _climb(fault: Fault, families: Sequence[Family], completion: str) -> Outcome | None:
    for family in families:
        for case in range(len(family.cases)):
            put = fault if fault.rung == family.rung and fault.case in (-1, case) else None
            if put is None and _sound(family, case, completion):
                continue
            seen = family.observe(device(completion), case, put)
            if not family.passes(case, seen):
                return _judge(fault, family, family.diagnose(case, seen))
    return None


_SOUND: dict[tuple[str, int, str], bool] = {}


def _sound(family: Family, case: int, completion: str) -> bool:
    """Whether a case passes without a fault: it runs the same every time, so once is enough."""
    key = (family.rung, case, completion)
    if key not in _SOUND:
        _SOUND[key] = family.passes(case, family.observe(device(completion), case, None))
    return _SOUND[key]


def _judge(fault: Fault, family: Family, cause: Cause | None) -> Outcome:
    if cause is None:
        return Outcome(fault, family.rung, UNKNOWN, "")
    named = fault.rung == family.rung and cause.field in (fault.field, *fault.same)
    return Outcome(fault, family.rung, RIGHT if named else WRONG, cause.text)


@functools.cache
def draw(count: int, seed: int) -> list[Fault]:
    """Faults of all rungs in turn, the same for a seed."""
    rng = np.random.default_rng(seed)
    return [FAMILIES[number % len(FAMILIES)].draw(rng) for number in range(count)]


def run(count: int, seed: int, jobs: int) -> list[Outcome]:
    """Judge faults until `count` of them have an effect."""
    found: list[Outcome] = []
    drawn = draw(4 * count, seed)
    # New processes, not forks: compiling made threads, whose locks a fork would inherit held.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        while drawn and (missing := count - sum(map(counts, found))) > 0:
            found += pool.map(climb_one, [(4 * count, seed, 4 * count - len(drawn) + i) for i in range(missing)])
            drawn = drawn[missing:]
    return found


def climb_one(which: tuple[int, int, int]) -> Outcome:
    """Judge one fault of a draw."""
    count, seed, number = which
    done = climb(draw(count, seed)[number])
    plain = Fault(*(getattr(done.fault, name) for name in ("rung", "case", "field", "expected", "found")))
    return Outcome(plain, done.rung, done.verdict, done.text)


def counts(outcome: Outcome) -> bool:
    """Whether a fault showed itself."""
    return outcome.verdict not in (QUIET, REFUSED)


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: a row for each rung."""
    heads = ("rung", "drawn", REFUSED, QUIET, "effective", "right rung", RIGHT, UNKNOWN, WRONG)
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for rung in [*dict.fromkeys(one.fault.rung for one in outcomes), "all"]:
        rows = [one for one in outcomes if rung in (one.fault.rung, "all")]
        tally = Counter(one.verdict for one in rows)
        effective = sum(map(counts, rows))
        place = sum(counts(one) and one.rung == one.fault.rung for one in rows)
        numbers = (
            len(rows),
            tally[REFUSED],
            tally[QUIET],
            effective,
            place,
            tally[RIGHT],
            tally[UNKNOWN],
            tally[WRONG],
        )
        lines.append(f"| {rung} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, print what is not right, write the table; exit code 1 below 90 % or with a wrong cause."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.ladder.campaign", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults with an effect (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table there (Markdown)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict there")
    parser.add_argument("--all", action="store_true", help="print every verdict")
    options = parser.parse_args()
    outcomes = run(options.count, options.seed, options.jobs)
    for one in outcomes:
        if options.all or one.verdict in (UNKNOWN, WRONG):
            fault = one.fault
            what = f"{fault.rung}[{fault.case}] {fault.field}: {fault.expected} -> {fault.found}"
            print(f"{one.verdict}: {what}" + (f": {one.text}" if one.text else ""))
    text = table(outcomes)
    print("\n" + text)
    if options.table:
        options.table.write_text(text)
    if options.json:
        rows = [{"rung": o.fault.rung, "case": o.fault.case, "field": o.fault.field, "expected": str(o.fault.expected),
                 "found": str(o.fault.found), "failed": o.rung, "verdict": o.verdict, "text": o.text}
                for o in outcomes]  # fmt: skip
        options.json.write_text(json.dumps(rows, indent=1))
    tally = Counter(one.verdict for one in outcomes)
    effective = max(sum(map(counts, outcomes)), 1)
    return int(tally[WRONG] > 0 or tally[RIGHT] < 0.9 * effective)


if __name__ == "__main__":
    raise SystemExit(main())
