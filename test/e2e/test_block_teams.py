# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of launches beside each other in one kernel: teams of its blocks that meet without the others."""

from __future__ import annotations

import itertools
import operator
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.plan.graph import plan_teams
from tilewright.plan.graph.chains import Touched
from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.machine import Options

ARCHS = ("sm_80", "sm_90a")
SLOW = pytest.mark.slow
#: Multiprocessors of the emulated GPU.
UNITS = 32
F32 = np.float32
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Meetings in each step.
MEETINGS = {"LSTM": 1, "GRU": 3, "RNN": 1}


def sequences(kinds: tuple[str, ...], steps: tuple[int, ...], hidden: int = 64) -> onnx.ModelProto:
    """Sequences of unequal lengths [steps, 1, 8], each through a layer of its own: the last states."""
    g, random, lasts = Graph("sequences", 20), np.random.default_rng(0), []
    for number, (kind, length) in enumerate(zip(kinds, steps, strict=True)):
        gates = GATES[kind] * hidden
        shapes = [(1, gates, 8), (1, gates, hidden), (1, 2 * gates)]
        weights = [g.weight((random.standard_normal(shape) * 0.3).astype(F32)) for shape in shapes]
        x = g.input(f"x{number}", F32, [length, 1, 8])
        lasts.append(g.ops(kind, x, *weights, outputs=2, hidden_size=hidden)[1])
    g.output(g.op("Concat", *lasts, axis=2), "y", F32, [1, 1, hidden * len(lasts)])
    return g.model()


def chains_in_a_loop(crossed: bool) -> onnx.ModelProto:
    """Two states, each through two layers in each of three iterations; `crossed`: each begins with the other one."""
    g, random = Graph("chains", 20), np.random.default_rng(0)
    states = [g.input(name, F32, [1, 48]) for name in ("a", "b")]
    weights = [g.weight((random.standard_normal((48, 48)) * 0.2).astype(F32)) for _ in range(4)]
    body = g.inner("body")
    body.input("i", np.int64, [])
    go = body.input("go", np.bool_, [])
    inside = [body.input(f"{name}.in", F32, [1, 48]) for name in ("a", "b")]
    body.output(go, "goes_on", np.bool_, [])
    for number, state in enumerate(reversed(inside) if crossed else inside):
        for layer in range(2):
            state = body.op("Tanh", body.op("MatMul", state, weights[2 * number + layer]))
        body.output(state, f"new{number}", F32, [1, 48])
    for number, value in enumerate(g.ops("Loop", g.const(3), "", *states, outputs=2, body=body.as_attribute())):
        g.output(value, f"y{number}", F32, [1, 48])
    return g.model()


def compiled(proto: onnx.ModelProto, arch: str, **options: object) -> Any:
    """On the emulator, by one launch, of a GPU that holds all blocks that are planned for."""
    model = tw.compile(proto, target=f"cuda:{arch}", emulate={"multiprocessors": UNITS, **options})
    assert sum(kernel.launches for kernel in model.kernels) == 1
    return model


def values(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random inputs."""
    random = np.random.default_rng(1)
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    return {name: random.standard_normal(shape).astype(F32) for name, shape in shapes.items()}


def check(proto: onnx.ModelProto, model: Any) -> None:
    """Results are ONNX Runtime's, and a graph could record the launch."""
    inputs = values(proto)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for ours, wanted in zip(model(**inputs), expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), wanted, rtol=1e-5, atol=2e-5)
    assert model._loaded().is_recordable


def teams(model: Any) -> list[list[int]]:
    """Blocks of each team, by what is told about them."""
    told = [e["message"] for e in model.report_data()["remarks"] if "by teams of" in e["message"]]
    numbers = [message.partition("by teams of ")[2].partition(" blocks")[0] for message in told]
    return [[int(number) for number in some.split(", ")] for some in numbers]


def arrivals(trace: emulate.Trace) -> int:
    """How often blocks came to meetings."""
    (launch,) = trace.launches
    return sum(line.threads for line in launch.lines.values() if "atom.release.gpu" in line.text)


