# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""QAttention beside ONNX Runtime: masks of all kinds, causal, with a past."""

from __future__ import annotations

import numpy as np
import pytest
from quantized_support import DOMAIN, close, codes, number, run_runtime
from support import feeds, interpret, node_model, normalize

from tilewright.core.errors import UnsupportedError
from tilewright.frontend import import_onnx
from tilewright.reference.errors import AssertionFailedError

F32 = np.float32
_RANDOM = np.random.default_rng(3)
MASKS = {
    "none": None,
    "lengths": [3, 5],
    "ends and starts": [4, 5, 1, 0],
    "tokens": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
    "rows": np.tril(np.ones((2, 5, 5), int)).tolist(),
}


def given(mask, columns: bool = True) -> list:
    scale = _RANDOM.uniform(0.005, 0.02, 48).astype(F32) if columns else number(0.02)
    zero = np.zeros(48, np.int8) if columns else np.array(0, np.int8)
    x, weights, bias = codes("uint8", 2, 5, 12), codes("int8", 12, 48), _RANDOM.standard_normal(48).astype(F32)
    seen = None if mask is None else np.array(mask, np.int32)
    return [x, weights, bias, number(0.02), scale, seen, np.array(120, np.uint8), zero]


def check(inputs: list, outputs: int = 1, **attributes) -> None:
    known = tuple(i for i in (1, 2, 3, 4, 6, 7))
    model = node_model("QAttention", inputs, known=known, outputs=outputs, domain=DOMAIN, num_heads=4, **attributes)
    arrays = feeds(model, inputs)
    wanted, imported = run_runtime(model, arrays), import_onnx(model)
    for _ in range(2):
        for mine, theirs in zip(interpret(imported, arrays), wanted, strict=True):
            close(mine, theirs)
        normalize(imported)


@pytest.mark.parametrize("kind", [*MASKS])
@pytest.mark.parametrize("causal", [0, 1])
def test_masks(kind, causal):
    check(given(MASKS[kind], columns=bool(causal)), unidirectional=causal)


@pytest.mark.parametrize("causal", [0, 1])
def test_past(causal):
    past = _RANDOM.standard_normal((2, 2, 4, 3, 4)).astype(F32)
    check([*given(None, columns=False), past], outputs=2, unidirectional=causal)


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="do_rotary has no lowering; export"):
        check(given(None), do_rotary=1)


@pytest.mark.parametrize("kind", ["lengths", "ends and starts"])
def test_masks_of_open_batches(kind):
    """Whether a mask says where sentences begin is not known there: one that does stops the run."""
    inputs = given(MASKS[kind])
    known = tuple(i for i in (1, 2, 3, 4, 6, 7))
    model = node_model("QAttention", inputs, known=known, domain=DOMAIN, num_heads=4)
    arrays = feeds(model, inputs)
    (wanted,) = run_runtime(model, arrays)
    for value, name in zip(model.graph.input, ("batch", "mask"), strict=True):
        value.type.tensor_type.shape.dim[0].dim_param = name
    imported = import_onnx(model, symbolic=True)
    if kind == "lengths":
        close(interpret(imported, arrays)[0], wanted)
        return
    with pytest.raises(AssertionFailedError, match="other than one number for each sentence"):
        interpret(imported, arrays)
