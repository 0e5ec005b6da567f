# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imported layers and directions as one loop give what they give in turn, wherever that is legal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.plan.recurrences import plan_shifts
from tilewright.sim import ptx as emulate

F32 = np.float32
_BESIDE = 3  # barriers behind what stands in front of loops: a product, initial states
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KINDS = ["GRU", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("LSTM", "RNN"))]


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


def check(proto: onnx.ModelProto, loops: list[int], **options: Any) -> Any:
    """Results are ONNX Runtime's, and so many loops each are said to run as one."""
    inputs = inputs_of(proto)
    model = tw.compile(proto, **options)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for got, wanted in zip(model(*inputs.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [e["message"] for e in model.report_data()["remarks"] if "run as one" in e["message"]]
    assert [int(message.split()[0]) for message in told] == loops, told
    return model


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that may run as one does; such models are not for the cache of others."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(plan_shifts, "_LEAST_GAIN", 0.0)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind: str, direction: str) -> None:
    check(stack(kind, 2, direction=direction), [2], threads=1)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(
    ("layers", "sizes"),
    [
        (4, {}),
        (3, {"batch": 1, "steps": 3}),
        (2, {"hidden": 1, "batch": 1, "steps": 2}),
        pytest.param(3, {"hidden": 17}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_sizes(layers: int, sizes: dict[str, int]) -> None:
    """As few steps as hold all layers, sizes of one, and none that vectors divide."""
    check(stack("LSTM", layers, **sizes), [layers], threads=2)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(("layers", "steps", "groups"), [(2, 1, []), (3, 2, [2]), (5, 3, [3, 2]), (6, 7, [4, 2])])
def test_groups(layers: int, steps: int, groups: list[int]) -> None:
    """An iteration holds a step of each layer: no more layers than steps are one loop, and no more than four."""
    check(stack("RNN", layers, steps=steps), groups)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("kind", KINDS)
def test_lengths(kind: str) -> None:
    """Of sequences that have ended the outputs are zeros and no states: rows are read where they are written."""
    check(stack(kind, 2, batch=3, lengths=True), [2])


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
def test_directions(kind: str, layers: int) -> None:
    """Both directions of a layer; the next layer needs the end of both, so it is two loops of its own."""
    check(stack(kind, layers, direction="bidirectional"), [2] * layers)


@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90a"])
@pytest.mark.parametrize(
    ("direction", "steps"), [("forward", 5), pytest.param("bidirectional", 4, marks=pytest.mark.slow)]
)
def test_fewer_barriers(direction: str, steps: int, arch: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One launch; blocks meet once in an iteration of all loops, whatever the order in which they run."""
    layers, lag = (3, 2) if direction == "forward" else (1, 0)
    proto = stack("LSTM", layers, steps=steps, batch=1, hidden=64, direction=direction)
    inputs = inputs_of(proto)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    met = []
    for gain in (0.0, float("inf")):
        monkeypatch.setattr(plan_shifts, "_LEAST_GAIN", gain)
        monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / str(gain)))
        trace = emulate.Trace()
        model: Any = tw.compile(proto, f"cuda:{arch}", emulate={"multiprocessors": 3, "seed": 5, "trace": trace})
        for got, wanted in zip(model(*inputs.values()), expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
        (launch,) = trace.launches
        arrivals = [line.threads for line in launch.lines.values() if "atom.release.gpu" in line.text]
        met.append(sum(arrivals) / launch.grid[0])
    together, in_turn = met
    assert steps + lag <= together <= steps + lag + _BESIDE
    assert in_turn >= max(layers, 2) * steps


def test_a_core_goes_in_turn() -> None:
    """The remark says both times."""
    model = check(stack("LSTM", 2, hidden=64), [], threads=1)
    told = [e["message"] for e in model.report_data()["remarks"] if "run in turn: predicted are" in e["message"]]
    assert len(told) == 1
