# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that an exporter unrolled: the result is right, and a remark says what happened; operators stay loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.demo.graph import GraphBuilder
from tilewright.frontend.onnx.unrolled import unrolled

HIDDEN = 6


def recurrence(steps: int, apart: bool = False) -> onnx.ModelProto:
    """h = tanh(x[t] + h @ w), written out; `apart`: x[t] @ w, which no step waits for."""
    g = GraphBuilder("steps")
    rng = np.random.default_rng(0)
    w = g.weight(rng.standard_normal((HIDDEN, HIDDEN), np.float32) * np.float32(0.3), "w")
    x = g.input("x", np.float32, [steps, 2, HIDDEN])
    h = g.const(np.zeros((2, HIDDEN)), np.float32)
    found = []
    for t in range(steps):
        now = g.op("Gather", x, g.const(t), axis=0)
        h = g.op("Tanh", g.op("Add", now, g.op("MatMul", now if apart else h, w)))
        found.append(g.op("Unsqueeze", h, g.const([0])))
    g.output(g.op("Concat", *found, axis=0) if steps > 1 else found[0], "y", np.float32, [steps, 2, HIDDEN])
    return g.model()


def told(model: Any) -> list[str]:
    return [r["message"] for r in model.report_data()["remarks"] if "unrolled before it came here" in r["message"]]


@pytest.mark.parametrize(("steps", "said"), [(1, False), (7, False), (8, True), (19, True)])
def test_steps_one_behind_the_other(steps: int, said: bool) -> None:
    proto = recurrence(steps)
    model = tw.compile(proto, threads=1)
    assert [f"a loop of {steps} steps" in message for message in told(model)] == [True] * said
    x = np.random.default_rng(1).standard_normal((steps, 2, HIDDEN), np.float32)
    w = next(numpy_helper.to_array(t) for t in proto.graph.initializer if t.name == "w")
    h, expected = np.zeros((2, HIDDEN), np.float32), []
    for row in x:
        h = np.tanh(row + h @ w)
        expected.append(h)
    np.testing.assert_allclose(np.asarray(model(x)["y"]), np.stack(expected), rtol=1e-4, atol=1e-5)


def test_steps_that_wait_for_nothing_are_no_loop() -> None:
    assert told(tw.compile(recurrence(12, apart=True), threads=1)) == []


def test_layers_that_share_a_bias_are_no_loop() -> None:
    """Exporters merge equal constants, zeros of biases for one."""
    g = GraphBuilder("layers")
    h, zeros = g.input("x", np.float32, [2, HIDDEN]), g.weight(np.zeros(HIDDEN, np.float32), "zeros")
    for layer in range(12):
        h = g.op("Gemm", h, g.weight(np.full((HIDDEN, HIDDEN), layer + 1, np.float32), f"w{layer}"), zeros)
    g.output(h, "y", np.float32, [2, HIDDEN])
    assert unrolled(g.model().graph) == {}


def test_a_node_without_a_name_is_told_by_its_result() -> None:
    proto = recurrence(9)
    for node in proto.graph.node:
        node.name = ""
    (last,) = [node.output[0] for node in proto.graph.node if node.op_type == "MatMul"][-1:]
    assert list(unrolled(proto.graph)) == [last]


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_operators_enter_as_loops(kind: str, gates: int) -> None:
    """torch.nn.LSTM and GRU are exported as these; a step stands in the text once."""
    steps, shapes = 12, [(1, gates * HIDDEN, 5), (1, gates * HIDDEN, HIDDEN)]
    rng = np.random.default_rng(2)
    weights = [numpy_helper.from_array(rng.random(s, np.float32), n) for s, n in zip(shapes, "wr", strict=True)]
    node = helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=HIDDEN)
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", [steps, 2, 5]), ("y", None)))
    graph = helper.make_graph([node], kind, [x], [y], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    text = tw.compile(proto, stop_after="import")
    assert text.count("scf.for") == 1 and f"{steps} : index" in text
    assert told(tw.compile(proto, threads=1)) == []
