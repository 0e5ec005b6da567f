# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, attention, recurrence and transforms of tensors whose sizes are known at run time only."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import import_onnx, interpret

_RANDOM = np.random.default_rng(15)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def results(op, inputs, cut, domain="", outputs=1, opset=25, **attributes):
    """The node's results on inputs cut along given axes: {input: axis}; the end is an input of the model."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    nodes = []
    for i, axis in cut.items():
        axes = helper.make_tensor(f"axis{i}", TensorProto.INT64, [1], [axis])
        nodes.append(helper.make_node("Constant", [], [f"axis{i}"], value=axes))
        nodes.append(helper.make_node("Slice", [names[i], "start", "end", f"axis{i}"], [f"cut{i}"]))
        names[i] = f"cut{i}"
    nodes.append(helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes))
    arrays = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    arrays |= {"start": np.array([0]), "end": np.array([4])}
    kinds = {n: helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in arrays.items()}
    graph = helper.make_graph(
        nodes,
        op,
        [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in arrays.items()],
        [helper.make_tensor_value_info(f"y{i}", kinds["x0"], None) for i in range(outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return interpret(import_onnx(model), arrays)


def check(op, inputs, cut, **options):
    """The same as of inputs whose sizes are known."""
    whole = [x if i not in cut else np.take(x, range(4), cut[i]) for i, x in enumerate(inputs)]
    for mine, theirs in zip(results(op, inputs, cut, **options), results(op, whole, {}, **options), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cut", [{0: 0}, {0: 1}, {0: 2, 1: 0}, {1: 1}, {0: 1, 1: 1}])
def test_matmul(cut):
    check("MatMul", [random(6, 6, 6), random(6, 6)], cut)


@pytest.mark.parametrize("cut", [{0: 0}, {1: 1, 2: 0}, {0: 1, 1: 0}])
def test_gemm(cut):
    check("Gemm", [random(6, 6), random(6, 6), random(6)], cut, alpha=0.5)


@pytest.mark.parametrize(
    ("equation", "cut"),
    [("ij,jk->ik", {0: 0}), ("ij,jk->ik", {0: 1, 1: 0}), ("ij,kj->ki", {0: 1, 1: 1}), ("ij,jk->", {0: 0})],
)
def test_einsum(equation, cut):
    check("Einsum", [random(6, 6), random(6, 6)], cut, equation=equation)


@pytest.mark.parametrize("cut", [{0: 2}, {1: 2, 2: 2}, {0: 0, 1: 0, 2: 0}])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(cut, causal):
    inputs = [random(6, 4, 6, 6), random(6, 2, 6, 6), random(6, 2, 6, 6)]
    check("Attention", inputs, cut, is_causal=causal)


@pytest.mark.parametrize("window", [-1, 2])
def test_attention_of_a_cache(window):
    inputs = [random(2, 4, 1, 6), random(2, 2, 1, 6), random(2, 2, 1, 6), None, random(2, 2, 6, 6), random(2, 2, 6, 6)]
    check("Attention", inputs, {4: 2, 5: 2}, outputs=3, is_causal=1, left_window_size=window)


def test_attention_in_three_dimensions():
    inputs = [random(2, 6, 8), random(2, 6, 8), random(2, 6, 8)]
    check("Attention", inputs, {0: 1, 1: 1, 2: 1}, q_num_heads=4, kv_num_heads=4, is_causal=1)


def test_rotary():
    check("RotaryEmbedding", [random(2, 3, 6, 8), random(2, 6, 4), random(2, 6, 4)], {0: 2, 1: 1, 2: 1})


def test_linear_attention():
    inputs = [random(2, 6, 8), random(2, 6, 8), random(2, 6, 8)]
    options = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    check("LinearAttention", inputs, {0: 1, 1: 1, 2: 1}, outputs=2, opset=27, **options)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent(op, axis, direction):
    rows, count = {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * 5, 2 if direction == "bidirectional" else 1
    inputs = [random(6, 6, 3), random(count, rows, 3), random(count, rows, 5), random(count, 2 * rows)]
    outputs = 3 if op == "LSTM" else 2
    check(op, inputs, {0: axis}, outputs=outputs, opset=22, hidden_size=5, direction=direction)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("options", [{}, {"inverse": 1}])
def test_dft(axis, options):
    check("DFT", [random(6, 6, 2)], {0: axis}, opset=20, **options)


def test_det():
    check("Det", [random(6, 3, 3)], {0: 0}, opset=22)
