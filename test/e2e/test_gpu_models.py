# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models for NVIDIA GPUs give the CPU's numbers on the emulator; all of test_models.py with `-m slow`."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from test_models import SMALL

import models
import tilewright as tw
from models.quantized import LOGIT_STEP
from tilewright.runtime.gpu.gpu_model import GpuModel

#: Beyond plain networks: results whose size depends on the data, loops, branches, caches that come out.
OTHERS = ("detection_tiny", "control_tiny", "decoder_tiny", "decoder_tiny_export")
#: Networks of bytes, with the step of their results: a number half-way between two steps goes to either of them.
STEPS = {"quantized_tiny": LOGIT_STEP, "quantized_transformer_tiny": 0.05}
#: One of each kind: transformers, convolutions, recurrence with loops, a step of decoding.
ALWAYS = ("mlp_tiny", "bert_tiny", "resnet_tiny", "lstm_tiny", "gpt_tiny_decode")


def check(name: str, target: str) -> None:
    """Two sets of inputs, the second of which shows state that leaks between calls."""
    file = models.path(name)
    proto = onnx.load(file)
    plain, compiled = tw.compile(str(file), threads=2), tw.compile(str(file), target=target, emulate=True)
    assert isinstance(compiled, GpuModel)
    for seed in (0, 1):
        inputs = models.random_inputs(proto, seed).values()
        for ours, theirs in zip(compiled(*inputs), plain(*inputs), strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            scale = np.abs(theirs).max(initial=1e-30)
            assert np.abs(ours.astype(np.float64) - theirs).max(initial=0.0) <= 2e-5 * scale


@pytest.mark.slow
@pytest.mark.parametrize("name", ALWAYS)
def test_hopper(name: str) -> None:
    check(name, "cuda:sm_90a")


@pytest.mark.parametrize("name", ("lstm_tiny", "bert_tiny"))
def test_ampere(name: str) -> None:
    check(name, "cuda:sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", (*SMALL, *OTHERS))
def test_all(name: str, target: str) -> None:
    check(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", STEPS)
def test_bytes(name: str, target: str) -> None:
    """Nearly all numbers are the CPU's, and no other one is farther than a step away."""
    file = models.path(name)
    plain, compiled = tw.compile(str(file), threads=2), tw.compile(str(file), target=target, emulate=True)
    for seed in (0, 1):
        inputs = models.random_inputs(onnx.load(file), seed).values()
        (ours,), (theirs,) = compiled(*inputs), plain(*inputs)
        np.testing.assert_allclose(ours, theirs, atol=1.01 * STEPS[name])
        assert (np.abs(ours - theirs) > 1e-4).mean() <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("target", ("cuda:sm_80", "cuda:sm_90a"))
@pytest.mark.parametrize("name", ("mobilenet_v2", "resnet50", "vit_base", "lstm4", "mlp_mixer", "squeezenet"))
def test_models_of_the_suites_compile(name: str, target: str) -> None:
    """In the sizes that are measured: what their plans hold, small models do not show."""
    assert tw.compile(str(models.path(name)), target=target, emulate=True).target == target
