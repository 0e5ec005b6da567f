# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in programs of a mesh of cores, and what checks and the functional simulator catch of them.

A mistake does harm if the simulator stops or computes other numbers, or if a router mixes two flows. It is caught if a
check or that simulator stops with an error that says what is wrong: warnings count as little as other numbers alone.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from planned import inputs_of, programs
from undone import mixtures

from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer, prefill_layer
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.halo import Halo, halo
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.sim.coremesh.checks.report import check_program
from tilewright.sim.coremesh.faults import Fault, faults_of
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program

Values = dict[str, np.ndarray]
WSE = machine("wse2")


@dataclass(frozen=True)
class Judged:
    """One fault and what became of it.

    Attributes:
        harm: what it does; empty: nothing.
        by: what stopped with an error; empty: nothing did.
        message: of that error.
    """

    program: str
    kind: str
    where: str
    harm: Literal["", "stops", "numbers", "mixes"]
    by: Literal["", "checks", "simulator"]
    message: str


def subjects() -> dict[str, Callable[[], Program]]:
    """What is broken, by name: one program of each algorithm, layers of decoders, and moves."""
    decoder = Decoder(16, 24, 4, 2)
    cache = Cache("shift", 3, 4, 4, 4 * decoder.slice(4))
    rows, columns = Spread("y", "ring"), Spread("x", "ring")
    layers: dict[str, Callable[[], Program]] = {
        "decode layer": partial(decode_layer, DecodeLayer(decoder, cache, 2, (Scheme("k_tree", 1), Scheme("chain")))),
        "prefill layer": partial(prefill_layer, PrefillLayer(decoder, 4, 8)),
        "halo": partial(halo, Halo((12, 7), (3, 2), 4, 4, 0, "y", ("y", "x"), -1, 3, 5, 7.0, "linear")),
        "relayout": partial(relayout, Relayout((9, 6), 3, 3, Placing((rows, columns)), Placing((columns, rows)))),
    }
    return {name: partial(programs().__getitem__, name) for name in programs()} | layers


def _equal(one: Values, other: Values) -> bool:
    return all(np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in other)


def _checked(program: Program) -> str:
    try:
        check_program(program, WSE)
    except UserError as error:
        return str(error)
    return ""


def _harm(fault: Fault, inputs: Values, right: Values) -> tuple[Literal["", "stops", "numbers", "mixes"], str]:
    """What a fault does, and what the simulator says of it."""
    try:
        with np.errstate(all="ignore"):
            results = run(fault.program, inputs)
    except UserError as error:
        return "stops", str(error)
    except (ValueError, IndexError):
        return "stops", ""  # NumPy, not the simulator, found it
    if not _equal(results, right):
        return "numbers", ""
    return ("mixes", "") if fault.kind == "other color" and mixtures(fault.program) else ("", "")


def judge(name: str, most: int, seed: int = 7) -> list[Judged]:
    """Faults of one program; of more than ``most`` so many that are drawn."""
    program = fit_program(subjects()[name](), WSE)[0]
    inputs = inputs_of(program)
    with np.errstate(all="ignore"):
        right = run(program, inputs)
    faults = faults_of(program)
    if most and len(faults) > most:
        faults = [faults[at] for at in np.sort(np.random.default_rng(seed).choice(len(faults), most, replace=False))]
    found = []
    for fault in faults:
        harm, said = _harm(fault, inputs, right)
        checks = _checked(fault.program)
        by = "checks" if checks else "simulator" if said else ""
        found.append(Judged(name, fault.kind, fault.where, harm, by, checks or said))
    return found


def table(judged: Iterable[Judged]) -> str:
    """Counts by kind of those that do harm, as Markdown."""
    harmful = [one for one in judged if one.harm]
    lines = ["| fault | harmful | by checks | by the simulator | missed |", "|---|---|---|---|---|"]
    for kind in [*sorted({one.kind for one in harmful}), "all"]:
        some = [one.by for one in harmful if kind in (one.kind, "all")]
        counts = (len(some), some.count("checks"), some.count("simulator"), some.count(""))
        lines.append(f"| {kind} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def catch_rate(judged: Iterable[Judged]) -> float:
    """The part of those that do harm which an error gives away."""
    caught = [bool(one.by) for one in judged if one.harm]
    return sum(caught) / len(caught) if caught else 1.0


def campaign(most: int, seed: int, jobs: int, at_least: float, everything: bool, path: Path | None) -> int:
    """Break all programs, print what was missed and a table; 1 where too few were caught."""
    judged: list[Judged] = []
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for found in pool.map(partial(judge, most=most, seed=seed), subjects()):
            for one in found:
                if everything or (one.harm and not one.by):
                    what = f"{one.harm or 'no effect'}; {one.by or 'not caught'}"
                    print(f"{one.program}: {one.kind}, {one.where}: {what}", flush=True)
            judged += found
    harmless = sum(1 for one in judged if not one.harm)
    print(f"{len(judged)} faults in {len(subjects())} programs, {harmless} of them without effect\n\n{table(judged)}")
    print(f"\ncaught: {100 * catch_rate(judged):.1f} % of those that do harm")
    if path:
        path.write_text(json.dumps([asdict(one) for one in judged], indent=1))
    return int(catch_rate(judged) < at_least)
