# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A query or a few with many keys: parts of the keys are tasks of their own, and a second kernel combines them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu_plans import planned
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.bisection.entry import interpret
from tilewright.compiler.source import open_source

CASES = {
    # heads, groups, queries, keys, channels, type, keys that a mask leaves
    "grouped": (4, 1, 1, 32768, 64, "bfloat16", None),
    "alone": (4, 4, 1, 8192, 64, "float16", None),
    "f32": (6, 2, 1, 8192, 64, "float32", None),
    "rows of two loops": (4, 1, 3, 16384, 64, "float16", None),
    "ragged": (2, 1, 1, 30000, 64, "float16", None),
    "masked parts": (2, 1, 1, 16384, 64, "float32", (5000, 5007)),
}


def _node(inputs: list[str], kind: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], **attributes)


def _model(heads: int, groups: int, queries: int, keys: int, channels: int, kind: str, left: tuple | None):
    """The operator Attention; where a mask leaves some keys only, its products and a softmax, with an infinite mask."""
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    element = helper.np_dtype_to_tensor_dtype(dtype)
    shapes = {"q": [1, heads, queries, channels], "k": [1, groups, keys, channels], "v": [1, groups, keys, channels]}
    constants = []
    nodes = [_node(["q", "k", "v"], "Attention", "y")]
    if left is not None:
        shapes |= {n: [1, heads, keys, channels] for n in "kv"}
        mask = np.full(keys, -np.inf, dtype)
        mask[left[0] : left[1]] = 0
        constants = [numpy_helper.from_array(mask, "mask"), numpy_helper.from_array(np.asarray(0.125, dtype), "c")]
        nodes = [
            _node(["k"], "Transpose", "t", perm=[0, 1, 3, 2]),
            _node(["q", "t"], "MatMul", "s"),
            _node(["s", "c"], "Mul", "u"),
            _node(["u", "mask"], "Add", "m"),
            _node(["m"], "Softmax", "p", axis=-1),
            _node(["p", "v"], "MatMul", "y"),
        ]
    inputs = [helper.make_tensor_value_info(n, element, shape) for n, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", element, shapes["q"])
    graph = helper.make_graph(nodes, "decode", inputs, [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    rng = np.random.default_rng(0)
    return model, [rng.standard_normal(shape).astype(dtype) for shape in shapes.values()]


def _expected(feeds: list[np.ndarray], left: tuple | None) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in feeds)
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    if left is not None:
        scores[..., : left[0]] = scores[..., left[1] :] = -np.inf
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)) @ v


def _close(actual: np.ndarray, expected: np.ndarray, kind: str) -> None:
    tolerance = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 2e-2}[kind] * np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(actual).astype(np.float64), expected, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_the_keys_are_tasks(name: str) -> None:
    model, feeds = _model(*CASES[name])
    after = planned(model, "nvidia-h200")[1]
    text = str(after.module)
    assert text.count("tile.launch @product_max_exp") == 1
    assert 2 <= text.count("tile.launch") <= 3, "the parts, and what combines them"
    outputs = open_source(model).load(None, True).outputs
    (actual,) = interpret(after, feeds, outputs)
    _close(actual, _expected(feeds, CASES[name][6]), CASES[name][5])


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["grouped", "alone", "ragged", "masked parts"])
def test_parts_on_the_emulator(name: str, arch: str) -> None:
    model, feeds = _model(*CASES[name])
    compiled = tw.compile(model, target=f"cuda:{arch}", emulate=True)
    first, second = compiled(*feeds), compiled(*feeds)
    a, b = (np.asarray(y[0] if isinstance(y, list | tuple) else y) for y in (first, second))
    _close(a, _expected(feeds, CASES[name][6]), CASES[name][5])
    assert a.tobytes() == b.tobytes(), "no order of CTAs changes a bit"


def test_many_queries_stay_whole() -> None:
    model, _ = _model(16, 4, 512, 2048, 64, "float16", None)
    text = str(planned(model, "nvidia-h200")[1].module)
    assert text.count("tile.launch") == 1 and "expand_shape %arg1" not in text
