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
from tilewright.runtime.gpu_model import GpuModel

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
            scale = np.abs(theirs).max(initial=1e-30)
            assert np.abs(ours.astype(np.float64) - theirs).max(initial=0.0) <= 2e-5 * scale


@pytest.mark.parametrize("name", ALWAYS)
def test_hopper(name: str) -> None:
    check(name, "cuda:sm_90a")


@pytest.mark.parametrize("name", ("lstm_tiny", "bert_tiny"))
def test_ampere(name: str) -> None:
    check(name, "cuda:sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", SMALL)
def test_all(name: str, target: str) -> None:
    check(name, target)
