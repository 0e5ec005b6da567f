# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Teams of blocks whose launches have warps that only load (TMA): rings go on in each block's own team."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.devices.nvidia import for_arch
from tilewright.pipelines import with_target
from tilewright.pipelines.cuda import PIPELINE
from tilewright.plan.graph import plan_teams

#: Multiprocessors of the GPU that tests plan for: with few, tiles of 64 rows are the best by predicted time.
UNITS = 2
F16 = np.float16
SLOW = pytest.mark.slow
#: Warps that load, the products of those that compute, and CTAs that meet.
MARKS = ("cp.async.bulk.tensor", "setmaxnreg.dec", "wgmma.mma_async", "atom.release.gpu")


def weights(width: int) -> list[np.ndarray]:
    """The recurrent matrices of two chains."""
    random = np.random.default_rng(0)
    return [(random.standard_normal((width, width)) * width**-0.5).astype(F16) for _ in range(2)]


def chains(rows: int, width: int, steps: tuple[int, int], last: str) -> onnx.ModelProto:
    """Two states [rows, width], each `steps` times through a function of a product; what `last` makes of both."""
    g, ends = Graph("chains", 20), []
    for number, (matrix, count) in enumerate(zip(weights(width), steps, strict=True)):
        x, body = g.input(f"x{number}", F16, [rows, width]), g.inner(f"body{number}")
        w = g.weight(matrix)
        body.input("i", np.int64, [])
        go, state = body.input("go", np.bool_, []), body.input("state", F16, [rows, width])
        body.output(go, "goes_on", np.bool_, [])
        body.output(body.op("Tanh" if number == 0 else "Relu", body.op("MatMul", state, w)), "new", F16, [rows, width])
        ends.append(g.op("Loop", g.const(count), "", x, body=body.as_attribute()))
    g.output(g.op(last, *ends), "y", F16, [rows, width])
    return g.model()


def expected(xs: list[np.ndarray], steps: tuple[int, int], last: str) -> np.ndarray:
    """The chains in f32, states rounded as the model's are."""
    ends = []
    for number, (x, matrix, count) in enumerate(zip(xs, weights(xs[0].shape[1]), steps, strict=True)):
        for _ in range(count):
            product = x.astype(np.float32) @ matrix.astype(np.float32)
            x = (np.tanh(product) if number == 0 else np.maximum(product, 0)).astype(F16)
        ends.append(x.astype(np.float32))
    return ends[0] @ ends[1] if last == "MatMul" else ends[0] + ends[1]


def on_gpu(proto: onnx.ModelProto, **options: object) -> Any:
    """The model on the emulator: one launch, of a kernel with warps that only load and with teams."""
    device = for_arch("sm_90a")
    few = replace(device, name=f"{device.name}-of-{UNITS}", units=replace(device.units, count=UNITS))
    emulate = {"multiprocessors": UNITS, **options}
    model = tw.compile(proto, target="cuda:sm_90a", pipeline=with_target(PIPELINE, few), emulate=emulate)
    assert sum(kernel.launches for kernel in model.kernels) == 1
    ((_, text),) = model.ptx().items()
    assert [mark for mark in MARKS if mark not in text] == []
    assert any("by teams of" in entry["message"] for entry in model.report_data()["remarks"])
    return model


@pytest.fixture(autouse=True)
def teams_anyway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is predicted to be faster; such a decision is no option of a compilation."""
    monkeypatch.setattr(plan_teams, "_LEAST_GAIN", 0.0)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("rows", "width", "steps", "last"),
    [
        (64, 128, (3, 2), "Add"),
        pytest.param(128, 128, (2, 4), "MatMul", marks=SLOW),
        pytest.param(70, 136, (2, 3), "Add", marks=SLOW),
    ],
)
def test_rings_of_teams(rows: int, width: int, steps: tuple[int, int], last: str) -> None:
    """Loops of unequal lengths beside each other, and what reads both, in any order of warps."""
    random = np.random.default_rng(1)
    xs = [random.standard_normal((rows, width)).astype(F16) for _ in range(2)]
    proto, wanted = chains(rows, width, steps, last), expected(xs, steps, last)
    for seed in (None, 3):
        (y,) = on_gpu(proto, seed=seed)(*xs)
        np.testing.assert_allclose(np.asarray(y).astype(float), wanted.astype(float), rtol=4e-3, atol=2e-2)
