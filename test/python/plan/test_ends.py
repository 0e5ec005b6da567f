# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks with several ends: results that no later loop nest of the kernel reads."""

import numpy as np
from onnx import TensorProto, helper

import tilewright as tw


def test_layer_norm_with_its_statistics() -> None:
    """The mean and the inverse deviation of each row leave the kernel beside the normalized rows; 67 is ragged."""
    shape, rows = [3, 67, 50], [3, 67, 1]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["y", "mean", "inverse"], axis=-1)],
        "layer_norm",
        [value("x", TensorProto.FLOAT, shape), *(value(n, TensorProto.FLOAT, [50]) for n in ("scale", "shift"))],
        [value("y", TensorProto.FLOAT, shape), *(value(n, TensorProto.FLOAT, rows) for n in ("mean", "inverse"))],
    )
    model = tw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10))
    rng = np.random.default_rng(0)
    x, scale, shift = (rng.standard_normal(s, np.float32) for s in (shape, 50, 50))
    y, mean, inverse = model(x, scale, shift)
    expected_mean = x.mean(-1, keepdims=True)
    expected = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(inverse, expected, rtol=1e-4)
    np.testing.assert_allclose(y, (x - expected_mean) * expected * scale + shift, rtol=1e-3, atol=1e-5)
