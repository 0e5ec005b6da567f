# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rungs' programs should compute, in f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def matmul(a: np.ndarray, b: np.ndarray, *, a_by_columns: bool, b_by_rows: bool, scale: float = 1.0) -> np.ndarray:
    """`scale` times `a` [m, k] (or [k, m]) times `b` [k, n] (or [n, k], not `b_by_rows`)."""
    return scale * ((a.T if a_by_columns else a) @ (b if b_by_rows else b.T))


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Their sum."""
    return x + y


def softmax(x: np.ndarray) -> np.ndarray:
    """Over the last dimension."""
    p = np.exp(x - x.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def layernorm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Over the last dimension, epsilon 1e-5."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    """softmax(q k^T / sqrt(channels)) v; `causal`: key j takes part in query i where j <= i."""
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return softmax(scores) @ v


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "matmul": matmul,
    "add": add,
    "softmax": softmax,
    "layernorm": layernorm,
    "attention": attention,
}
