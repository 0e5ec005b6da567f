# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials of attention: approximate where 16 bits are made of them, exact elsewhere; cost and error."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from bench.gpu.kernels import attention
from bench.gpu.slots import slots

ARCHS = ("sm_80", "sm_90a")
SIZES = {"batch": 1, "heads": 1, "groups": 1, "queries": 128, "keys": 192, "depth": 64}
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def _code(model: object) -> str:
    return "".join(path.read_text() for path in model.path.glob("code/*.ptx"))  # type: ignore[attr-defined]


def _wanted(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("accuracy", ["exact", "fast"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("arch", ARCHS)
def test_sixteen_bits_hide_the_error(arch: str, kind: str, causal: bool, accuracy: str) -> None:
    sizes = {**SIZES, "keys": 128} if causal else SIZES
    built = attention(**sizes, causal=causal, dtype=kind)
    model = tw.compile(built, f"cuda:{arch}", accuracy=accuracy, emulate=True)
    assert "ex2.approx.ftz.f32" in _code(model)
    dtype, rng = np.dtype(getattr(ml_dtypes, kind, kind)), np.random.default_rng(7)
    shapes = (sizes["queries"], sizes["keys"], sizes["keys"])
    values = [rng.standard_normal((1, 1, size, 64)).astype(np.float32).astype(dtype) for size in shapes]
    found = model(*values)[0].astype(np.float64)
    wanted = _wanted(*values, causal)
    # Probabilities and results are rounded once each, reciprocals of sums twice (ONNX).
    assert np.abs(found - wanted).max() <= 3 * UNITS[kind] * np.abs(wanted).max()


@pytest.mark.parametrize("arch", ARCHS)
def test_f32_stays_exact(arch: str) -> None:
    model = tw.compile(attention(**SIZES, dtype="float32"), f"cuda:{arch}", emulate=True)
    assert "ex2.approx.f32" in _code(model)
    assert "ex2.approx.ftz.f32" not in _code(model)


@pytest.mark.parametrize(("depth", "most"), [(64, 6.0), (128, 6.5)])
def test_a_score_takes_few_slots(depth: int, most: float) -> None:
    assert slots(_code(tw.compile(attention(depth=depth), "cuda:sm_90a", emulate=True))) < most
