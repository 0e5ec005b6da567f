# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LSTMs with weights of 8 bits beside ONNX Runtime, on one thread: it quantizes what a thread has together."""

from __future__ import annotations

import numpy as np
import pytest
from quantized_support import DOMAIN, codes, run_runtime
from support import feeds, interpret, node_model, normalize

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

F32 = np.float32
_RANDOM = np.random.default_rng(3)


def given(directions: int, rows: bool, signed: bool = True, inputs: int = 5, hidden: int = 4) -> list:
    kind = "int8" if signed else "uint8"
    size = (directions, 4 * hidden) if rows else (directions,)

    def numbers():
        zero = np.zeros(size, kind) if signed else np.full(size, 128, kind)
        return [_RANDOM.uniform(0.005, 0.02, size).astype(F32), zero]

    x = _RANDOM.standard_normal((6, 3, inputs)).astype(F32)
    bias = _RANDOM.standard_normal((directions, 8 * hidden)).astype(F32)
    weights = [codes(kind, directions, n, 4 * hidden) for n in (inputs, hidden)]
    return [x, *weights, bias, None, None, None, None, *numbers(), *numbers()]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("more", ["", "lengths", "states"])
def test_lstm(direction, rows, more):
    directions = 2 if direction == "bidirectional" else 1
    inputs = given(directions, rows, signed=not rows or more != "states")
    if more == "lengths":
        inputs[4] = np.array([6, 4, 6], np.int32)
    if more == "states":
        inputs[5:7] = [_RANDOM.standard_normal((directions, 3, 4)).astype(F32) for _ in range(2)]
    known = (1, 2, 8, 9, 10, 11)
    attributes = {"direction": direction, "hidden_size": 4}
    model = node_model("DynamicQuantizeLSTM", inputs, known=known, outputs=3, domain=DOMAIN, **attributes)
    arrays = feeds(model, inputs)
    wanted, imported = run_runtime(model, arrays), import_onnx(model)
    for _ in range(2):
        for mine, theirs in zip(interpret(imported, arrays), wanted, strict=True):
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, atol=5e-3)  # a step of a state's code, where it lies half-way
        normalize(imported)


def test_weights_that_do_not_fit():
    inputs = given(1, False)
    inputs[2] = inputs[2][..., :-1]
    with pytest.raises(UserError, match="do not fit 1 directions"):
        import_onnx(node_model("DynamicQuantizeLSTM", inputs, outputs=3, domain=DOMAIN, hidden_size=4))
