# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imported layers and directions as one loop give what they give in turn, wherever that is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.plan.recurrences import plan_shifts

F32 = np.float32
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def stack(
    kind: str, layers: int, steps: int = 5, batch: int = 2, hidden: int = 5, lengths: bool = False, **attributes: Any
) -> onnx.ModelProto:
    """`x` [steps, batch, 3] through layers; all outputs of the last one, the last states of all."""
    random, g = np.random.default_rng(layers), Graph(kind.lower(), 20)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    x = g.input("x", F32, [steps, batch, 3])
    ends = g.input("lengths", np.int32, [batch]) if lengths else ""
    gates, width, states = GATES[kind] * hidden, 3, []
    for _ in range(layers):
        shapes = [(directions, gates, width), (directions, gates, hidden), (directions, 2 * gates)]
        weights = [g.weight((random.standard_normal(shape) * 0.5).astype(F32)) for shape in shapes]
        start = g.weight(random.standard_normal((directions, batch, hidden)).astype(F32))
        y, last = g.ops(kind, x, *weights, ends, start, outputs=2, hidden_size=hidden, **attributes)
        width = directions * hidden
        x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([steps, batch, width]))
        states.append(last)
    g.output(x, "y", F32, [steps, batch, width])
    g.output(g.op("Concat", *states, axis=0), "last", F32, [layers * directions, batch, hidden])
    return g.model()


def inputs_of(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random inputs; sequences of every length."""
    found: dict[str, np.ndarray] = {}
    for given in proto.graph.input:
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
        random = np.random.default_rng(len(shape))
        values = random.standard_normal(shape) if len(shape) > 1 else 1 + np.arange(shape[0])
        found[given.name] = values.astype(F32 if len(shape) > 1 else np.int32)
    return found


def check(proto: onnx.ModelProto, loops: int, **options: Any) -> Any:
    """Results are ONNX Runtime's, and so many loops are said to run as one."""
    inputs = inputs_of(proto)
    model = tw.compile(proto, **options)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for got, wanted in zip(model(*inputs.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [e["message"] for e in model.report_data()["remarks"] if "run as one" in e["message"]]
    assert [int(message.split()[0]) for message in told] == ([loops] if loops else []), told
    return model


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that may run as one does."""
    monkeypatch.setattr(plan_shifts, "_LEAST_GAIN", 0.0)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("kind", GATES)
def test_layers(kind: str, direction: str) -> None:
    check(stack(kind, 2, direction=direction), 2, threads=1)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(
    ("layers", "sizes"),
    [(4, {}), (3, {"batch": 1, "steps": 3}), (2, {"hidden": 1, "batch": 1, "steps": 2}), (3, {"hidden": 17})],
    ids=str,
)
def test_sizes(layers: int, sizes: dict[str, int]) -> None:
    """As few steps as hold all layers, sizes of one, and none that vectors divide."""
    check(stack("LSTM", layers, **sizes), layers, threads=2)


@pytest.mark.usefixtures("fused")
def test_more_layers_than_steps() -> None:
    """No iteration would hold a step of each: two groups of as many as it may."""
    model = check(stack("RNN", 2, steps=1), 0)
    assert model is not None


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("kind", GATES)
def test_lengths(kind: str) -> None:
    """Of sequences that have ended the outputs are zeros and no states: rows are read where they are written."""
    check(stack(kind, 2, batch=3, lengths=True), 2)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("layers", [1, 2])
def test_directions(kind: str, layers: int) -> None:
    """Both directions of a layer; the next layer needs the end of both, so it is two loops of its own."""
    proto, inputs = stack(kind, layers, direction="bidirectional"), None
    inputs = inputs_of(proto)
    model = tw.compile(proto)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for got, wanted in zip(model(*inputs.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [e["message"] for e in model.report_data()["remarks"] if "2 loops of 5 iterations run as one" in e["message"]]
    assert len(told) == layers


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_on_the_emulator(direction: str, arch: str) -> None:
    """One launch, whose blocks meet once in an iteration of all loops."""
    layers = 2 if direction == "forward" else 1
    proto = stack("LSTM", layers, steps=4, batch=1, hidden=32, direction=direction)
    inputs = inputs_of(proto)
    model: Any = tw.compile(proto, f"cuda:{arch}", emulate={"multiprocessors": 3})
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for got, wanted in zip(model(*inputs.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    assert sum(kernel.launches for kernel in model.kernels) == 1


def test_a_core_goes_in_turn() -> None:
    """The remark says both times."""
    model = check(stack("LSTM", 2, hidden=64), 0, threads=1)
    told = [e["message"] for e in model.report_data()["remarks"] if "run in turn: predicted are" in e["message"]]
    assert len(told) == 1
