# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of which the last waves' steps all CTAs share (stream-K): results, their bits, who may wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from tilewright.plan.gpu import split_k
from tilewright.plan.model.gpu import Gpu
from tilewright.sim.ptx.machine import Machine, Options
from tilewright.sim.ptx.memory.global_memory import GlobalMemory

ARCHS = ("sm_90a", "sm_80")
#: Multiprocessors of the GPU that tests plan for.
UNITS = 2


@pytest.fixture
def deal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int, int], None]:
    """Lets the plan take stream-K in tiles of some rows and lanes, whatever is predicted, and cut no sums into parts
    for two kernels; nothing is cached."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    every = gemm_time.shapes
    monkeypatch.setattr(split_k, "best_parts", lambda problem, gpu: (None, 0.0))

    def choose(rows: int, lanes: int) -> None:
        def some(problem: Problem, gpu: Gpu) -> Sequence[Shape]:
            found = list(every(problem, gpu))
            return [s for s in found if s.stream_k and (s.rows, s.lanes) == (rows, lanes)] or found

        monkeypatch.setattr(gemm_time, "shapes", some)

    return choose


def few(arch: str) -> Pipeline:
    """The phases for a GPU of a few multiprocessors."""
    device = for_arch(arch)
    units = replace(device.units, count=UNITS)
    return with_target(PIPELINE, replace(device, name=f"{device.name}-of-{UNITS}", units=units))


def product(m: int, n: int, k: int, tail: Iterable[str] = (), batch: int = 0) -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n] in f16, then what `tail` names: a bias, a Gelu, a Relu."""
    kind, g = np.dtype(np.float16), Graph("product", 20)
    front = [batch] if batch else []
    y = g.op("MatMul", g.input("a", kind, [*front, m, k]), g.input("b", kind, [*front, k, n]))
    for step in tail:
        y = g.op("Add", y, g.input("bias", kind, [n])) if step == "bias" else g.op(step, y)
    g.output(y, "y", kind, [*front, m, n])
    return g.model()


def inputs_of(proto: onnx.ModelProto) -> list[np.ndarray]:
    """Random inputs."""
    random = np.random.default_rng(5)
    shapes = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in proto.graph.input]
    return [random.standard_normal(shape).astype(np.float16) for shape in shapes]


def entries(folder: Path) -> list[dict]:
    """How kernels of a saved model are launched."""
    programs = [json.loads(path.read_text()) for path in folder.rglob("program.json")]
    return [kernel for program in programs for kernel in program["kernels"].values()]


def saved(proto: onnx.ModelProto, arch: str, folder: Path) -> Path:
    """The model, compiled; exactly one of its kernels has CTAs that wait for others."""
    model = tw.compile(proto, target=f"cuda:{arch}", pipeline=few(arch), emulate={"multiprocessors": UNITS})
    model.save(folder / "m")
    assert sum(kernel["waits"] for kernel in entries(folder / "m")) == 1
    return folder / "m"


def run(path: Path, inputs: Sequence[np.ndarray], units: int = UNITS, seed: int | None = None) -> np.ndarray:
    """The result, on a GPU of so many multiprocessors."""
    return np.asarray(tw.load(path, emulate={"multiprocessors": units, "seed": seed})(*inputs)[0])


def close(ours: np.ndarray, wanted: np.ndarray) -> None:
    """Within what rounding to f16 may do."""
    np.testing.assert_allclose(ours.astype(np.float64), wanted, rtol=0, atol=3e-3 * max(np.abs(wanted).max(), 1))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("tile", "sizes", "tail"),
    [
        (
            (64, 64),
            (448, 64, 512),
            [],
        ),  # seven tiles: shares that begin and end in tiles, and whole ones where few CTAs
        ((64, 64), (264, 56, 520), ["bias", "Relu"]),  # ragged everywhere
    ],
)
def test_products(
    arch: str, tile: tuple[int, int], sizes: tuple[int, int, int], tail: list[str],
    deal: Callable[[int, int], None], tmp_path: Path,
) -> None:  # fmt: skip
    """The same bits in any order of CTAs, and on fewer multiprocessors than were planned for."""
    deal(*tile)
    proto = product(*sizes, tail=tail)
    path, inputs = saved(proto, arch, tmp_path), inputs_of(proto)
    wanted = inputs[0].astype(np.float64) @ inputs[1]
    if tail:
        wanted = np.maximum(wanted + inputs[2], 0)
    first = run(path, inputs)
    close(first, wanted)
    for seed in (1, 2):
        np.testing.assert_array_equal(run(path, inputs, seed=seed), first)
    np.testing.assert_array_equal(run(path, inputs, units=1), first)


