# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution and its strided shortcut run in one task; panels of both start where tasks cut them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

RNG = np.random.default_rng(5)


def test_product_and_strided_shortcut() -> None:
    """relu(a x + b y), y every second place: the oracle multiplies matrices."""
    a, b = (RNG.standard_normal((2048, n, 1, 1)).astype(np.float32) for n in (512, 1024))
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"]),
        helper.make_node("Conv", ["y", "b"], ["q"], strides=[2, 2]),
        helper.make_node("Add", ["p", "q"], ["s"]),
        helper.make_node("Relu", ["s"], ["z"]),
    ]
    shapes = {"x": [1, 512, 7, 7], "y": [1, 1024, 14, 14], "z": [1, 2048, 7, 7]}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    initial = [numpy_helper.from_array(w, n) for n, w in (("a", a), ("b", b))]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x, y = (RNG.standard_normal(shapes[n]).astype(np.float32) for n in "xy")
    places = x.reshape(512, 49), y[0, :, ::2, ::2].reshape(1024, 49)
    want = np.maximum(a[:, :, 0, 0] @ places[0] + b[:, :, 0, 0] @ places[1], 0)
    np.testing.assert_allclose(tw.compile(model)(x, y)[0].reshape(2048, 49), want, rtol=1e-4, atol=1e-3)
