# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes put into programs: at least 95 % of those that do harm are caught, each with a message.

A mistake does harm if the functional simulator stops or computes other numbers, or if a router mixes two flows. It is
caught if a check or that simulator stops with an error: warnings count as little as other numbers alone.
"""

from collections import Counter

import numpy as np
import pytest
from planned import inputs_of, programs
from undone import mixtures

from tilewright.core.errors import UserError
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.checks.report import check_program
from tilewright.sim.coremesh.faults import faults_of
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine

WSE = machine("wse2")


def caught(program):
    """The error that the checks stop with, if they do."""
    try:
        check_program(program, WSE)
    except UserError as error:
        return str(error)
    return ""


def harm(fault, inputs, right):
    """What a fault does, and what the simulator says of it."""
    try:
        results = run(fault.program, inputs)
    except UserError as error:
        return "stops", str(error)
    except (ValueError, IndexError):
        return "stops", ""  # NumPy, not the simulator, found it
    if any(not np.array_equal(results[name], right[name]) for name in right):
        return "numbers", ""
    if fault.kind == "other color" and mixtures(fault.program):
        return "mixes", ""
    return "", ""


def inject(most):
    """Faults that do harm: {(kind, caught or not): how many}; those not caught by name."""
    counts, missed = Counter(), []
    for name, program in programs().items():
        program = fit_program(program, WSE)[0]
        inputs = inputs_of(program)
        right = run(program, inputs)
        faults = faults_of(program)
        if len(faults) > most:
            faults = [faults[at] for at in np.sort(np.random.default_rng(7).choice(len(faults), most, replace=False))]
        for fault in faults:
            what, simulator = harm(fault, inputs, right)
            message = caught(fault.program) or simulator
            if what:
                counts[fault.kind, bool(message)] += 1
                if not message:
                    missed.append((name, fault.kind, fault.where))
    return counts, missed


@pytest.mark.parametrize("most", [16, pytest.param(150, marks=pytest.mark.slow)])
def test_95_percent_of_harmful_faults_are_caught(most):
    """Of the large sample; a small one may be three standard errors off."""
    counts, missed = inject(most)
    harmful = counts.total()
    chance = 3 * np.sqrt(0.05 * 0.95 * harmful) if most < 100 else 0
    assert len(missed) <= 0.05 * harmful + chance, missed
    kinds = {kind for kind, _ in counts}
    assert kinds >= {"forgotten token", "left out", "other route", "other slot", "other cores", "source one off"}
    assert kinds >= {"other color", "shrunk buffer"}
    assert all(counts[kind, True] for kind in kinds)


def test_faults_are_the_same_each_time():
    program = fit_program(programs()["chain"], WSE)[0]
    assert [(one.kind, one.where) for one in faults_of(program)] == [
        (one.kind, one.where) for one in faults_of(program)
    ]
    assert all(one.program != program for one in faults_of(program))
