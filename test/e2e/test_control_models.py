# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with loops and branches of the data (those of Cocktailer): right everywhere, and one launch on a GPU.

Beside it the form that a host drives: a launch for each kernel of each iteration, and waiting for each condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from models._graph import Graph
from models.compare import assert_close, onnxruntime_outputs
from tilewright.core.options import CompileOptions
from tilewright.sim import ptx as emulate
from tilewright.targets import registry

ARCHS = ("sm_80", "sm_90a")
UNITS = 3
SLOW = pytest.mark.slow
NAMES = ("lstm_tiny", "nasrnn_tiny", "generation_tiny", "seq2seq_tiny", "blockdrop_tiny", "skipnet_tiny")
#: Those whose host reads numbers of the device: conditions.
READ = ("seq2seq_tiny", "blockdrop_tiny", "skipnet_tiny")
REST = ("nasrnn_tiny", "generation_tiny", "blockdrop_tiny", "skipnet_tiny")


def compiled(name: str, arch: str, driven: bool = False, **options: Any) -> Any:
    """The model on the emulator; `driven`: by the host."""
    target = f"cuda:{arch}"
    chosen = {}
    if driven:
        whole = registry.parse_target(target).here().pipeline(CompileOptions())
        chosen["pipeline"] = whole.without("tile-plan-levels", "tile-plan-loops")
    emulated = {"multiprocessors": UNITS, **options}
    return tw.compile(str(models.path(name)), target=target, emulate=emulated, **chosen)


def either(names: Sequence[str], archs: Sequence[str]) -> list[Any]:
    """Each name with one architecture in turn, and with the others where time does not matter."""
    return [
        pytest.param(name, arch, marks=() if number % len(archs) == place else SLOW)
        for number, name in enumerate(names)
        for place, arch in enumerate(archs)
    ]


class Counter:
    """Counts what a host does in a call: launches, and numbers that it waits for."""

    def __init__(self, model: Any, trace: emulate.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model, self.trace, self.moved = model, trace, 0
        model._loaded()  # weights are moved
        for name in ("upload", "download"):
            monkeypatch.setattr(model.device, name, self._counting(getattr(model.device, name)))

    def _counting(self, move: Any) -> Any:
        def counted(address: int, data: memoryview) -> None:
            self.moved += 1
            move(address, data)

        return counted

    def call(self, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], int, int]:
        """Results, launches, numbers."""
        before, self.moved = len(self.trace.launches), 0
        results = [np.asarray(array) for array in self.model(**inputs)]
        return results, len(self.trace.launches) - before, self.moved - len(inputs) - len(results)


def sets(name: str) -> list[dict[str, np.ndarray]]:
    """Inputs that take other ways: see `test_inputs_take_several_ways`."""
    return [models.random_inputs(onnx.load(models.path(name)), seed) for seed in range(3)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(name: str, threads: int) -> None:
    model = tw.compile(str(models.path(name)), threads=threads)
    for inputs in sets(name):
        assert_close([np.asarray(array) for array in model(**inputs)], onnxruntime_outputs(models.path(name), inputs))


def test_inputs_take_several_ways() -> None:
    """Loops end at different times, branches go either way."""
    steps = [int(onnxruntime_outputs(models.path("seq2seq_tiny"), inputs)[1]) for inputs in sets("seq2seq_tiny")]
    assert len({*steps}) > 1 and min(steps) < 5
    ran = {tuple(onnxruntime_outputs(models.path("skipnet_tiny"), inputs)[1]) for inputs in sets("skipnet_tiny")}
    assert len(ran) > 1
    kept = {tuple((inputs["policy"] > 0.5).any(0)) for inputs in sets("blockdrop_tiny")}
    assert len(kept) > 1 and {one for row in kept for one in row} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arch"), either(NAMES, ARCHS))
def test_one_launch(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of warps, and no number goes to or from the host: a graph could record it."""
    trace = emulate.Trace()
    model = compiled(name, arch, seed=1, trace=trace)
    counter = Counter(model, trace, monkeypatch)
    assert model._loaded().is_recordable
    for inputs in sets(name)[: 2 if name in READ else 1]:
        results, launches, numbers = counter.call(inputs)
        assert_close(results, onnxruntime_outputs(models.path(name), inputs))
        assert (launches, numbers) == (1, 0)


@pytest.mark.parametrize(
    "name", ["lstm_tiny", "seq2seq_tiny", *(pytest.param(n, marks=pytest.mark.slow) for n in REST)]
)
def test_driven_by_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, by many launches; it waits where data decides."""
    trace = emulate.Trace()
    model = compiled(name, "sm_80", driven=True, trace=trace)
    counter, (inputs, *_) = Counter(model, trace, monkeypatch), sets(name)
    results, launches, numbers = counter.call(inputs)
    assert_close(results, onnxruntime_outputs(models.path(name), inputs))
    assert launches > 5
    assert model._loaded().is_recordable == (numbers == 0)
    assert numbers > 0 or name not in READ


def test_products_of_branches_wait_for_no_other() -> None:
    """Few rows and a long sum: elsewhere tasks divide its steps, and wait for each other (stream-K)."""
    g = Graph("branch", 20)
    x, other = (g.input(name, np.float32, [1, channels, 7, 7]) for name, channels in (("x", 1024), ("other", 256)))
    weight = g.weight(np.zeros((256, 1024, 1, 1), np.float32))
    which = g.op("Greater", g.op("ReduceSum", other, keepdims=0), g.f32(0.0))
    branches = {"then_branch": ("Conv", [x, weight]), "else_branch": ("Exp", [other])}
    graphs = {}
    for name, (kind, operands) in branches.items():
        inner = g.inner(name)
        inner.output(inner.op(kind, *operands), f"{name}.y", np.float32, [1, 256, 7, 7])
        graphs[name] = inner.as_attribute()
    g.output(g.op("If", which, **graphs), "y", np.float32, [1, 256, 7, 7])
    model: Any = tw.compile(g.model(), target="cuda:sm_90a", emulate=True)
    assert sum(kernel.launches for kernel in model.kernels) == 1
    assert model._loaded().is_recordable
