# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rungs that run compiled programs: against numbers of NumPy, and bit by bit against a second run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gpu.far.ladder.device import Opener, Pack, Program
from bench.gpu.far.ladder.numbers import error
from bench.gpu.far.ladder.report import Check, Report
from tilewright.core.errors import UnsupportedError

Rung = Callable[[Pack, Opener, Report], None]
#: Errors that float8 sums may have, of the largest result, by the emulator's model of Hopper's accumulator (13 bits of
#: fraction below the largest term, cut off): sums that are promoted to f32 every 128 terms have less than half of this
#: at any depth; without promotion 512 terms have 1.5 times, 4096 terms 18 times, 16384 terms 80 times as much.
FP8_ERROR = 2.0**-8


def rung(name: str) -> Rung:
    """The rung that runs all programs of a name's entries."""

    def run(pack: Pack, open_: Opener, report: Report) -> None:
        for entry in pack.programs(name):
            compare(pack, open_, report, entry)

    run.__doc__ = f"Programs of {name}."
    return run


def compare(pack: Pack, open_: Opener, report: Report, entry: dict[str, Any]) -> None:
    """Run a program twice, and compare."""
    with report.check(entry["name"], {"kind": "Program", "rung": entry["rung"]}) as check:
        if entry["failure"]:
            _not_built(check, entry)
            return
        program = Program(pack, entry, open_(entry["units"]))
        first = program.run()
        found, wanted = program.numbers(first), program.wanted()
        judge(check, found, wanted, entry["error"])
        if check.line["status"] == "ok" and program.run().tobytes() != first.tobytes():
            check.wrong("a second run has other bits: something is not waited for")


def _not_built(check: Check, entry: dict[str, Any]) -> None:
    """What is not there yet is skipped; all else of a pack must have been built."""
    if entry.get("absent"):
        check.skip(entry["absent"])
    else:
        check.wrong(f"it could not be built: {entry['failure']}")


def judge(check: Check, found: np.ndarray, wanted: np.ndarray, allowed: float) -> None:
    """Compare results, and say where they differ."""
    off = error(found, wanted)
    check.tell(f"error {off:.2g}, accepted {allowed:.2g}", error_found=off)
    if off > allowed:
        check.wrong(f"error {off:.3g} of the largest result, accepted {allowed:.2g}; {where(found, wanted, allowed)}")


def where(found: np.ndarray, wanted: np.ndarray, allowed: float) -> str:
    """Which elements of a result differ, in words: poison, a border, a block, or all."""
    scale = np.abs(wanted).max() or 1.0
    bad = ~(np.abs(found - wanted) <= allowed * scale)
    missing = int(np.isnan(found).sum())
    at = np.argwhere(bad)
    low, high = at.min(0).tolist(), at.max(0).tolist()
    text = f"{int(bad.sum())} of {bad.size} elements differ, from {low} to {high}"
    if missing:
        text += f", {missing} of them still hold the poison or are no numbers: nothing was stored there"
    first = tuple(at[0])
    return f"{text}; the first is {found[first]:.6g}, not {wanted[first]:.6g}"


def semaphores(pack: Pack, open_: Opener, report: Report) -> None:
    """CTAs that wait for each other by counters in memory: twice (are counters zero again?), then as a graph."""
    for entry in pack.programs("semaphores"):
        compare(pack, open_, report, entry)
        with report.check(f"{entry['name']}_graph", {"kind": "Program", "rung": entry["rung"]}) as check:
            if entry["failure"]:
                _not_built(check, entry)
                continue
            program = Program(pack, entry, open_(entry["units"]))
            try:
                graph, *_held = program.record()
            except UnsupportedError as refusal:
                check.skip(refusal.message)
                continue
            first = program.run()
            for turn in range(3):
                program.poison()
                program.device.replay(graph)  # type: ignore[attr-defined]
                if program.result().tobytes() != first.tobytes():
                    check.wrong(f"replay {turn + 1} of the graph differs from the call: counters are not zero again")


def fp8(pack: Pack, open_: Opener, report: Report) -> None:
    """Errors of float8 sums stay as they are while k grows."""
    for entry in pack.programs("fp8"):
        compare(pack, open_, report, {**entry, "error": FP8_ERROR})
