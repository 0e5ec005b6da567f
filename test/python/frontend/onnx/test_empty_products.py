# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, attention, recurrence and transforms of tensors without elements, beside ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from support import interpret
from test_attention import check, model_of, random

from tilewright.frontend import import_onnx

_HEADS = {"q_num_heads": 2, "kv_num_heads": 2}


@pytest.mark.parametrize(
    ("op", "shapes", "options"),
    [
        ("MatMul", [(3, 0), (0, 4)], {"opset": 17}),
        ("MatMul", [(0, 3), (3, 4)], {"opset": 17}),
        ("Gemm", [(3, 0), (0, 4), (4,)], {"opset": 17}),
        ("Einsum", [(3, 0), (0, 4)], {"opset": 17, "equation": "ij,jk->ik"}),
        ("Einsum", [(0, 3)], {"opset": 17, "equation": "ij->j"}),
        ("Attention", [(1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4)], {}),
        ("Attention", [(0, 2, 3, 4)] * 3, {"is_causal": 1}),
        ("Attention", [(1, 2, 3, 4)] * 3 + [None] + [(1, 2, 0, 4)] * 2, {"is_causal": 1, "outputs": 3}),
        ("RotaryEmbedding", [(1, 2, 0, 8), (1, 0, 4), (1, 0, 4)], {}),
        ("LinearAttention", [(1, 0, 4)] * 3, {"opset": 27, "update_rule": "linear", "outputs": 2, **_HEADS}),
        ("DFT", [(0, 8, 1)], {"opset": 17}),
        ("DFT", [(2, 1, 1)], {"opset": 17}),
        ("LSTM", [(3, 0, 3), (1, 16, 3), (1, 16, 4)], {"opset": 22, "hidden_size": 4, "outputs": 3}),
        ("GRU", [(3, 0, 3), (1, 12, 3), (1, 12, 4)], {"opset": 22, "hidden_size": 4, "outputs": 2}),
        ("Det", [(0, 3, 3)], {"opset": 22}),
        ("Det", [(2, 0, 0)], {"opset": 22}),
    ],
)
def test_empty(op, shapes, options):
    check(op, [None if s is None else random(*s) for s in shapes], **options)


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("periodic", [0, 1])
def test_small_windows(size, periodic):
    """A symmetric window of one sample is 0 / 0, for ONNX Runtime too."""
    model = model_of("HannWindow", [np.array(size)], 1, opset=17, periodic=periodic)
    model.graph.output[0].type.tensor_type.elem_type = 1
    assert import_onnx(model).module.operation.verify()
    with np.errstate(all="ignore"):
        check("HannWindow", [np.array(size)], opset=17, periodic=periodic)


def test_no_keys_give_zeros():
    inputs = [random(1, 2, 3, 4), random(1, 2, 0, 4), random(1, 2, 0, 4)]
    (y,) = interpret(import_onnx(model_of("Attention", inputs, 1)), {f"x{i}": x for i, x in enumerate(inputs)})
    assert y.shape == (1, 2, 3, 4) and not y.any()
