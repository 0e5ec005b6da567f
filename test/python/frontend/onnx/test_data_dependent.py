# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on tensors whose size depends on data, beside ONNX Runtime: all rows of x whose flag holds, then a node."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import check_numbers

CONSTANTS = {
    "zero": np.array(0),
    "one": np.array(1),
    "ones": np.array([1]),
    "depth": np.array(7),
    "values": np.float32([2, 3]),
}
CASES = {
    "TopK rows": ("TopK", ["d", "ones"], 2, {"axis": 0}),
    "TopK columns": ("TopK", ["d", "ones"], 2, {"axis": 1}),
    "Unique": ("Unique", ["d"], 4, {}),
    "Unique rows": ("Unique", ["d"], 4, {"axis": 0}),
    "Unique columns": ("Unique", ["d"], 4, {"axis": 1, "sorted": 0}),
    "CumSum rows": ("CumSum", ["d", "zero"], 1, {"exclusive": 1}),
    "CumSum columns": ("CumSum", ["d", "one"], 1, {"reverse": 1}),
    "NonZero": ("NonZero", ["d"], 1, {}),
    "Hardmax rows": ("Hardmax", ["d"], 1, {"axis": 0}),
    "Hardmax columns": ("Hardmax", ["d"], 1, {"axis": 1}),
    "Dropout": ("Dropout", ["d"], 2, {}),
    "OneHot": ("OneHot", ["n", "depth", "values"], 1, {"axis": 1}),
    "ScatterElements": ("ScatterElements", ["x", "i", "d"], 1, {"axis": 0, "reduction": "add"}),
    "Compress": ("Compress", ["d", "flags"], 1, {"axis": 1}),
    "ScatterND": ("ScatterND", ["x", "t", "v"], 1, {}),
}


def model(op, inputs, outputs, attributes, x, flags):
    results = [f"y{i}" for i in range(outputs)]
    nodes = [
        helper.make_node("Compress", ["x", "flags"], ["d"], axis=0),
        helper.make_node("NonZero", ["d"], ["n"]),
        helper.make_node("NonZero", ["x"], ["m"]),
        helper.make_node("Transpose", ["m"], ["t"]),
        helper.make_node("GatherND", ["x", "t"], ["v"]),
        helper.make_node("Cast", ["d"], ["c"], to=TensorProto.INT64),
        helper.make_node("Mul", ["c", "zero"], ["i"]),
        helper.make_node(op, inputs, results, name="the_node", **attributes),
    ]
    infos = [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("flags", 9, flags.shape)]
    constants = [numpy_helper.from_array(array, name) for name, array in CONSTANTS.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info(r) for r in results], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.parametrize("flags", [[1, 0, 1, 1, 0], [0, 1, 0, 0, 0]], ids=["three", "one"])
@pytest.mark.parametrize("case", CASES)
def test_after_compress(case, flags):
    x = np.random.default_rng(12).integers(0, 4, (5, 6)).astype(np.float32)
    flags = np.array(flags, bool)
    check_numbers(model(*CASES[case], x, flags), {"x": x, "flags": flags})
