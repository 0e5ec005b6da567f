# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by Hopper's warpgroups, on the emulator: TMA, mbarriers and wgmma in any order that the machine allows."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from test_gpu_attention import attention

import tilewright as tw

CASES = {
    "d64": (2, 128, 256, 64, np.float16, False),
    "d128": (2, 128, 512, 128, ml_dtypes.bfloat16, False),
    "d64, causal": (1, 256, 256, 64, ml_dtypes.bfloat16, True),
    "d128, causal": (1, 256, 256, 128, np.float16, True),
    "ragged queries and keys": (2, 100, 300, 64, ml_dtypes.bfloat16, False),
    "ragged, causal": (1, 197, 197, 128, np.float16, True),
    "one whole block": (2, 70, 100, 64, np.float16, False),
    "padded channels": (1, 128, 320, 80, ml_dtypes.bfloat16, False),
}


def expected(arrays: list[np.ndarray], causal: bool) -> np.ndarray:
    """softmax(q k^T / sqrt(channels)) v in float64."""
    q, k, v = (array.astype(np.float64) for array in arrays)
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)) @ v


def texts(folder: Path) -> str:
    """All PTX of an artifact."""
    return "\n".join(path.read_text() for path in folder.rglob("*.ptx"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_attention_by_warpgroups(name: str, tmp_path: Path) -> None:
    heads, queries, keys, channels, kind, causal = CASES[name]
    model = attention(*CASES[name])
    rng = np.random.default_rng(1)
    shapes = [(1, heads, size, channels) for size in (queries, keys, keys)]
    arrays = [rng.standard_normal(shape).astype(kind) for shape in shapes]
    folder = tmp_path / "attention"
    tw.compile(model, target="cuda:sm_90a", emulate=True).save(folder)
    text = texts(folder)
    assert "wgmma.mma_async" in text and "cp.async.bulk.tensor" in text and "setmaxnreg" in text
    assert "mma.sync" not in text, "all products are warpgroups'"
    if name != "padded channels":  # one product after the other there
        assert "wgmma.wait_group.sync.aligned 1;" in text, "scores of the next block run beside the product of this one"
    for seed in (None, 2, 5):
        options = True if seed is None else {"seed": seed}
        actual = np.asarray(tw.load(folder, emulate=options)(*arrays)[0])
        error = 4e-3 if kind is np.float16 else 3e-2
        np.testing.assert_allclose(actual.astype(np.float64), expected(arrays, causal), atol=error)
