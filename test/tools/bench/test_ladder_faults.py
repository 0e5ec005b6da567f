# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults drawn at random in the probes of the ladder: the right rung fails, and no wrong cause is named."""

from collections import Counter

import pytest

from bench.gpu.far.ladder.diagnosis.cause import Cause
from bench.gpu.ladder import campaign
from bench.gpu.ladder.faulty.family import Fault
from bench.gpu.ladder.faulty.rungs import FAMILIES


def judged(count, seed, jobs=1):
    """Outcomes, by verdict; all effective ones failed at their own rung."""
    outcomes = campaign.run(count, seed, jobs)
    effective = [one for one in outcomes if campaign.counts(one)]
    assert len(effective) >= count and all(one.rung == one.fault.rung for one in effective)
    return Counter(one.verdict for one in outcomes)


@pytest.mark.slow
def test_a_few_faults():
    found = judged(12, seed=7)
    assert found[campaign.WRONG] == 0 and found[campaign.RIGHT] >= 9


@pytest.mark.slow
def test_two_hundred_faults():
    found = judged(200, seed=1, jobs=2)
    assert found[campaign.WRONG] == 0 and found[campaign.RIGHT] >= 180


def test_a_cause_of_another_field_is_wrong():
    class Misled(type(FAMILIES[0])):
        def diagnose(self, case, seen):
            return Cause("block", None, (), "")

    fault = Fault("launches", 0, "shared_bytes", 2048, 0, FAMILIES[0].cases[2])
    assert campaign.climb(fault, (Misled(),)).verdict == campaign.WRONG


def test_no_fault_is_no_failure():
    setup = FAMILIES[0].cases[0]
    assert campaign.climb(Fault("launches", 0, "grid", 0, 0, setup), FAMILIES[:1]).verdict == campaign.QUIET
