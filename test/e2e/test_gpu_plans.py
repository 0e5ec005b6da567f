# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small graphs as tile kernels for GPUs, in the reference interpreter, against the graphs as imported."""

from __future__ import annotations

import re

import numpy as np
import pytest
from gpu_plans import planned
from random_graphs import KINDS, Maker

from tilewright.bisection.entry import interpret
from tilewright.targets.source import open_source

SEEDS = range(20, 23)


@pytest.mark.parametrize("device", ["nvidia-sm80", "nvidia-h200"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_for_a_gpu_compute_what_was_imported(kind: str, device: str) -> None:
    for seed in SEEDS:
        maker = Maker(seed)
        KINDS[kind](maker)
        model, feeds = maker.model(), maker.feeds()
        before, after = planned(model, device)
        outputs = open_source(model).load(None, True).outputs
        inputs = [feeds[name] for name in maker.inputs]
        for expected, actual in zip(interpret(before, inputs, outputs), interpret(after, inputs, outputs), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
        _check_sizes(str(after.module))


def _check_sizes(text: str) -> None:
    """All tiles have sizes that threads can share: powers of two."""
    for shape in set(re.findall(r"!tile\.tile<((?:\d+x)+)", text)):
        assert all(size & (size - 1) == 0 for size in map(int, shape.rstrip("x").split("x"))), shape


def test_attention_is_one_kernel_without_buffers() -> None:
    maker = Maker(3)
    KINDS["attention"](maker)
    text = str(planned(maker.model())[1].module)
    assert text.count("tile.kernel @") == 1
    assert "tile.alloc" not in text
    assert text.count("tile.mma") == 2
