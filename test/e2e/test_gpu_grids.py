# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How products fill a Hopper's grid: residuals in persistent grids, clusters of open row counts and of convolutions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright.devices.nvidia import for_arch
from tilewright.passes.pipeline import Pipeline
from tilewright.pipelines import with_target
from tilewright.pipelines.cuda import PIPELINE
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.model.gpu import Gpu

TARGET = "cuda:sm_90a"
Choose = Callable[[Callable[[Shape], bool]], None]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Choose:
    """Sets which shapes the plan may take, wherever there are such; nothing is cached."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    every = gemm_time.shapes

    def choose(wanted: Callable[[Shape], bool]) -> None:
        def some(problem: Problem, gpu: Gpu) -> Sequence[Shape]:
            found = list(every(problem, gpu))
            return [shape for shape in found if wanted(shape)] or found

        monkeypatch.setattr(gemm_time, "shapes", some)

    return choose


def few(units: int) -> Pipeline:
    """The phases for a Hopper of a few multiprocessors: more tiles than CTAs."""
    device = for_arch("sm_90a")
    return with_target(
        PIPELINE, replace(device, name=f"{device.name}-of-{units}", units=replace(device.units, count=units))
    )


def kernels(model: tw.CompiledModel, folder: Path) -> tuple[list[dict], str]:
    """How the kernels of a model are launched, and their PTX."""
    model.save(folder / "m")
    programs = [json.loads(path.read_text()) for path in (folder / "m").rglob("program.json")]
    text = "\n".join(path.read_text() for path in (folder / "m").rglob("*.ptx"))
    return [kernel for program in programs for kernel in program["kernels"].values()], text


def product(
    m: int | str, n: int, k: int, dtype: np.typing.DTypeLike = np.float16, tail: Iterable[str] = ()
) -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n], then what `tail` names: a bias, residuals, a Relu."""
    kind, g = np.dtype(dtype), Graph("product", 20)
    y = g.op("MatMul", g.input("a", kind, [m, k]), g.input("b", kind, [k, n]))
    for step in tail:
        if step == "relu":
            y = g.op("Relu", y)
        else:
            y = g.op("Add", y, g.input(step, kind, [n] if step == "bias" else [m, n]))
    g.output(y, "y", kind, [m, n])
    return g.model()


def values(m: int, n: int, k: int, tail: Iterable[str] = ()) -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of a product in f16, and its result."""
    random = np.random.default_rng(m + n + k)
    made = [random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n))]
    wanted = made[0].astype(np.float64) @ made[1]
    for step in tail:
        if step == "relu":
            wanted = np.maximum(wanted, 0)
            continue
        made.append(random.standard_normal([n] if step == "bias" else [m, n]).astype(np.float16))
        wanted = wanted + made[-1]
    return made, wanted


def close(ours: np.ndarray, wanted: np.ndarray) -> None:
    """Within what rounding each step to f16 may do."""
    ours = np.asarray(ours).astype(np.float64)
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=3e-3 * max(np.abs(wanted).max(initial=0), 1))


@pytest.mark.parametrize(
    ("m", "n", "k", "tail"),
    [
        (512, 512, 512, ["r"]),
        (500, 504, 328, ["bias", "r", "relu"]),
        (384, 256, 256, ["r", "s"]),
    ],
)
def test_residuals_in_a_persistent_grid(m: int, n: int, k: int, tail: list[str], tmp_path: Path) -> None:
    """By predicted time: the matrices come by TMA beside the last steps of each tile, and go into registers."""
    model = tw.compile(product(m, n, k, tail=tail), target=TARGET, pipeline=few(2), emulate=True)
    (kernel,), ptx = kernels(model, tmp_path)
    matrices = [param for param in kernel["params"] if param["kind"] == "tensor_map"]
    assert kernel["persistent"] and "%nctaid.x" in ptx
    assert len(matrices) == 3 + sum(step in "rs" for step in tail), "operands, result, and what the sums meet"
    inputs, wanted = values(m, n, k, tail)
    close(model(*inputs)[0], wanted)


def test_a_residual_that_tma_cannot_load(tmp_path: Path) -> None:
    """Rows of an odd length: results are not TMA's either, and each CTA has one tile."""
    model = tw.compile(product(192, 129, 256, tail=["r"]), target=TARGET, pipeline=few(2), emulate=True)
    (kernel,), _ = kernels(model, tmp_path)
    assert not kernel["persistent"]
    inputs, wanted = values(192, 129, 256, ["r"])
    close(model(*inputs)[0], wanted)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)])
def test_clusters_of_open_rows(cluster: tuple[int, int], persistent: bool, only: Choose, tmp_path: Path) -> None:
    """The grid is rounded up to whole clusters along the rows; a CTA behind the end loads and stores nothing."""
    only(lambda shape: (shape.cluster, shape.rows, shape.lanes, shape.persistent) == (cluster, 64, 128, persistent))
    made = tw.compile(product("rows", 256, 200, tail=["r"]), target=TARGET, pipeline=few(2), emulate=True)
    model = made.general or made
    (kernel,), ptx = kernels(model, tmp_path)
    assert kernel["cluster"] == [2, 1, 1] and ".multicast::cluster" in ptx
    assert kernel["rounded"] == ([2, 1] if cluster == (2, 1) else None)
    assert bool(kernel["persistent"]) == persistent
    for rows in (1, 64, 65, 128, 130, 300):
        inputs, wanted = values(rows, 256, 200, ["r"])
        close(model(*inputs)[0], wanted)


def convolution(image: tuple[int, int], window: int, stride: int, batch: int | str = 1) -> onnx.ModelProto:
    """64 channels to 128, with a residual."""
    kind, g, random = np.dtype(np.float16), Graph("convolution", 20), np.random.default_rng(3)
    filters = (random.standard_normal((128, 64, window, window)) / (8 * window)).astype(kind)
    x = g.input("x", kind, [batch, 64, *image])
    pads = [window // 2] * 4
    y = g.op("Conv", x, g.weight(filters, "w"), pads=pads, strides=[stride] * 2)
    sizes = [(size + 2 * (window // 2) - window) // stride + 1 for size in image]
    y = g.op("Relu", g.op("Add", y, g.input("r", kind, [batch, 128, *sizes])))
    g.output(y, "y", kind, [batch, 128, *sizes])
    return g.model()


@pytest.mark.parametrize(
    ("cluster", "image", "window", "stride"),
    [((2, 1), (16, 24), 3, 1), ((1, 2), (16, 24), 3, 1), ((2, 1), (31, 17), 3, 2)],
)
def test_clusters_of_convolutions(
    cluster: tuple[int, int], image: tuple[int, int], window: int, stride: int, only: Choose, tmp_path: Path
) -> None:
    """Blocks beside each other share the filters, or the image where its places are neighbours."""
    only(lambda shape: shape.cluster == cluster and shape.lanes <= 64)
    proto = convolution(image, window, stride)
    model, plain = tw.compile(proto, target=TARGET, emulate=True), tw.compile(proto, threads=2)
    found, ptx = kernels(model, tmp_path)
    assert [2, 1, 1] in [kernel["cluster"] for kernel in found] and ".multicast::cluster" in ptx
    random = np.random.default_rng(1)
    shapes = [[int(d.dim_value) for d in value.type.tensor_type.shape.dim] for value in proto.graph.input]
    inputs = [random.standard_normal(shape).astype(np.float16) for shape in shapes]
    close(model(*inputs)[0], np.asarray(plain(*inputs)[0]).astype(np.float64))
