# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that a GPU runs itself around products of warpgroups: warps that only load (TMA) go round the loop, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.devices.nvidia import for_arch
from tilewright.pipelines import with_target
from tilewright.pipelines.cuda import PIPELINE
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.machine import Options

#: Multiprocessors of the GPU that tests plan for: with few, tiles of 64 rows are the best by predicted time.
UNITS = 2
F16 = np.float16
#: Warps that load, the products of those that compute, and CTAs that meet.
MARKS = (
    "cp.async.bulk.tensor",
    "mbarrier.try_wait",
    "setmaxnreg.dec",
    "wgmma.mma_async",
    "fence.proxy.async;",
    "atom.release.gpu",
)


def weight(width: int) -> np.ndarray:
    """The recurrent matrix."""
    return (np.random.default_rng(0).standard_normal((width, width)) * width**-0.5).astype(F16)


def loop(rows: int, width: int, beside: bool = False) -> onnx.ModelProto:
    """`x` [rows, width] through tanh(x w), `n` times; the state is one of two buffers by turns.

    `beside`: four numbers `z` go through Cos before the product, in a launch that need not be met behind.
    """
    g = Graph("loop", 20)
    x, n = g.input("x", F16, [rows, width]), g.input("n", np.int64, [])
    body, w = g.inner("body"), g.weight(weight(width))
    body.input("i", np.int64, [])
    go, state = body.input("go", np.bool_, []), body.input("state", F16, [rows, width])
    other = [body.op("Cos", body.input("other", np.float32, [4]))] if beside else []
    body.output(go, "goes_on", np.bool_, [])
    body.output(body.op("Tanh", body.op("MatMul", state, w)), "new", F16, [rows, width])
    for value in other:
        body.output(value, "new_other", np.float32, [4])
    more = [g.input("z", np.float32, [4])] if beside else []
    y, *rest = g.ops("Loop", n, "", x, *more, outputs=1 + len(more), body=body.as_attribute())
    g.output(y, "y", F16, [rows, width])
    for value in rest:
        g.output(value, "y_other", np.float32, [4])
    return g.model()


def values(rows: int, width: int) -> np.ndarray:
    """Random inputs."""
    return np.random.default_rng(1).standard_normal((rows, width)).astype(F16)


def expected(x: np.ndarray, steps: int) -> np.ndarray:
    """The loop in f32, states rounded as the model's are."""
    w = weight(x.shape[1]).astype(np.float32)
    for _ in range(steps):
        x = np.tanh(x.astype(np.float32) @ w).astype(F16)
    return x


def on_gpu(proto: onnx.ModelProto, **options: object) -> Any:
    """The model on the emulator: one launch, of a kernel with warps that only load."""
    device = for_arch("sm_90a")
    few = replace(device, name=f"{device.name}-of-{UNITS}", units=replace(device.units, count=UNITS))
    model = tw.compile(
        proto,
        target="cuda:sm_90a",
        pipeline=with_target(PIPELINE, few),
        emulate={"multiprocessors": UNITS, **options},
    )
    assert sum(kernel.launches for kernel in model.kernels) == 1
    ((_, text),) = model.ptx().items()
    assert all(mark in text for mark in MARKS)
    return model


@pytest.mark.parametrize(("rows", "width"), [(64, 128), pytest.param(70, 200, marks=pytest.mark.slow)])
def test_rings_go_on_from_step_to_step(rows: int, width: int) -> None:
    """In any order of warps; of whole tiles and of ragged ones; for no step, one, and more than the ring has slots."""
    x = values(rows, width)
    for seed, counts in ((None, (3, 0)), (3, (4,))):
        model = on_gpu(loop(rows, width), seed=seed)
        for steps in counts:
            y = np.asarray(model(x, np.int64(steps))[0])
            np.testing.assert_allclose(y.astype(float), expected(x, steps).astype(float), rtol=0, atol=4e-3)


def test_a_launch_beside_one_with_rings() -> None:
    """Warps that only load leave it out, and yet begin with the task that those which compute do."""
    x, z = values(64, 128), np.arange(4, dtype=np.float32)
    y, other = on_gpu(loop(64, 128, beside=True))(x, np.int64(3), z)
    np.testing.assert_allclose(np.asarray(y).astype(float), expected(x, 3).astype(float), rtol=0, atol=4e-3)
    np.testing.assert_allclose(np.asarray(other), np.cos(np.cos(np.cos(z))), rtol=1e-6)


def without(what: str, last: bool = False) -> Callable[[str], str]:
    """Text with the first, or the last, of the lines that have something left out."""

    def change(text: str) -> str:
        lines = text.split("\n")
        places = [i for i, line in enumerate(lines) if what in line]
        del lines[places[-1 if last else 0]]
        return "\n".join(lines)

    return change


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (without("fence.proxy.async;"), "race"),
        (lambda text: text.replace("ld.acquire.gpu", "ld.relaxed.gpu"), "race"),
        (without("mbarrier.arrive.shared", last=True), "dead-lock"),
    ],
    ids=["no fence of proxies", "no acquire", "a slot that is not given back"],
)
def test_faults_of_rings_in_loops_are_caught(change: Callable[[str], str], rule: str) -> None:
    model = on_gpu(loop(64, 128))
    ((_, text),) = model.ptx().items()
    broken = on_gpu(loop(64, 128), options=Options(lanes=1), replace={text: change(text)})
    with pytest.raises(EmulationError) as caught:
        broken(values(64, 128), np.int64(4))
    assert caught.value.rule == rule