PAIRS = [(("GRU", "LSTM"), (3, 5)), (("LSTM", "LSTM", "RNN"), (4, 2, 3)), (("RNN", "GRU"), (2, 6))]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Decisions that a test changes are no options of a compilation."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=SLOW), "sm_90a"])
@pytest.mark.parametrize(("kinds", "steps"), [PAIRS[0], *(pytest.param(*pair, marks=SLOW) for pair in PAIRS[1:])])
def test_unequal_loops(kinds: tuple[str, ...], steps: tuple[int, ...], arch: str) -> None:
    """Blocks of a team meet as often as its loop needs; beside that, all of them a few times."""
    trace, proto = emulate.Trace(), sequences(kinds, steps)
    model = compiled(proto, arch, seed=1, trace=trace)
    check(proto, model)
    (numbers,) = teams(model)
    assert len(numbers) == len(kinds)
    (launch,) = trace.launches
    assert sum(numbers) == launch.grid[0]
    own = [MEETINGS[kind] * length for kind, length in zip(kinds, steps, strict=True)]
    sums = [sum(map(operator.mul, numbers, order)) for order in itertools.permutations(own)]  # teams in any order
    whole = [divmod(arrivals(trace) - each, launch.grid[0]) for each in sums]
    found = [count for count, rest in whole if rest == 0 and 0 < count < 4]
    (counts,) = [phase["counts"] for phase in model.report_data()["phases"] if phase["name"] == "lower"]
    assert counts["meetings"] - max(own) in found  # teams meet beside each other


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("crossed", [pytest.param(False, marks=SLOW), True])
def test_chains_in_a_loop(crossed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a chain needs in the next iteration what another one has done, all blocks meet behind each one."""
    monkeypatch.setattr(plan_teams, "_LEAST_GAIN", 0.0)
    proto = chains_in_a_loop(crossed)
    model = compiled(proto, "sm_90a", seed=2)
    check(proto, model)
    assert len(teams(model)) == 1


@SLOW
def test_fewer_blocks_than_teams_want() -> None:
    """All blocks that there are do what each team would; the same bits."""
    proto = sequences(*PAIRS[0])
    inputs = values(proto)
    wanted = [np.asarray(array) for array in compiled(proto, "sm_80")(**inputs)]
    for ours, other in zip(compiled(proto, "sm_80", multiprocessors=1)(**inputs), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), other)


@SLOW
@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("arch", ARCHS)
def test_teams_of_what_needs_each_other(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever decides on teams: all blocks meet where one needs what another one does."""
    monkeypatch.setattr(plan_teams, "_LEAST_GAIN", 0.0)
    monkeypatch.setattr(Touched, "needs", lambda self, before: False)
    for proto in (sequences(*PAIRS[0]), chains_in_a_loop(crossed=True)):
        model = compiled(proto, arch, seed=3)
        check(proto, model)
        assert teams(model)


@pytest.mark.parametrize(
    ("kinds", "steps"), [(("LSTM", "LSTM"), (4, 4)), pytest.param(("RNN", "GRU"), (1, 6), marks=SLOW)]
)
def test_loops_that_pay_as_one_have_no_teams(kinds: tuple[str, ...], steps: tuple[int, ...]) -> None:
    """Directions of a layer are one loop, whose steps run beside each other anyway; one step is no loop."""
    assert not teams(compiled(sequences(kinds, steps), "sm_90a"))


#: The address of a counter, of the team that is `bytes` behind that of all blocks.
_COUNTER = r"(_meetings;\n\tadd\.s64 \t%rd\d+, %rd\d+), {bytes};"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        pytest.param(r"atom\.release\.gpu", "atom.relaxed.gpu", "race", marks=SLOW),
        (r"ld\.acquire\.gpu", "ld.relaxed.gpu", "race"),
        pytest.param(_COUNTER.format(bytes=128), r"\1, 0;", "dead-lock", marks=SLOW),
        pytest.param(_COUNTER.format(bytes=256), r"\1, 128;", "uninitialised", marks=SLOW),
    ],
    ids=["no release", "no acquire", "the counter of all", "the counter of another team"],
)
def test_broken_teams_are_caught(old: str, new: str, rule: str) -> None:
    proto = sequences(*PAIRS[0])
    ((_, text),) = compiled(proto, "sm_90a").ptx().items()
    broken = re.sub(old, new, text)
    assert broken != text
    one_by_one = Options(lanes=1)  # CTAs in step would wait for each other without a barrier
    model = compiled(proto, "sm_90a", options=one_by_one, replace={text: broken})
    with pytest.raises(EmulationError) as caught:
        model(**values(proto))
    assert caught.value.rule == rule
