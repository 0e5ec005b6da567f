# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings of com.microsoft beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, RANDOM, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

BATCH, ROWS, HEADS, SIZE = 2, 3, 4, 8
PLACES = np.array([[3, 4, 5], [0, 1, 2]], np.int64)


def tables(half=SIZE // 2):
    angle = RANDOM.uniform(0, 6, (16, half))
    return [np.cos(angle).astype(F32), np.sin(angle).astype(F32)]


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(BATCH, ROWS, HEADS * SIZE), (BATCH, HEADS, ROWS, SIZE)])
@pytest.mark.parametrize("places", [PLACES, np.array([2], np.int64)], ids=["each", "first"])
def test_whole_heads(interleaved, shape, places):
    beside_runtime(
        "RotaryEmbedding", [real(*shape), places, *tables()], known=(2, 3), opens=(ROWS,), interleaved=interleaved
    )


def test_part_of_heads():
    inputs = [real(BATCH, ROWS, HEADS * SIZE), PLACES, *tables(2)]
    beside_runtime("RotaryEmbedding", inputs, known=(2, 3), opens=(ROWS,), rotary_embedding_dim=4, num_heads=HEADS)


def test_scale_is_ignored_with_a_remark():
    inputs = [real(BATCH, ROWS, HEADS * SIZE), PLACES, *tables()]
    beside_runtime("RotaryEmbedding", inputs, known=(2, 3), opens=(ROWS,), scale=0.5)
    remarks = import_onnx(model_of("RotaryEmbedding", inputs, scale=0.5)).remarks
    assert any("scale is ignored" in text for text in remarks.values())


def test_refused():
    inputs = [real(BATCH, ROWS, HEADS * SIZE), PLACES, *tables()]
    with pytest.raises(UnsupportedError, match="is_packed_batching"):
        import_onnx(model_of("RotaryEmbedding", inputs, is_packed_batching=1))
    with pytest.raises(UserError, match="needs num_heads"):
        import_onnx(model_of("RotaryEmbedding", inputs, rotary_embedding_dim=4))


def test_gemma():
    angle = real(BATCH, ROWS, SIZE)
    q, q_rot, k, k_rot = (real(BATCH, HEADS, ROWS, SIZE) for _ in range(4))
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    want = [q * cos + q_rot * sin, k * cos + k_rot * sin]
    inputs = [angle, q, q_rot, k, k_rot]
    beside_runtime("GemmaRotaryEmbedding", inputs, ["float"] * 2, expected=want, half=False)


@pytest.mark.parametrize(("layout", "shares"), [(0, [1, 2, 1]), (1, [2, 1, 1])])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(BATCH, ROWS, HEADS * SIZE), (BATCH, HEADS, ROWS, SIZE)])
def test_three_positions(layout, shares, interleaved, shape):
    places = RANDOM.integers(0, 16, (3, BATCH, ROWS)).astype(np.int64)
    inputs = [real(*shape), places, *tables()]
    how = {"mrope_section": shares, "mrope_layout": layout, "interleaved": interleaved}
    more = {"num_heads": HEADS} if len(shape) == 3 else {}
    beside_runtime("MRotaryEmbedding", inputs, known=(2, 3), opens=(BATCH,), **how, **more)
