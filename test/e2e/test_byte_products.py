# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized products, compiled: integers exactly, dequantized ones as in f32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

RNG = np.random.default_rng(11)
KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT}


def _extremes(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random bytes with a row and a column of extremes."""
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
    x[0], x[:, 0] = info.max, info.min
    return x


def _model(nodes: list, given: dict, weights: dict, output: tuple) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(n, KINDS[x.dtype.type], x.shape) for n, x in given.items()]
    constants = [numpy_helper.from_array(np.asarray(x), n) for n, x in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", *output)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("left", [np.uint8, np.int8])
@pytest.mark.parametrize(("right", "points"), [(np.int8, (0, 0)), (np.int8, (5, 0)), (np.uint8, (9, 131))])
def test_integer_product_is_exact(target: str, left: type, right: type, points: tuple[int, int]) -> None:
    """Ragged sizes (primes), zero points, both signs: what a byte's product cannot saturate."""
    x, w = _extremes((7, 61), left), _extremes((61, 37), right)
    zeros = {"zx": left(points[0]), "zw": right(points[1])}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])]
    model = tw.compile(_model(nodes, {"x": x}, {"w": w, **zeros}, (TensorProto.INT32, [7, 37])), target)
    want = (x.astype(np.int32) - points[0]) @ (w.astype(np.int32) - points[1])
    np.testing.assert_array_equal(model(x)[0], want)


def test_dequantized_product_multiplies_bytes() -> None:
    """QuantizeLinear, DequantizeLinear, MatMul: the kernel multiplies bytes, the numbers are those of f32."""
    x = RNG.standard_normal((9, 67)).astype(np.float32)
    weights = {
        "sx": np.float32(0.03),
        "zx": np.uint8(120),
        "w": _extremes((67, 29), np.int8),
        "sw": RNG.uniform(0.001, 0.01, 29).astype(np.float32),
        "zw": np.zeros(29, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    proto = _model(nodes, {"x": x}, weights, (TensorProto.FLOAT, [9, 29]))
    q = np.clip(np.rint(x / np.float32(0.03)) + 120, 0, 255).astype(np.int64) - 120
    want = (q @ weights["w"].astype(np.int64)) * (0.03 * weights["sw"].astype(np.float64))
    np.testing.assert_allclose(tw.compile(proto)(x)[0], want, rtol=1e-5, atol=1e-5)
    text = tw.compile(proto, "cpu:znver5", stop_after="tile")
    assert "tile.mma" in text and "interleave = 4" in text
    assert "interleave" not in tw.compile(proto, "cpu:x86-64-v3", stop_after="tile")
