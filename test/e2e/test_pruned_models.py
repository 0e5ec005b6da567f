# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with pruned weights shrink, and give the numbers of the masked dense model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest

import models
import pruned_programs
import tilewright as tw
from models.compare import assert_close, onnxruntime_outputs
from models.pruned import prune_channels, prune_encoder

TARGETS = ("cpu", "cpu:x86-64-v3", "cuda:sm_80", "cuda:sm_90a")


def compiled(model: Any, target: str, **options: Any) -> Any:
    return tw.compile(model, target, **({"emulate": True} if target.startswith("cuda") else {}), **options)


def left(model: onnx.ModelProto | str, target: str = "cpu") -> float:
    """The part of the terms of reductions that the report says are left; 1 where it says nothing."""
    data = compiled(model, target).report_data()
    told = re.findall(r"pruned weights: reductions keep ([\d.]+) %", str(data["remarks"]))
    return float(told[0]) / 100 if told else 1.0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bert_tiny", "bert_tiny_export", "bert_tiny_batch"])
def test_heads_and_channels(name: str, target: str) -> None:
    model = prune_encoder(models.build(name), 2 / 3, heads=3)
    inputs = models.random_inputs(model)
    ours = compiled(model, target)(**inputs)
    assert_close(ours, onnxruntime_outputs(model.SerializeToString(), inputs))
    assert left(model, target) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "most"), [("mobilenet_tiny", 0.9), ("resnet_tiny", 0.8)])
def test_channels_of_convolutions(name: str, most: float, target: str) -> None:
    """Residual sums keep the channels that one of both sides has."""
    model = prune_channels(models.build(name), 0.6)
    inputs = models.random_inputs(model)
    assert_close(compiled(model, target)(**inputs), onnxruntime_outputs(model.SerializeToString(), inputs))
    assert left(model, target) < most


def test_dense_models_stay() -> None:
    assert left(models.build("bert_tiny")) == left(models.build("mobilenet_tiny")) == 1.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_random_programs(seed: int, target: str) -> None:
    """Compiled, a program gives the numbers of its dense form."""
    rng = np.random.default_rng(seed)
    program = pruned_programs.drawn(rng, steps=4, rows=3, widest=40, external=True)
    text, weights = program.text(), program.weights
    x = rng.integers(-2, 3, (3, program.values[0][1])).astype(np.float64)
    theirs = compiled(text, "reference", weights=weights)(x)
    for a, b in zip(compiled(text, target, weights=weights)(x), theirs, strict=True):
        np.testing.assert_array_equal(a, b)
