# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Biases by distance, which only ONNX Runtime's GPUs have, beside the papers' code in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError
from tilewright.frontend import import_onnx


def buckets(distance, both, count, farthest):
    """T5's buckets of key - query."""
    result = np.zeros_like(distance)
    if both:
        count //= 2
        result += (distance > 0) * count
        distance = np.abs(distance)
    else:
        distance = -np.minimum(distance, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        grown = np.log(distance.astype(F32) / exact) / np.log(farthest / exact) * (count - exact)
    large = np.minimum(exact + np.where(distance > 0, grown, 0).astype(np.int64), count - 1)
    return result + np.where(distance < exact, distance, large)


@pytest.mark.parametrize("both", [0, 1])
@pytest.mark.parametrize("farthest", [20, 128])
@pytest.mark.parametrize("known", [(), (1, 2)])
def test_buckets(both, farthest, known):
    table, rows, columns = real(32, 4), 40, 50
    places = buckets(np.arange(columns)[None] - np.arange(rows)[:, None], both, 32, farthest)
    want = [table[places].transpose(2, 0, 1)[None]]
    inputs = [table, np.array([rows], np.int64), np.array([columns], np.int64)]
    options = {"is_bidirectional": both, "max_distance": farthest}
    beside_runtime("RelativePositionBias", inputs, known=known, opens=False, expected=want, **options)


def test_gates():
    batch, rows, heads, size = 2, 3, 4, 8
    query, bias, positions = real(batch, rows, heads * size), real(heads * size), real(1, heads, rows, rows)
    w, more, constant = real(size, 6), real(6), real(1, heads, 1, 1)
    split = (query + bias).reshape(batch, rows, heads, size).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(split @ w + more).reshape(batch, heads, rows, 2, 3).sum(-1)))
    u, r = gates[..., :1], gates[..., 1:]
    want = (u * (r * constant - 1) + 2) * positions
    inputs = [query, bias, positions, w, more, constant]
    beside_runtime("GatedRelativePositionBias", inputs, expected=[want], opens=(batch,), num_heads=heads)
    with pytest.raises(UnsupportedError, match="without packing"):
        import_onnx(model_of("GatedRelativePositionBias", [*inputs, np.zeros((2, 3), np.int32)], num_heads=heads))
