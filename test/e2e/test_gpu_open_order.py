# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first of many, in order, of rows of any number: on the emulator, which refuses what nobody has written."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw


@pytest.mark.parametrize("largest", [0, 1])
def test_no_element_is_read_before_it_is_written(largest: int) -> None:
    """The first element of a row enters where nothing lies before it."""
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["values", "places"], largest=largest, axis=1)],
        "top",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 12])],
        [
            helper.make_tensor_value_info("values", onnx.TensorProto.FLOAT, ["batch", 4]),
            helper.make_tensor_value_info("places", onnx.TensorProto.INT64, ["batch", 4]),
        ],
        [numpy_helper.from_array(np.array([4], np.int64), "k")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    compiled = tw.compile(model, "cuda:sm_80", emulate=True, sizes="general")
    x = np.random.default_rng(0).integers(0, 9, (3, 12)).astype(np.float32)
    places = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :4]
    result = compiled(x)
    np.testing.assert_array_equal(result["places"], places)
    np.testing.assert_array_equal(result["values"], np.take_along_axis(x, places, 1))
