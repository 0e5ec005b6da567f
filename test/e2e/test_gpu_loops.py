# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches that a GPU runs itself: one launch, whose CTAs meet behind what the host would have launched."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.machine import Options

ARCHS = ("sm_80", "sm_90a")
UNITS = 3
F32 = np.float32


def recurrent(
    kind: str, steps: int | str = 4, batch: int = 1, hidden: int = 48, **attributes: object
) -> onnx.ModelProto:
    """`x` [steps, batch, 8] through one layer."""
    random, g = np.random.default_rng(0), Graph(kind.lower(), 20)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = [(directions, gates * hidden, 8), (directions, gates * hidden, hidden), (directions, 2 * gates * hidden)]
    weights = [g.weight((random.standard_normal(shape) * 0.3).astype(F32)) for shape in shapes]
    x = g.input("x", F32, [steps, batch, 8])
    y, last = g.ops(kind, x, *weights, outputs=2, hidden_size=hidden, **attributes)
    g.output(y, "y", F32, [steps, directions, batch, hidden])
    g.output(last, "last", F32, [directions, batch, hidden])
    return g.model()


def loop(ends: bool) -> onnx.ModelProto:
    """`x` [1, 64] through a layer that makes it smaller, as often as `n` says, or until no result is above a bound."""
    g = Graph("loop", 20)
    x, n = g.input("x", F32, [1, 64]), g.input("n", np.int64, [])
    w = g.weight((np.random.default_rng(0).standard_normal((64, 64)) * 0.1).astype(F32))
    body = g.inner("body")
    body.input("i", np.int64, [])
    go, state = body.input("go", np.bool_, []), body.input("state", F32, [1, 64])
    new = body.op("Tanh", body.op("MatMul", state, w))
    if ends:
        go = body.op("Greater", body.op("ReduceMax", new, keepdims=0), body.const(0.2, F32))
    body.output(go, "goes_on", np.bool_, [])
    body.output(new, "new", F32, [1, 64])
    g.output(g.op("Loop", n, "", x, body=body.as_attribute()), "y", F32, [1, 64])
    return g.model()


def small_layers(steps: int, wide: int = 40) -> onnx.ModelProto:
    """`x` [1, 256] through a loop of four layers; two, with `wide` numbers in between, are a task each."""
    random, g = np.random.default_rng(0), Graph("small", 20)
    x = g.input("x", F32, [1, 256])
    shapes = ((256, 10), (10, wide), (wide, 10), (10, 256))
    weights = [g.weight((random.standard_normal(shape) * shape[0] ** -0.5).astype(F32)) for shape in shapes]
    body = g.inner("body")
    body.input("i", np.int64, [])
    go, state = body.input("go", np.bool_, []), body.input("state", F32, [1, 256])
    for weight in weights:
        state = body.op("Tanh", body.op("MatMul", state, weight))
    body.output(body.op("Identity", go), "goes_on", np.bool_, [])
    body.output(state, "new", F32, [1, 256])
    g.output(g.op("Loop", g.const(steps, np.int64), "", x, body=body.as_attribute()), "y", F32, [1, 256])
    return g.model()


def branch(computed: bool) -> onnx.ModelProto:
    """`x` [1, 64] through a layer or an Exp, by the sign of its sum, or by an input."""
    g = Graph("branch", 20)
    x = g.input("x", F32, [1, 64])
    w = g.weight((np.random.default_rng(0).standard_normal((64, 64)) * 0.2).astype(F32))
    if computed:
        which = g.op("Greater", g.op("ReduceSum", x, keepdims=0), g.const(0, F32))
    else:
        which = g.input("which", np.bool_, [])
    then, other = g.inner("then"), g.inner("other")
    then.output(then.op("Tanh", then.op("MatMul", x, w)), "a", F32, [1, 64])
    other.output(other.op("Exp", x), "b", F32, [1, 64])
    y = g.op("If", which, then_branch=then.as_attribute(), else_branch=other.as_attribute())
    g.output(g.op("Relu", y), "y", F32, [1, 64])
    return g.model()


def values(*shape: int) -> np.ndarray:
    """Random inputs."""
    return np.random.default_rng(1).standard_normal(shape).astype(F32)


def on_gpu(proto: onnx.ModelProto, arch: str, **options: object) -> Any:
    """The model on the emulator, of one launch that a graph could record."""
    model = tw.compile(proto, target=f"cuda:{arch}", emulate={"multiprocessors": UNITS, **options})
    found: Any = getattr(model, "general", None) or model
    assert sum(kernel.launches for kernel in found.kernels) == 1
    return found


def check(proto: onnx.ModelProto, arch: str, *calls: Sequence[Any]) -> None:
    """Results are a CPU's, in each call of one loaded model."""
    model, cpu = on_gpu(proto, arch, seed=1), tw.compile(proto, threads=2)
    for inputs in calls:
        for ours, wanted in zip(model(*inputs), cpu(*inputs), strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), rtol=1e-5, atol=2e-5)
    assert model._loaded().is_recordable


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str, arch: str) -> None:
    check(recurrent(kind), arch, [values(4, 1, 8)], [values(4, 1, 8) + 1])


