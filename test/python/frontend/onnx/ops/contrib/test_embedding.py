# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""EmbedLayerNormalization beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from beside import I32, RANDOM, beside_runtime, model_of, real

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

IDS = RANDOM.integers(0, 9, (2, 5)).astype(I32)
KINDS = RANDOM.integers(0, 2, (2, 5)).astype(I32)
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], I32)
WORDS, PLACES, TABLE, GAMMA, BETA = real(9, 8), real(7, 8), real(2, 8), real(8), real(8)


def test_all_inputs_and_results():
    inputs = [IDS, KINDS, WORDS, PLACES, TABLE, GAMMA, BETA, MASK]
    beside_runtime("EmbedLayerNormalization", inputs, ["float", "int32", "float"], known=(2, 3, 4, 5, 6))


def test_without_kinds_and_mask():
    inputs = [IDS, None, WORDS, PLACES, None, GAMMA, BETA]
    beside_runtime("EmbedLayerNormalization", inputs, ["float", "int32"], known=(2, 3, 5, 6))


@pytest.mark.parametrize("rows", [1, 2])
def test_positions(rows):
    places = np.array([[1, 2, 3, 4, 0], [6, 5, 4, 3, 2]], I32)[:rows]
    inputs = [IDS, KINDS, WORDS, PLACES, TABLE, GAMMA, BETA, None, places]
    beside_runtime("EmbedLayerNormalization", inputs, ["float", "int32"], known=(2, 3, 4, 5, 6), epsilon=1e-5)


def test_more_words_than_positions():
    inputs = [IDS, None, WORDS, real(4, 8), None, GAMMA, BETA]
    with pytest.raises(UserError, match="5 words for the embeddings of 4 positions"):
        import_onnx(model_of("EmbedLayerNormalization", inputs, ["float", "int32"], known=(2, 3, 5, 6)))
