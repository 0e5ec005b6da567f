# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers by computed indices share kernels with what stands around them only where tiles allow it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
CASES = {
    "indices computed by a kernel": (["Abs i a", "Gather x a y"], [100], [64], [64]),
    "by rows, then reduced": (["Abs i a", "Gather x a g", "ReduceSum g _ y"], [100, 64], [64], [1, 1]),
    "by elements, then rows of softmax": (["Gather x i g", "Softmax g y"], [100], [8, 32], [8, 32]),
    "by elements along rows": (["GatherElements x i g", "Softmax g y"], [100, 64], [90, 64], [90, 64]),
    "by two indices": (["GatherND x i g", "Softmax g y"], [64, 64], [40, 2], [40]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_gathers(name: str) -> None:
    lines, *shapes = CASES[name]
    nodes = []
    for line in lines:
        kind, *names = line.split()
        nodes.append(helper.make_node(kind, ["" if n == "_" else n for n in names[:-1]], names[-1:]))
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in zip("xiy", (F32, I64, F32), shapes, strict=True)]
    graph = helper.make_graph(nodes, "g", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    random = np.random.default_rng(2)
    x = random.standard_normal(shapes[0]).astype(np.float32)
    at = random.integers(-shapes[0][0] // 2, shapes[0][0] // 2, shapes[1])
    compiled = tw.compile(model, target="cpu", threads=1)
    assert not compiled.report_data()["remarks"], "all of it runs in kernels"
    np.testing.assert_allclose(compiled(x, at)[0], tw.compile(model, target="reference")(x, at)[0], rtol=1e-5)
