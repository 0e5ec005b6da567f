# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of Roller's paper: all are planned quickly; a sample is compiled and right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from counting import calls_of
from tilewright.mlir import ir
from tilewright.plan.cost.decide import prediction_of

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "tools"))
from bench.roller.operators import paper

OPERATORS = {operator.name: operator for operator in paper()}
#: Smallest ones of each kind: a convolution with a stride, depthwise, a product, sums, a map, pools.
SAMPLE = ("C30", "D7", "D5", "M2", "R3", "E19", "P2")


def test_the_list_is_the_papers() -> None:
    kinds = {kind: sum(name[0] == kind for name in OPERATORS) for kind in "CDMREP"}
    assert kinds == {"C": 44, "D": 23, "M": 7, "R": 4, "E": 28, "P": 13}


@pytest.mark.slow
def test_planning_takes_little_work() -> None:
    """Import, normalize and plan together: 200,000 calls of functions, 0.1 s, for an operator; candidates are few."""
    names = [name for name in OPERATORS if name not in ("M3", "M4", "M5", "M6")]  # large weights: numpy's time
    chosen = names[::8]
    texts: list[str] = []
    total = 0
    for name in chosen:
        model = OPERATORS[name].model().SerializeToString()
        total += calls_of(lambda model=model: texts.append(tw.compile(model, stop_after="plan")))
        tried = [int(number) for number in re.findall(r"candidates = (\d+)", texts[-1])]
        assert tried and max(tried) < 500
    assert total / len(chosen) < 1_000_000


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_is_right(name: str) -> None:
    model = OPERATORS[name].model().SerializeToString()
    compiled = tw.compile(model, threads=2)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(slot.shape, np.float32) for slot in compiled.inputs]
    expected = tw.compile(model, target="reference")(*inputs)[0]
    np.testing.assert_allclose(compiled(*inputs)[0], expected, rtol=2e-4, atol=2e-4 * float(np.abs(expected).max()))


def test_predictions_are_attributes() -> None:
    text = tw.compile(OPERATORS["R3"].model().SerializeToString(), stop_after="plan")
    found = []
    with ir.Context():
        ir.Module.parse(text).operation.walk(lambda op: found.append(prediction_of(op)) or ir.WalkResult.ADVANCE)
    (prediction,) = [p for p in found if p]
    assert prediction["ns"] > 0 and prediction["candidates"] > 10
    assert prediction["runner_up"].startswith("#tile.rtile<") and prediction["runner_up_ns"] > 0
    assert {"all_cores_ns", "bound", "compute_ns", "dispatch_ns", "l2_bytes", "memory_bytes"} <= set(prediction)
