# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole graphs with the operators of ONNX Runtime: one import for all sizes, one artifact for all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from beside import agree, run_runtime
from runtime_files import decoder, decoder_inputs, encoder, encoder_inputs
from support import interpret, normalize

import tilewright as tw
from tilewright.frontend import import_onnx

ENCODER_SIZES = [(1, 4), (3, 9), (2, 16)]
DECODER_SIZES = [(1, 5, 0), (1, 1, 5), (2, 3, 0), (2, 1, 7), (1, 4, 3), (1, 1, 5, 16)]


def cut(results, arrays):
    """Results without what lies in a cache behind its tokens: nobody says what that is."""
    total = arrays["attention_mask"].shape[1]
    return [y[:, :, :total] if y.ndim == 4 else y for y in results]


def test_encoder_imports_once():
    model = encoder()
    imported = normalize(import_onnx(model, symbolic=True))
    for sizes in ENCODER_SIZES:
        arrays = encoder_inputs(*sizes)
        agree(interpret(imported, arrays), run_runtime(model, arrays))


def test_decoder_imports_once():
    model = decoder()
    imported = normalize(import_onnx(model, symbolic=True))
    for sizes in DECODER_SIZES:
        arrays = decoder_inputs(*sizes)
        agree(cut(interpret(imported, arrays), arrays), cut(run_runtime(model, arrays), arrays))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_one_artifact(kind):
    model, inputs, shapes = {
        "encoder": (encoder(), encoder_inputs, ENCODER_SIZES),
        "decoder": (decoder(), decoder_inputs, DECODER_SIZES),
    }[kind]
    compiled = tw.compile(model, sizes="general")
    for sizes in shapes:
        arrays = inputs(*sizes)
        found = compiled(**arrays)
        results = [np.asarray(y) for y in (found.values() if isinstance(found, dict) else found)]
        want = run_runtime(model, arrays)
        agree(*((cut(r, arrays) for r in (results, want)) if kind == "decoder" else (results, want)), atol=1e-4)
