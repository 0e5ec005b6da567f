# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose tiles outgrow a core's memory: in parts, of weights that stream in, or an error."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.sim.coremesh.machine import machine
from tilewright.targets.mesh.cutting.choice import Sizes, choose
from tilewright.targets.mesh.cutting.parts import length, spans
from tilewright.targets.mesh.pipeline import PIPELINE

TARGET = "mesh:toy8x8"
F32 = np.dtype(np.float32)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def product(m: int, k: int, n: int, transposed: bool = False) -> onnx.ModelProto:
    g = GraphBuilder("product")
    x, w = g.input("x", np.float32, [m, k]), g.weight(drawn(n, k) if transposed else drawn(k, n))
    g.output(g.op("Gemm", x, w, transB=int(transposed)), "y", np.float32, [m, n])
    return g.model()


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize(("size", "side"), [(53, 8), (56, 8), (7, 1)])
def test_spans_are_a_partition_of_each_block(size: int, side: int, count: int) -> None:
    found = spans(size, side, count)
    block = -(-size // side)
    whole = [span or (0, block) for span in found]
    assert whole[0][0] == 0 and sum(whole[-1]) == block and len(found) == count
    assert all(sum(one) == other[0] for one, other in pairwise(whole))
    assert sum(length(size, side, span) for span in found) == (size if count == 1 else side * block)


@pytest.mark.parametrize(("m", "k", "n", "transposed"), [(64, 700, 1030, True), (1, 1100, 1013, False)])
def test_products_larger_than_the_cores(m: int, k: int, n: int, transposed: bool) -> None:
    """Weights pass the edge as far as they cannot stay, and no core holds more than it can."""
    model, x = product(m, k, n, transposed), drawn(m, k)
    compiled = tw.compile(model, TARGET)
    np.testing.assert_allclose(compiled(x)[0], x @ (drawn(n, k).T if transposed else drawn(k, n)), rtol=1e-3, atol=1e-3)
    details = [kernel.details for kernel in compiled.kernels]
    assert max(one["memory"] for one in details) <= 48 * 1024
    assert sum(one["name"] in ("meshgemm", "gemm_t", "meshgemv") for one in details) > 1
    streamed = sum(one["cycles"] + one["hidden"] for one in details if one["name"] == "stream")
    assert 0 < streamed <= (k + 8) * (n + 8) * 4 / 32
    assert "parts: " in compiled.explain()


@pytest.mark.parametrize("parts", [(1, 1, 3), (1, 2, 1), (2, 1, 1), (1, 3, 2)])
@pytest.mark.parametrize("weights", [True, False])
def test_parts_are_a_decision(parts: tuple[int, int, int], weights: bool, tmp_path: Path) -> None:
    """Written into the IR by hand, for weights that are cut outside, and activations that cores cut."""
    m, k, n = 19, 29, 23
    g = GraphBuilder("product")
    x, y = drawn(m, k), drawn(k, n)
    right = g.weight(y) if weights else g.op("Neg", g.op("Neg", g.input("y", np.float32, [k, n])))
    g.output(g.op("MatMul", g.op("Neg", g.input("x", np.float32, [m, k])), right), "z", np.float32, [m, n])
    planned = tw.compile(g.model(), TARGET, stop_after="plan")
    written = f"coremesh.parts = array<i64: {', '.join(map(str, parts))}>, coremesh.algorithm = "
    text = planned.replace("coremesh.algorithm = ", written)
    names = re.findall(r"ml_program.global private @(\S+?)\(", text)
    given = {names[0]: y} if weights else {}
    compiled = tw.compile(text, TARGET, weights=given, pipeline=PIPELINE.after("plan"))
    got = compiled(x) if weights else compiled(*((y, x) if "y" == compiled.inputs[0].name else (x, y)))
    np.testing.assert_allclose(got[0], -x @ y, rtol=1e-4, atol=1e-4)
    count = sum(kernel.symbol in ("meshgemm", "gemm_t", "meshgemv") for kernel in compiled.kernels)
    assert count == parts[0] * parts[1] * parts[2]


@pytest.mark.parametrize("written", ["array<i64: 1, 99, 1>", "array<i64: 0, 1, 1>", "array<i64: 2, 2>", "3 : i64"])
def test_impossible_parts(written: str) -> None:
    planned = tw.compile(product(19, 29, 23), TARGET, stop_after="plan")
    text = planned.replace("coremesh.algorithm = ", f"coremesh.parts = {written}, coremesh.algorithm = ")
    name = re.findall(r"ml_program.global private @(\S+?)\(", text)[0]
    with pytest.raises(UserError, match=r"coremesh\.parts (is|asks for)"):
        tw.compile(text, TARGET, weights={name: drawn(29, 23)}, pipeline=PIPELINE.after("plan"))


def test_as_few_parts_as_fit() -> None:
    """What fits is left whole; less room means more parts; none where nothing fits."""
    toy, sizes = machine("toy8x8", "calibrated"), Sizes(40, 300, 300, F32, F32, fixed=(False, True))
    counts = [choose(sizes, 8, toy, beside=beside).parts.count for beside in (0, 26_000, 34_000)]
    assert counts[0] == 1 and counts == sorted(counts) and counts[-1] > counts[0]
    assert choose(sizes, 8, toy, beside=45_000).parts.count == 1


def test_weights_that_have_to_stay() -> None:
    """`resident=True` makes what would stream an error; what fits is compiled as ever."""
    text = r"core of machine 'toy8x8' has 49152 bytes.* core \(y=0, x=0\) needs \d+:.*leave resident= out"
    with pytest.raises(UserError, match=text):
        tw.compile(product(24, 456, 912), TARGET, resident=True)
    kept = tw.compile(product(13, 45, 31), TARGET, resident=True)
    assert "stream" not in [kernel.symbol for kernel in kept.kernels]
    with pytest.raises(UserError, match="resident= keeps weights"):
        tw.compile(product(13, 45, 31), "cpu", resident=True)


def test_what_no_parts_make_fit() -> None:
    """Of eight rows each core has one, of which it holds an eighth: more than its memory, unless blocks stream."""
    with pytest.raises(UserError, match=r"needs \d+ bytes .* of machine 'toy8x8' has 49152"):
        tw.compile(product(8, 200_000, 8), TARGET, resident=True)
    compiled, x = tw.compile(product(8, 200_000, 8), TARGET), drawn(8, 200_000)
    np.testing.assert_allclose(compiled(x)[0], x @ drawn(200_000, 8), rtol=1e-3, atol=1e-2)
