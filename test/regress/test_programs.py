# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that random testing found (tools/fuzz programs), each as small as it could be made.

The CPU must give what the reference interpreter gives, and the interpreter what NumPy gives.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import tilewright as tw


def check(nodes: list, inputs: dict, constants: dict, *expected, tolerance: float = 1e-5) -> None:
    """Compile nodes (opset 22) whose last outputs are the results, for both targets; compare with what is expected."""
    inputs = {name: np.asarray(value) for name, value in inputs.items()}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in inputs.items()],
        [helper.make_value_info(name, helper.make_tensor_type_proto(1, None)) for name in nodes[-1].output],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    for output, want in zip(graph.output, expected, strict=True):
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.asarray(want).dtype)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    for target in ("reference", "cpu"):
        for got, want in zip(tw.compile(model, target=target)(**inputs), expected, strict=True):
            assert got.shape == np.shape(want), target
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=target)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_gather_along_one_element(shape: tuple[int, int]) -> None:
    """The position along an axis of size 1 that is stored (an input's) was that along another loop."""
    x = np.arange(3, dtype=np.float32).reshape(shape)
    pads = np.array([2, 1, 0, 1])
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="edge")
    check([node], {"x": x}, {"pads": pads}, np.pad(x, ((2, 0), (1, 1)), mode="edge"))
