# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacked recurrences on lists whose products have pruned weights and weights of bytes: as NumPy has them, and by the
kernels that such products of any model get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft
from cpus import skip_where_it_cannot_run
from tilewright.passes.pipeline import Pipeline
from tilewright.pipelines import cpu, cuda

F32 = np.float32
PRUNING = "tile-plan-sparsity"


class Sizes(NamedTuple):
    """Of a network."""

    layers: int
    hidden: int
    steps: int
    batch: int


class Weights:
    """Of all layers: `w` is pruned N:M along what is summed, `u` bytes with a scale for each column, or pruned, too."""

    def __init__(self, sizes: Sizes, kept: tuple[int, int] = (2, 4), dtype: Any = F32, codes: bool = True) -> None:
        """Random ones."""
        rng, (layers, hidden, *_) = np.random.default_rng(11), sizes
        n, m = kept

        def pruned() -> np.ndarray:
            live = np.zeros((layers, -(-hidden // m), m, hidden), bool)
            live[:, :, :n] = True
            live = rng.permuted(live, axis=2).reshape(layers, -1, hidden)[:, :hidden]
            return (live * rng.standard_normal((layers, hidden, hidden)) / np.sqrt(hidden * n / m)).astype(dtype)

        self.w, self.codes = pruned(), codes
        self.u = rng.integers(-127, 128, (layers, hidden, hidden)).astype(np.int8) if codes else pruned()
        self.scale = (rng.uniform(0.5, 1.0, (layers, 1, hidden)) / (70 * np.sqrt(hidden))).astype(F32)
        self.b = (rng.standard_normal((layers, 1, hidden)) * 0.1).astype(dtype)


def recurrent(h: Any, u: Any, scale: Any, p: Weights, bytes_in: bool) -> Any:
    """The product of a state; with `bytes_in` the state becomes bytes, too."""
    if bytes_in:
        h = ft.dequantize(ft.quantize(h, 1 / 127), 1 / 127)
    return ft.cast(ft.cast(h, F32) @ ft.dequantize(u, scale), p.w.dtype) if p.codes else h @ u


def network(sizes: Sizes, p: Weights, lists: bool, bytes_in: bool = False) -> ft.Function:
    """xss[time][batch]; a fold over lists of weights, or a layer behind the other."""
    leaf = (1, sizes.hidden)
    kind = ft.Array[2, leaf, str(p.w.dtype).replace("float", "f")]

    def layer(xss: Any, w: Any, u: Any, scale: Any, b: Any) -> Any:
        def cell(h, x):
            return ft.tanh(x @ w + recurrent(h, u, scale, p, bytes_in) + b)

        zeros = ft.map(lambda x: ft.zeros(*leaf, dtype=p.w.dtype), xss[0])
        return ft.scanl(lambda hs, xs: ft.map(cell, hs, xs), zeros, xss)

    @ft.function
    def rnn(xss: kind) -> kind:
        if lists:
            return ft.foldl(layer, xss, p.w, p.u, p.scale, p.b)
        for parameters in zip(p.w, p.u, p.scale, p.b, strict=True):
            xss = layer(xss, *parameters)
        return xss

    return rnn


def expected(x: np.ndarray, p: Weights, bytes_in: bool) -> np.ndarray:
    """By NumPy, in f64."""
    x = x.astype(np.float64)
    for w, u, scale, b in zip(p.w, p.u, p.scale, p.b, strict=True):
        h, hs = np.zeros(x.shape[1:]), []
        for xs in x:
            given = np.clip(np.rint(h * 127), -128, 127) / 127 if bytes_in else h
            wide = u.astype(np.float64) * scale if p.codes else u.astype(np.float64)
            h = np.tanh(xs @ w.astype(np.float64) + given @ wide + b)
            hs.append(h)
        x = np.stack(hs)
    return x


def always(target: str) -> Pipeline:
    """The target's passes; zeros are left out wherever a kernel can, whatever the law says."""
    own = cuda.PIPELINE if target.startswith("cuda") else cpu.PIPELINE
    phases = []
    for phase in own.phases:
        specs = [replace(s, options={"margin": -1e9}) if s.name == PRUNING else s for s in phase.passes]
        phases.append(replace(phase, passes=specs))
    return Pipeline(own.name, phases)


def compiled(program: ft.Function, sizes: Sizes, target: str, **options: Any) -> Any:
    """For lists of these sizes."""
    emulate = {"emulate": True} if target.startswith("cuda") else {}
    shapes = {"xss": (sizes.steps, sizes.batch)}
    return tw.compile(program, target, shapes=shapes, **emulate, **options)


def inputs(sizes: Sizes, dtype: Any = F32) -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((sizes.steps, sizes.batch, 1, sizes.hidden)).astype(dtype)


def check(model: Any, sizes: Sizes, p: Weights, bytes_in: bool = False) -> None:
    """A code may be the neighbour where sums are rounded otherwise: it is a part in 127 of a state."""
    skip_where_it_cannot_run(str(model.target))
    x = inputs(sizes, p.w.dtype)
    rough = bytes_in or p.w.dtype != F32
    (found,) = model(x)
    tolerance = {"rtol": 2e-2, "atol": 1e-2} if rough else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(np.asarray(found, np.float64), expected(x, p, bytes_in), **tolerance)


def plan_of(model: Any) -> str:
    return next(phase["ir"] for phase in model.report_data()["phases"] if phase["name"] == "plan")


CPUS = ("cpu:x86-64-v4", "cpu:x86-64-v3")
GPUS = ("cuda:sm_80", "cuda:sm_90a")


@pytest.mark.parametrize("lists", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", [*CPUS, *GPUS, "reference"])
def test_pruned_and_bytes(target: str, lists: bool) -> None:
    """Ragged sizes; what the laws choose."""
    sizes = Sizes(3, 42, 4, 3)
    p = Weights(sizes)
    check(compiled(network(sizes, p, lists), sizes, target), sizes, p)


@pytest.mark.parametrize("target", [*CPUS, *GPUS])
def test_sparse_kernels_in_loops(target: str) -> None:
    """Both products of a step, the one that is pulled in front of the loop and the one that is in it."""
    sizes = Sizes(2, 44, 3, 2)
    p = Weights(sizes, (1, 4), codes=False)
    model = compiled(network(sizes, p, lists=False), sizes, target, pipeline=always(target))
    check(model, sizes, p)
    found = model.report_data()["sparsity"]
    # Layers that run as one loop have a step of one of them in front of it, and one behind it.
    assert len(found) == (4 if target in CPUS else 6) and {entry["rows"] for entry in found} == {2, 6}
    assert all(entry["kernels"] and "dense" not in entry["kernels"] for entry in found), found


@pytest.mark.parametrize(("hidden", "rows", "kept"), [(256, 32, (1, 8)), (256, 1, (1, 8))])
def test_the_law_takes_them(hidden: int, rows: int, kept: tuple[int, int]) -> None:
    """Lists of weights, unrolled; without a word by the user."""
    sizes = Sizes(2, hidden, 6, rows)
    p = Weights(sizes, kept, codes=False)
    model = compiled(network(sizes, p, lists=True), sizes, "cpu:icelake-server")
    check(model, sizes, p)
    taken = [entry for entry in model.report_data()["sparsity"] if entry["kernels"]]
    assert taken and all(entry["ns"] < entry["dense_ns"] for entry in taken)


@pytest.mark.parametrize("lists", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", ["cpu:icelake-server", *CPUS, *GPUS])
def test_products_of_bytes(target: str, lists: bool) -> None:
    """States that become bytes are multiplied as such, in the loop, where there are instructions for it."""
    sizes = Sizes(2, 64, 4, 2)
    p = Weights(sizes)
    model = compiled(network(sizes, p, lists, bytes_in=True), sizes, target)
    check(model, sizes, p, bytes_in=True)
    in_loop = plan_of(model).partition("func.func @main")[2].partition("scf.for")[2]
    assert ("arith.extsi" in in_loop) == (target not in CPUS)


def test_weights_stay_small() -> None:
    """Weights that come from memory for each row are read as bytes in the loop."""
    sizes = Sizes(2, 768, 2, 1)
    p = Weights(sizes)
    model = compiled(network(sizes, p, lists=True), sizes, "cpu:icelake-server")
    check(model, sizes, p)
    loop = plan_of(model).partition("scf.for")[2]
    assert "x48xi8>" in loop or "x64xi8>" in loop


@pytest.mark.parametrize("target", GPUS)
def test_halves_on_tensor_cores(target: str) -> None:
    """2:4 in f16: sparse products of matrix units."""
    sizes = Sizes(2, 64, 2, 16)
    p = Weights(sizes, dtype=np.float16, codes=False)
    model = compiled(network(sizes, p, lists=False), sizes, target, pipeline=always(target))
    check(model, sizes, p)
    assert "mma.sp" in "".join(model.ptx().values())
