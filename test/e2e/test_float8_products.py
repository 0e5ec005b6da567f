# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that quantize to float8 and dequantize again: products of the float8 where matrix units multiply it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

RNG = np.random.default_rng(29)
M, N, K = 70, 96, 136
X = RNG.standard_normal((M, K)).astype(np.float32)
W = RNG.standard_normal((K, N)).astype(np.float32)
KINDS: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def quantized(kind: str, channels: bool) -> tuple[onnx.ModelProto, np.ndarray]:
    """A product of float8 that is quantized in the run and of float8 weights, with what it gives in f64.

    Args:
        kind: "e4m3" or "e5m2".
        channels: whether each column of the weights has a scale of its own.
    """
    dtype = KINDS[kind]
    x_scale, w_scale = np.float32(0.03), RNG.uniform(0.01, 0.04, N if channels else ()).astype(np.float32)
    weights = (W / w_scale).astype(dtype)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "t"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    held = {"s": x_scale, "z": np.zeros((), dtype), "w": weights, "t": w_scale}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [M, K]), ("y", [M, N]))]
    parts = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], parts)
    rounded = (X / x_scale).astype(dtype).astype(np.float64) * x_scale
    want = rounded @ (weights.astype(np.float64) * w_scale)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "cpu"])
def test_float8_is_multiplied_as_it_is(kind: str, channels: bool, target: str) -> None:
    graph, want = quantized(kind, channels)
    options = {} if target == "cpu" else {"emulate": True}
    model = tw.compile(graph, target, **options)
    if target != "cpu":
        code = "".join(path.read_text() for path in model.path.glob("code/*.ptx"))
        assert (f".{kind}.{kind}." in code) == (target == "cuda:sm_90a")
    np.testing.assert_allclose(model(X)[0], want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
