# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rungs whose kernels write down what reached them: how they were launched, and which phases of a ring went by."""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.boxes import polls
from bench.gpu.far.ladder.device import Opener, Pack
from bench.gpu.far.ladder.diagnosis import launches, phases, phases_cause
from bench.gpu.far.ladder.explain import explain
from bench.gpu.far.ladder.programs import rung
from bench.gpu.far.ladder.report import Report
from bench.gpu.far.ladder.setup import LaunchSetup, MbarrierSetup, to_json

_NAMES = ("x", "y", "size", "stride", "mode")
_VALUES = (0x7F12_3456_7800, 0x7F65_4321_0F00, 1000, 4096, 3)
LAUNCHES = {
    "grid": LaunchSetup((6, 4, 2), (64, 2, 1), (1, 1, 1), 2048, _NAMES, _VALUES),
    "cluster_2x1": LaunchSetup((8, 4, 1), (128, 1, 1), (2, 1, 1), 66560, _NAMES, _VALUES),
    "cluster_1x2": LaunchSetup((4, 8, 2), (32, 4, 1), (1, 2, 1), 0, _NAMES, _VALUES),
}
RINGS = {
    "once": MbarrierSetup(4, 4, 1, 2, phases.PITCH, phases.PITCH),
    "three_buffers": MbarrierSetup(3, 8, 1, 2, phases.PITCH, phases.PITCH),
    "two_buffers": MbarrierSetup(2, 7, 1, 2, 768, 768),
}


def launched(pack: Pack, open_: Opener, report: Report) -> None:
    """Every CTA writes down its launch, on a GPU with clusters; then the programs of the rung."""
    for probe in pack.probes(report.rung):
        for name, setup in LAUNCHES.items():
            with report.check(name, to_json(setup)) as check:
                found = watching.echo(open_(0), pack.text(probe), setup)
                wrong = int(np.any(found != launches.records(setup), axis=1).sum())
                check.tell("every CTA was launched as meant")
                if wrong:
                    check.wrong(**explain(f"{wrong} CTAs were launched otherwise", launches.diagnose(setup, found)))
    rung("launches")(pack, open_, report)


def rings(pack: Pack, open_: Opener, report: Report) -> None:
    """Loads go through a ring of buffers, whose waits end; all that came through is compared."""
    for name, setup in RINGS.items():
        with report.check(name, to_json(setup)) as check:
            device = open_(0)
            text = pack.text(pack.probe("ring"))
            found = watching.ring(device, text, setup, phases.source(setup), polls(device))
            check.tell(f"{setup.rounds} loads through {setup.stages} buffers")
            if not any(one.same(found) for one in phases.outcomes(setup)):
                said = f"{found.produced} loads were started and {found.consumed} came through, of {setup.rounds}"
                check.wrong(**explain(said, phases_cause.diagnose(setup, found)))
