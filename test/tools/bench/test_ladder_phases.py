# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward model of a ring of buffers against the emulator, with counts and parities right and wrong."""

import dataclasses

import pytest

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis.phases import outcomes, source
from bench.gpu.far.ladder.diagnosis.phases_cause import diagnose
from bench.gpu.far.ladder.setup import MbarrierSetup
from bench.gpu.ladder.ring import ring
from tilewright.sim import ptx as emulate

RIGHT = MbarrierSetup(3, 8, 1, 2, 1024, 1024)


ONCE = dataclasses.replace(RIGHT, stages=4, rounds=4)


def run(setup, completion, loaded=RIGHT):
    """What the emulator shows, as a GPU would."""
    device = emulate.Device(options=emulate.Options(checks=frozenset(), completion=completion))
    return watching.ring(device, ring(), setup, source(loaded), limit=500)


@pytest.mark.slow
@pytest.mark.parametrize("completion", ["late", "early"])
@pytest.mark.parametrize(
    "change", [{}, {"full_count": 3}, {"empty_count": 5}, {"tx_bytes": 1088}, {"tx_bytes": 96}, {"box_bytes": 512},
               {"empty_parity": 0}]
)  # fmt: skip
def test_model_and_emulator_agree(change, completion):
    setup = dataclasses.replace(RIGHT, **change)
    seen = run(setup, completion)
    assert any(one.same(seen) for one in outcomes(setup))
    cause = diagnose(RIGHT, seen)
    assert (cause.field if cause else None) == next(iter(change), None)


def test_a_parity_that_lets_the_consumer_through():
    cause = diagnose(ONCE, run(dataclasses.replace(ONCE, full_parity=1), "late", ONCE))
    assert cause is not None and cause.field == "full_parity" and "before their load" in cause.text
