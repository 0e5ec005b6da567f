# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes put into programs: at least 95 % of those that do harm are caught, each with a message."""

from collections import Counter

import numpy as np
import pytest
from planned import programs

from faulting.__main__ import main
from faulting.mesh import Judged, catch_rate, judge, subjects, table
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.faults import faults_of
from tilewright.sim.coremesh.machine import machine

WSE = machine("wse2")
KINDS = {
    *("forgotten token", "left out", "other route", "other slot", "other cores", "source one off"),
    *("other color", "shrunk buffer"),
}


@pytest.mark.parametrize("most", [16, pytest.param(150, marks=pytest.mark.slow)])
def test_95_percent_of_harmful_faults_are_caught(most: int):
    """Of the large sample 97 %; a small one may be three standard errors below 95 %."""
    judged = [one for name in (subjects() if most > 100 else programs()) for one in judge(name, most)]
    harmful = [one for one in judged if one.harm]
    chance = 3 * np.sqrt(0.05 * 0.95 / len(harmful))
    assert catch_rate(judged) >= (0.95 - chance if most < 100 else 0.97), [one for one in harmful if not one.by]
    caught = Counter(one.kind for one in harmful if one.by)
    assert {one.kind for one in harmful} >= KINDS
    assert all(caught[one.kind] for one in harmful)
    assert all(one.message for one in harmful if one.by)


def test_what_is_counted():
    """Of those that do harm, by kind; what has no effect counts nowhere."""
    judged = [
        Judged("p", "left out", "body[0]", "stops", "checks", "a message"),
        Judged("p", "left out", "body[1]", "numbers", "", ""),
        Judged("p", "other slot", "body[2]", "", "", ""),
        Judged("p", "other slot", "body[3]", "numbers", "simulator", "a message"),
    ]
    assert table(judged).splitlines()[2:] == [
        "| left out | 2 | 1 | 0 | 1 |",
        "| other slot | 1 | 0 | 1 | 0 |",
        "| all | 3 | 1 | 1 | 1 |",
    ]
    assert catch_rate(judged) == pytest.approx(2 / 3)
    assert catch_rate([]) == 1.0


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`tools/faults --mesh` prints the table, and fails where too few were caught."""
    monkeypatch.setattr("faulting.mesh.subjects", lambda: {"chain": lambda: programs()["chain"]})
    for least, status in (("0.5", 0), ("1.1", 1)):
        monkeypatch.setattr("sys.argv", ["faults", "--mesh", "--count", "6", "--jobs", "1", "--at-least", least])
        assert main() == status
        assert "6 faults in 1 programs" in capsys.readouterr().out


def test_faults_are_the_same_each_time():
    program = fit_program(programs()["chain"], WSE)[0]
    assert [(one.kind, one.where) for one in faults_of(program)] == [
        (one.kind, one.where) for one in faults_of(program)
    ]
    assert all(one.program != program for one in faults_of(program))