@pytest.mark.slow
def test_both_directions_of_several_rows() -> None:
    check(recurrent("LSTM", batch=3, hidden=40, direction="bidirectional"), "sm_90a", [values(4, 3, 8)])


@pytest.mark.parametrize("arch", ARCHS)
def test_steps_of_a_run(arch: str) -> None:
    """The host tells which buffer is the last, without launches."""
    check(recurrent("GRU", steps="s"), arch, [values(3, 1, 8)], [values(4, 1, 8)])


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("ends", [False, True])
def test_loops_of_data(ends: bool, arch: str) -> None:
    """The number of iterations is an input, or follows from what they compute."""
    calls = [[values(1, 64), np.int64(n)] for n in (5, 0, 40 if ends else 1)]
    check(loop(ends), arch, *calls)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("computed", [False, True])
def test_branches_of_data(computed: bool, arch: str) -> None:
    if computed:
        check(branch(True), arch, [values(1, 64)], [-values(1, 64)])
    else:
        check(branch(False), arch, *([values(1, 64), np.bool_(which)] for which in (True, False)))


@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_90a", marks=pytest.mark.slow)])
def test_rows_of_one_task_are_one_block(arch: str) -> None:
    """Of five launches an iteration, blocks meet behind four: that between the small layers needs no other block."""
    steps, trace, proto, x = 3, emulate.Trace(), small_layers(3), values(1, 256)
    (y,) = on_gpu(proto, arch, seed=5, trace=trace)(x)
    np.testing.assert_allclose(np.asarray(y), np.asarray(tw.compile(proto)(x)[0]), rtol=1e-5, atol=2e-5)
    (launch,) = trace.launches
    assert launch.grid[0] > 1
    arrivals = sum(line.threads for line in launch.lines.values() if "atom.release.gpu" in line.text)
    assert arrivals / launch.grid[0] == 1 + 4 * steps


def test_a_row_without_its_barrier_is_caught() -> None:
    """Threads of one block read what others of it, which this order lets run later, have not written yet."""
    proto = small_layers(2, wide=64)
    ((_, text),) = on_gpu(proto, "sm_80").ptx().items()
    barrier = "\tbar.sync \t0;\n"
    parts = text.split(barrier)
    # The first one behind a launch that has no meeting of blocks on either side.
    pairs = enumerate(itertools.pairwise(parts), 1)
    row = next(n for n, (a, b) in pairs if "st.global" in a and "atom.release" not in a + b)
    broken = barrier.join(parts[:row]) + barrier.join(parts[row:])
    model = on_gpu(proto, "sm_80", seed=5, replace={text: broken})
    with pytest.raises(EmulationError) as caught:
        model(values(1, 256))
    assert caught.value.rule == "uninitialised"


@pytest.mark.slow
def test_any_order_and_number_of_blocks() -> None:
    """The same bits in any order of CTAs, and on fewer multiprocessors; no more CTAs than they hold, and all of them
    are tasks' of the largest launch."""
    proto, x = recurrent("LSTM", hidden=96), values(4, 1, 8)
    first = np.asarray(on_gpu(proto, "sm_80")(x)[0])
    grids = []
    for units, seed in ((UNITS, 2), (UNITS, 3), (1, None), (2, 4)):
        trace = emulate.Trace()
        model = on_gpu(proto, "sm_80", multiprocessors=units, seed=seed, trace=trace)
        np.testing.assert_array_equal(np.asarray(model(x)[0]), first)
        grids.append(trace.launches[0].grid[0] / units)
    assert grids[0] == grids[1] >= 1
    assert grids[2] >= 1


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("atom.release.gpu", "atom.relaxed.gpu", "race"),
        ("ld.acquire.gpu", "ld.relaxed.gpu", "race"),
        ("ld.acquire.gpu", "ld.acquire.cta", "race"),
        ("setp.ge.s32", "setp.lt.s32", "uninitialised"),
        ("-2147483647", "-2147483648", "dead-lock"),  # one block more is waited for than there are
        ("-2147483647", "-2147483646", "uninitialised"),  # one less
        ("@P1 bra.uni LAB_WAIT;", "", "uninitialised"),
    ],
    ids=["no release", "no acquire", "an acquire of the CTA", "the other bit", "one more", "one less", "nobody waits"],
)
def test_broken_barriers_are_caught(old: str, new: str, rule: str) -> None:
    proto, x = recurrent("LSTM", steps=2, hidden=96), values(2, 1, 8)
    ((_, text),) = on_gpu(proto, "sm_80").ptx().items()
    assert old in text
    one_by_one = Options(lanes=1)  # CTAs in step would wait for each other without a barrier
    model = tw.compile(
        proto, target="cuda:sm_80", emulate={"options": one_by_one, "replace": {text: text.replace(old, new)}}
    )
    with pytest.raises(EmulationError) as caught:
        model(x)
    assert caught.value.rule == rule
