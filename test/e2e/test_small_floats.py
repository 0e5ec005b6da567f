# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in f16 and bf16 are tiled as those in f32 are: memory holds small floats, registers f32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw

KINDS = {"f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def tensor(name: str, kind: int, shape: list[int]) -> object:
    """A declaration of an input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_product_and_what_follows_it(kind: str) -> None:
    element, dtype = KINDS[kind]
    nodes = [
        helper.make_node("MatMul", ["a", "b"], ["m"]),
        helper.make_node("Add", ["m", "c"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("ReduceMax", ["p"], ["y"], keepdims=0),
    ]
    inputs = [tensor("a", element, [33, 70]), tensor("b", element, [70, 50]), tensor("c", element, [50])]
    graph = helper.make_graph(nodes, "g", inputs, [tensor("p", element, [33, 50]), tensor("y", element, [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    compiled = tw.compile(model, target="cpu", threads=1)
    assert not compiled.report_data()["remarks"]
    random = np.random.default_rng(1)
    values = [random.standard_normal(shape).astype(dtype) for shape in ((33, 70), (70, 50), (50,))]
    expected = tw.compile(model, target="reference")(*values)
    for mine, other in zip(compiled(*values), expected, strict=True):
        assert mine.dtype == other.dtype == dtype
        np.testing.assert_allclose(mine.astype(np.float32), other.astype(np.float32), rtol=0.02)