def test_fewer_tiles_than_ctas(deal: Callable[[int, int], None], tmp_path: Path) -> None:
    """Two tiles of four CTAs, which add up in their order."""
    deal(64, 32)
    proto = product(64, 64, 1024)
    path, inputs = saved(proto, "sm_90a", tmp_path), inputs_of(proto)
    first = run(path, inputs)
    close(first, inputs[0].astype(np.float64) @ inputs[1])
    np.testing.assert_array_equal(run(path, inputs, seed=3), first)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_launch_leaves_semaphores_as_it_found_them(
    arch: str, deal: Callable[[int, int], None], tmp_path: Path
) -> None:
    """Runs of one loaded model, with other inputs each."""
    deal(64, 64)
    proto = product(320, 64, 512)
    model = tw.load(saved(proto, arch, tmp_path), emulate={"multiprocessors": UNITS})
    inputs = inputs_of(proto)
    for factor in (1, 2, -1):
        a = (inputs[0] * factor).astype(np.float16)
        close(np.asarray(model(a, inputs[1])[0]), a.astype(np.float64) @ inputs[1])


def posted(memory: GlobalMemory) -> bool:
    """Whether a semaphore is not zero, of the kernel that was loaded last."""
    places = [a for _, found in memory.modules.values() for name, a in found.items() if "_semaphores_" in name]
    return bool(memory.range(places[-1], 0)[0].data.any()) if places else False


@pytest.mark.parametrize("arch", ARCHS)
def test_an_aborted_launch_leaves_no_semaphores_behind(
    arch: str, deal: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is interrupted between a post and its take; the next call gives the same bits."""
    deal(64, 64)
    proto = product(448, 64, 512)
    path, inputs = saved(proto, arch, tmp_path), inputs_of(proto)
    wanted = run(path, inputs)
    model = tw.load(path, emulate={"multiprocessors": UNITS, "options": Options(lanes=1)})
    whole = Machine.run

    def interrupted(machine: Machine) -> Iterator[None]:
        yield from whole(machine)
        if posted(machine.memory):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Machine, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model(*inputs)
    memory = model.device.memory
    assert posted(memory)
    np.testing.assert_array_equal(np.asarray(model(*inputs)[0]), wanted)
    assert not posted(memory), "what the aborted launch posted is still there"


def test_batches_and_functions(deal: Callable[[int, int], None], tmp_path: Path) -> None:
    """Tiles are those of all coordinates of the grid; what follows the sums is where they are finished."""
    deal(64, 64)
    proto = product(64, 64, 512, tail=["Relu"], batch=5)
    path, inputs = saved(proto, "sm_90a", tmp_path), inputs_of(proto)
    close(run(path, inputs), np.maximum(inputs[0].astype(np.float64) @ inputs[1], 0))


def test_windows(deal: Callable[[int, int], None], tmp_path: Path) -> None:
    """The steps of a convolution are those of its window and its channels."""
    deal(64, 64)
    kind, g, random = np.dtype(np.float16), Graph("convolution", 20), np.random.default_rng(3)
    filters = (random.standard_normal((64, 64, 3, 3)) / 24).astype(kind)
    y = g.op("Conv", g.input("x", kind, [1, 64, 20, 16]), g.weight(filters, "w"), pads=[1] * 4)
    g.output(g.op("Relu", y), "y", kind, [1, 64, 20, 16])
    proto = g.model()
    path, inputs = saved(proto, "sm_90a", tmp_path), inputs_of(proto)
    wanted = np.asarray(tw.compile(proto, threads=2)(*inputs)[0]).astype(np.float64)
    close(run(path, inputs), wanted)
