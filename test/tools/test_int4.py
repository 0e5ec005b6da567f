# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights in 4 bits, as `tools/decoders --genai` compares them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw

ROOT = Path(__file__).resolve().parents[2]


def test_a_product_reads_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from zoo_generation.int4 import quantized

    rng = np.random.default_rng(0)
    scales = 2.0 ** rng.integers(-3, 3, (2, 1, 5))
    codes = rng.integers(-7, 8, (2, 32, 5))
    codes[:, 0] = 7  # the largest of each block is met exactly
    weight = (codes * scales).reshape(64, 5).astype(np.float32)
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3, s]) for n, s in (("x", 64), ("y", 5)))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "product", [x], [y], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    small = quantized(model)
    assert [node.op_type for node in small.graph.node] == ["MatMulNBits"]
    assert {tensor.name for tensor in small.graph.initializer} == {"w.codes", "w.scales"}
    value = rng.integers(-4, 5, (3, 64)).astype(np.float32)
    np.testing.assert_allclose(tw.compile(small, "reference")(value)[0], value @ weight, rtol=1e-6)
