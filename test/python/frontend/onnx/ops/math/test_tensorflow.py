# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that tf2onnx writes as TensorFlow has them: no other reader of ONNX knows them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.core.errors import TilewrightError


def gelu_of_keras(element: int = TensorProto.FLOAT, rows: Any = 5) -> Any:
    """0.5 * x * Erfc(-x / sqrt 2), the form of `keras.activations.gelu` in a file of tf2onnx."""
    nodes = [
        helper.make_node("Constant", [], ["s"], value_float=-math.sqrt(0.5)),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Mul", ["x", "s"], ["a"]),
        helper.make_node("Erfc", ["a"], ["e"], name="Gelu/Erfc"),
        helper.make_node("Mul", ["x", "half"], ["h"]),
        helper.make_node("Mul", ["h", "e"], ["y"]),
    ]
    if element != TensorProto.FLOAT:
        nodes = [helper.make_node("Erfc", ["x"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, element, [rows, 7]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tf2onnx")


@pytest.mark.parametrize(("target", "rows"), [("cpu", "rows"), ("reference", 5)])
def test_erfc(target: str, rows: Any) -> None:
    """Beside math.erfc, far out on both sides too."""
    x = (np.random.default_rng(0).standard_normal((5, 7)) * 3).astype(np.float32)
    x[0, :3] = [-30, 0, 30]
    model = tw.compile(gelu_of_keras(rows=rows), target)
    expected = 0.5 * x * np.vectorize(math.erfc)(-x.astype(np.float64) / math.sqrt(2))
    np.testing.assert_allclose(model(x)[0], expected, rtol=2e-6, atol=1e-6)


def test_erfc_of_integers_is_refused() -> None:
    """With what it has."""
    with pytest.raises(TilewrightError, match="Erfc.*must have floats"):
        tw.compile(gelu_of_keras(TensorProto.INT64), "reference")
