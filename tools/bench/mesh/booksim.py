# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tier T2 beside BookSim2 (ISPASS 2013), where the user has built it: latency without load, rate at saturation.

BookSim2 is no part of this project. It is run as `booksim CONFIG` on lines of cores (`topology = mesh; n = 1`): rows of
a mesh, since our routes go along one axis. Its router has stages that ours has not: cycles per hop and per message are
taken from two of its runs, and what a third distance takes must then follow to the cycle. Rates at saturation need no
parameter. A flow has a virtual channel of its own here; BookSim2 gets as many as there are flows.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Binary, Const, Dim
from tilewright.sim.coremesh.machine import Machine, machine
from tilewright.sim.coremesh.program import Buffer, Cores, Place, Program, Recv, Route, Send, Slot, Wait
from tilewright.sim.coremesh.wavelets import simulate

#: Of T2 besides hops and ramps: memory is read before the first cycle on a ramp, and written after the last.
_ENDS = 2
_RAMP = 1
_SECONDS = 600
#: Wavelets of each flow at saturation: beginning and end are below 2 % of the run.
_LONG = 1000
#: Lines whose pattern `tornado` sends over 1, 3 and 7 hops at least.
_LINES = (4, 8, 16)
_WIDTH = 8

#: Where a core of a line sends to, as BookSim2's traffic patterns of that name have it.
PATTERNS: dict[str, Callable[[int, int], int]] = {
    "bitcomp": lambda at, width: width - 1 - at,
    "neighbor": lambda at, width: (at + 1) % width,
    "tornado": lambda at, width: (at + width // 2 - 1) % width,
}


@dataclass(frozen=True)
class Found:
    """What BookSim2 says of a run: cycles of the fastest flit, flits per core and cycle."""

    least_latency: float
    accepted: float


def config_text(width: int, traffic: str, rate: float) -> str:
    """A configuration of BookSim2: packets of one flit, injected at a rate per core and cycle."""
    keys = {
        "topology": "mesh",
        "k": width,
        "n": 1,
        "routing_function": "dor",
        "use_noc_latency": 0,
        "num_vcs": 16,
        "vc_buf_size": 8,
        "traffic": traffic,
        "injection_rate": rate,
        "sim_type": "throughput" if rate > 0.5 else "latency",
        "warmup_periods": 3,
        "sample_period": 2000,
        "seed": 1,
    }
    return "".join(f"{key} = {value};\n" for key, value in keys.items())


def read_output(text: str) -> Found:
    """What is printed for all of a run, the last of each statistic.

    Raises:
        UserError: it is not there.
    """
    latencies = re.findall(r"^Flit latency average = \S+.*\n\s*minimum = (\S+)", text, re.MULTILINE)
    rates = re.findall(r"^Accepted flit rate average\s*= (\S+)", text, re.MULTILINE)
    if not latencies or not rates:
        raise UserError(
            "BookSim2 printed no 'Flit latency average' with its minimum, or no 'Accepted flit rate average': "
            f"is --booksim a BookSim2 of 2013 or later? Its last lines:\n{text[-600:]}"
        )
    return Found(float(latencies[-1]), float(rates[-1]))


def run_booksim(binary: Path, width: int, traffic: str, rate: float) -> Found:
    """Run BookSim2 once; it ends with status 255 where all is well, so only its output counts.

    Raises:
        UserError: it cannot be started, takes too long, or says nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        config.write_text(config_text(width, traffic, rate))
        try:
            # Some versions write files beside them.
            done = subprocess.run(
                [binary.resolve(), config], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"--booksim {binary}: {error}; give the path of a BookSim2 binary") from error
    return read_output(done.stdout + done.stderr)


def flows(width: int, pattern: str, wavelets: int) -> Program:
    """Each core of a line sends to where the pattern says; a message on each route."""
    body: list[Send | Recv | Wait] = []
    routes = []
    for at in range(width):
        to = PATTERNS[pattern](at, width)
        routes.append(Route(f"r{at}", "x", Binary("+", Dim(0), Const(at - to))))
        body.append(Send(_column(at), f"r{at}", Slot("v"), "t"))
    for at in range(width):
        body.append(Recv(_column(PATTERNS[pattern](at, width)), f"r{at}", Slot("w"), "t"))
    shape, number = (1, width * wavelets), np.dtype("float32")
    return Program(
        pattern,
        1,
        width,
        (Buffer("v", (1, wavelets), number), Buffer("w", (1, wavelets), number)),
        tuple(routes),
        (Place("v", shape, Slot("v"), (Dim(0), Dim(1))),),
        (Place("out", shape, Slot("w"), (Dim(0), Dim(1))),),
        (*body, Wait(("t",))),
    )


def _column(at: int) -> Cores:
    return Cores(zero=(Binary("+", Dim(1), Const(-at)),))


def _one(width: int, hops: int) -> Program:
    """One wavelet over so many hops."""
    program = flows(width, "tornado", 1)
    body = (Send(_column(0), "r0", Slot("v"), "t"), Recv(_column(hops), "r0", Slot("w"), "t"), Wait(("t",)))
    return Program("one", 1, width, program.buffers, program.routes[:1], program.inputs, program.outputs, body)


def _matched(hop: float, message: float) -> Machine:
    """The machine with so many cycles per hop, and per message besides."""
    base = message - _ENDS - 2 * _RAMP
    if hop != int(hop) or hop < 1 or base != int(base) or base < 0:
        raise UserError(
            f"{hop:g} cycles per hop and {message:g} per message are no machine of T2, which takes whole cycles, one "
            f"per hop and {_ENDS + 2 * _RAMP} per message at least: raise BookSim2's delays"
        )
    fields: dict[str, Any] = {"width": 64, "height": 1, "alpha_cycles": int(hop), "base_cycles": int(base)}
    return machine("toy8x8", ramp_cycles=_RAMP, **fields)


def rows(binary: Path) -> list[dict[str, Any]]:
    """Rows: BookSim2's figure, that of T2, and how far they are apart.

    Raises:
        UserError: BookSim2 cannot be run or read.
    """
    hops = [width // 2 - 1 for width in _LINES]
    latencies = [run_booksim(binary, width, "tornado", 0.002).least_latency for width in _LINES]
    hop = (latencies[1] - latencies[0]) / (hops[1] - hops[0])
    matched = _matched(hop, latencies[0] - hop * hops[0])
    found = [
        _row(
            f"cycles of a flit over {far} hops{', matched' if far < hops[-1] else ''}",
            latency,
            _cycles(matched, width, far),
        )
        for width, far, latency in zip(_LINES, hops, latencies, strict=True)
    ]
    for pattern in PATTERNS:
        theirs = run_booksim(binary, _WIDTH, pattern, 1.0).accepted
        found.append(_row(f"flits per core and cycle, {pattern}", theirs, rate_of(pattern)))
    return found


def _cycles(matched: Machine, width: int, hops: int) -> float:
    return float(simulate(_one(width, hops), matched).cycles)


def rate_of(pattern: str) -> float:
    """Wavelets per core and cycle at saturation, by T2."""
    cycles = simulate(flows(_WIDTH, pattern, _LONG), machine("toy8x8", height=1)).cycles
    return _LONG / cycles


def _row(what: str, theirs: float, ours: float) -> dict[str, Any]:
    error = round(100 * (ours / theirs - 1), 1) if theirs else float("inf")
    return {"what": what, "booksim": round(theirs, 3), "t2": round(ours, 3), "error_percent": error}
