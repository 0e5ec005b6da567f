# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small launches as the host's work, where loops stay with the host of a GPU: right, and fewer launches and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.core.options import CompileOptions
from tilewright.sim import ptx as emulate
from tilewright.targets import registry

SLOW = pytest.mark.slow
F32 = np.float32


def growing(ends_by: str) -> onnx.ModelProto:
    """Rows that a loop appends, of a number that data decides: a loop of the host.

    Args:
        ends_by: "counter": numbers of which kernels know nothing; "state": four that the device makes; "both".
    """
    g, random = Graph("growing", 20), np.random.default_rng(0)
    x, left = g.input("x", F32, [4, 16]), g.input("left", np.int64, [1])
    weight = g.weight((random.standard_normal((16, 16)) * 0.4).astype(F32))
    body = g.inner("body")
    body.input("i", np.int64, [])
    body.input("go", np.bool_, [])
    last, old, rows = (
        body.input("last", F32, [4, 16]),
        body.input("old", np.int64, [1]),
        body.input("rows", F32, ["n", 16]),
    )
    new = body.op("Tanh", body.op("MatMul", last, weight))
    now = body.op("Sub", old, body.const([2]))
    counted = body.op("Squeeze", body.op("Greater", now, body.const([0])))
    others = body.op("Cast", body.op("Less", body.op("ArgMax", new, axis=1, keepdims=0), body.const(12)), to=7)
    by_state = body.op("Greater", body.op("ReduceSum", others, keepdims=0), body.const(2))
    ends = {"counter": counted, "state": by_state, "both": body.op("And", counted, by_state)}
    body.output(body.op("Identity", ends[ends_by]), "again", np.bool_, [])
    body.output(new, "new", F32, [4, 16])
    body.output(now, "now", np.int64, [1])
    body.output(body.op("Concat", rows, new, axis=0), "more", F32, ["m", 16])
    always = g.const(True, np.bool_)
    results = g.ops("Loop", g.const(40), always, x, left, x, outputs=3, body=body.as_attribute())
    g.output(results[2], "y", F32, ["k", 16])
    g.output(results[1], "rest", np.int64, [1])
    return g.model()


class Counted:
    """A model on the emulator; a call gives its results, launches, and how often the host waited for numbers."""

    def __init__(self, proto: onnx.ModelProto, arch: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self._trace, self._waits = emulate.Trace(), 0
        target = f"cuda:{arch}"
        self.model = tw.compile(
            proto, target=target, emulate={"multiprocessors": 3, "trace": self._trace, "seed": 1}, **options
        )
        self.model._loaded()  # weights are moved
        download = self.model.device.download

        def counted(address: int, data: memoryview) -> None:
            self._waits += 1
            download(address, data)

        monkeypatch.setattr(self.model.device, "download", counted)

    def __call__(self, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], int, int]:
        before, self._waits = len(self._trace.launches), 0
        results = [np.asarray(array) for array in self.model(**inputs)]
        return results, len(self._trace.launches) - before, self._waits - len(results)


def sets() -> Sequence[dict[str, np.ndarray]]:
    """Inputs that take other numbers of iterations."""
    random = np.random.default_rng(3)
    return [{"x": random.standard_normal((4, 16)).astype(F32), "left": np.array([left])} for left in (9, 1, 21, -3)]


@pytest.mark.parametrize(
    ("ends_by", "arch"),
    [
        ("counter", "sm_90a"),
        ("both", "sm_80"),
        *(pytest.param(*pair, marks=SLOW) for pair in [("state", "sm_90a"), ("both", "sm_90a"), ("counter", "sm_80")]),
    ],
)
def test_loops_of_the_host(ends_by: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers as without, by fewer launches; never more waits."""
    proto = growing(ends_by)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    whole = registry.parse_target(f"cuda:{arch}").here().pipeline(CompileOptions())
    model = Counted(proto, arch, monkeypatch)
    device = Counted(proto, arch, monkeypatch, pipeline=whole.without("tile-plan-host-work"))
    told = [entry["message"] for entry in model.model.report_data()["remarks"]]
    assert any("small launches are the host's work" in message for message in told)
    for inputs in sets():
        expected = session.run(None, inputs)
        results, launches, waits = model(inputs)
        others, more_launches, more_waits = device(inputs)
        for ours, other, wanted in zip(results, others, expected, strict=True):
            np.testing.assert_allclose(ours, np.asarray(wanted), rtol=1e-5, atol=2e-5)
            np.testing.assert_array_equal(ours, other)
        steps = np.asarray(expected[0]).shape[0] // 4 - 1
        assert launches <= more_launches - steps
        assert waits <= more_waits + 1  # what the host counts it reads once
        if ends_by == "counter":
            assert (waits, more_waits) == (1, steps)


def test_functions_that_read_nothing_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small launches alone are no reason: a graph can record them."""
    g = Graph("small", 20)
    n = g.input("n", np.int64, [3])
    g.output(g.op("ReduceSum", g.op("Add", n, g.const([1, 2, 3])), keepdims=0), "y", np.int64, [])
    model = Counted(g.model(), "sm_80", monkeypatch)
    ((total,), launches, waits) = model({"n": np.arange(3)})
    assert (int(total), waits) == (9, 0) and launches > 0
    assert model.model._loaded().is_recordable
