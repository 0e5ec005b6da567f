# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MultiHeadAttention beside ONNX Runtime; packed inputs, which only its GPUs take, beside unpacked ones."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, I32, agree, beside_runtime, model_of, real, run_runtime

import tilewright as tw
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

BATCH, ROWS, COLUMNS, HEADS, SIZE, PAST = 2, 3, 5, 2, 4, 7
WIDTH = HEADS * SIZE
WORDS = np.array([[1, 1, 0, 1, 0], [1] * 5], I32)
MASKS = {"words": WORDS, "ends": np.array([2, 5], I32), "pairs": np.array([[[1, 1, 0, 1, 1]] * 3] * 2, I32)}


def qkv(columns=COLUMNS, value=WIDTH):
    return [real(BATCH, ROWS, WIDTH), real(BATCH, columns, WIDTH), real(BATCH, columns, value)]


def check(inputs, outputs=("float",), opens=(ROWS, COLUMNS, PAST), **options):
    beside_runtime("MultiHeadAttention", inputs, outputs, opens=opens, num_heads=HEADS, **options)


def test_cross():
    check(qkv())
    check([*qkv(), real(3 * WIDTH)])
    check([*qkv(value=12), real(2 * WIDTH + 12)], scale=0.2)


def test_causal():
    check(qkv(ROWS), unidirectional=1)
    check(qkv(), unidirectional=1)
    check(qkv(2), unidirectional=1)


def test_split_keys():
    check([real(BATCH, ROWS, WIDTH), real(BATCH, HEADS, COLUMNS, SIZE), real(BATCH, HEADS, COLUMNS, SIZE)])


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("bias", [None, real(3 * WIDTH)], ids=["no bias", "bias"])
def test_masks(mask, bias):
    check([*qkv(), bias, mask])


@pytest.mark.parametrize("shape", [(BATCH, HEADS), (1, HEADS), (1, 1)])
def test_added(shape):
    check([*qkv(), None, WORDS, real(*shape, ROWS, COLUMNS)])


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", [None, np.array([[1] * 9 + [0], [0] + [1] * 9], I32)])
def test_past(causal, mask):
    past = [real(BATCH, HEADS, PAST, SIZE) for _ in range(2)]
    check([*qkv(ROWS), real(3 * WIDTH), mask, None, *past], ["float"] * 3, unidirectional=causal)


def test_scores():
    check([*qkv(), None, WORDS, real(1, 1, ROWS, COLUMNS)], ["float"] * 4)
    check(qkv(), ["float"] * 4, unidirectional=1, half=False)  # hidden keys have the lowest number of the type


def test_rows_of_padding():
    """Where padding has the score of hidden keys, a row that sees nothing else is the mean of all values."""
    arrays = [*(real(1, 256, 16) for _ in range(3)), None, (np.arange(256) > 99).astype(I32)[None]]
    lowest = float(np.finfo(F32).min)
    model = model_of("MultiHeadAttention", arrays, num_heads=1, unidirectional=1, mask_filter_value=lowest)
    given = {f"x{i}": x for i, x in enumerate(arrays) if x is not None}
    agree(list(tw.compile(model)(**given)), run_runtime(model, given))


def test_packed():
    q, k, v = qkv(ROWS)
    want = run_runtime(model_of("MultiHeadAttention", [q, k, v], num_heads=HEADS), {"x0": q, "x1": k, "x2": v})
    split = [x.reshape(BATCH, ROWS, HEADS, SIZE) for x in (q, k, v)]
    check([np.stack(split, 3).astype(F32)], opens=False, expected=want)
    check([q, np.stack(split[1:], 3)], opens=(BATCH,), expected=want)


def test_refused():
    past = [real(BATCH, HEADS, PAST, SIZE) for _ in range(2)]
    inputs = [*qkv(), None, None, None, *past, np.array([3], I32)]
    with pytest.raises(UnsupportedError, match="past_present_share_buffer"):
        import_onnx(model_of("MultiHeadAttention", inputs, num_heads=HEADS))
    with pytest.raises(UserError, match="8 columns do not divide"):
        import_onnx(model_of("MultiHeadAttention", qkv(), num_heads=3))
