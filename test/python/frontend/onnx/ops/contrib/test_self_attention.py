# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of com.microsoft beside ONNX Runtime: masks, past, biases, sizes."""

from __future__ import annotations

import numpy as np
import pytest
from beside import I32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

BATCH, ROWS, HEADS, SIZE, INPUTS, PAST = 2, 3, 2, 4, 8, 5
WIDTH = HEADS * SIZE
MASKS = {
    "words": np.array([[1, 1, 0], [1, 1, 1]], I32),
    "pairs": np.array([[[1, 1, 0], [1, 0, 1], [1, 1, 1]]] * 2, I32),
    "ends": np.array([2, 3], I32),
    "ends and starts": np.array([3, 2, 1, 0], I32),
}


def inputs(sizes=(WIDTH,) * 3, mask=None, past=None, added=None):
    return [real(BATCH, ROWS, INPUTS), real(INPUTS, sum(sizes)), real(sum(sizes)), mask, past, added]


def check(given, outputs=("float",), known=(1, 2), opens=(ROWS, PAST), **attributes):
    beside_runtime("Attention", given, outputs, known=known, opens=opens, num_heads=HEADS, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}, {"scale": 0.3}])
def test_plain(attributes):
    check(inputs(), **attributes)


def test_open_batch_and_unknown_weights():
    check(inputs(), opens=(BATCH, ROWS))
    check(inputs(), known=())


def test_other_size_of_values():
    check(inputs((8, 8, 12)), qkv_hidden_sizes=[8, 8, 12])
    with pytest.raises(UserError, match="qkv_hidden_sizes"):
        import_onnx(model_of("Attention", inputs(), num_heads=HEADS, qkv_hidden_sizes=[8, 8, 12]))


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_masks(mask, causal):
    check(inputs(mask=mask), unidirectional=causal)


def test_lowest_filter():
    check(inputs(mask=MASKS["words"]), mask_filter_value=-3.4e38)


@pytest.mark.parametrize("mask", [None, np.array([[1] * 7 + [0], [0] + [1] * 7], I32)])
def test_past(mask):
    past = real(2, BATCH, HEADS, PAST, SIZE)
    check(inputs(mask=mask, past=past), ["float", "float"], unidirectional=1)


def test_present_without_past():
    check(inputs(), ["float", "float"])


@pytest.mark.parametrize("shape", [(BATCH, HEADS), (1, HEADS), (1, 1)])
def test_added(shape):
    check(inputs(mask=MASKS["words"], added=real(*shape, ROWS, ROWS)))


@pytest.mark.parametrize(
    ("given", "attributes", "message"),
    [
        (inputs(), {"do_rotary": 1}, "RotaryEmbedding"),
        (inputs(), {"past_present_share_buffer": 1}, "write the model again without"),
        (inputs(mask=np.zeros(3 * BATCH + 2, I32)), {}, r"mask \[batch, sequence\]"),
    ],
)
def test_refused(given, attributes, message):
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(model_of("Attention", given, num_heads=HEADS, **attributes))
