# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoding and long sums on GPUs: products of one or few rows, reductions of few rows, for both orders of weights."""

from __future__ import annotations

import re
import shutil

import ml_dtypes
import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph

ARCHS = ("sm_80", "sm_90a")
SEEDS = (1, 2, 3)
KINDS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
#: Relative to the largest result: results are rounded to the type, sums are wide.
ERRORS = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}
RNG = np.random.default_rng(17)


def decode(m: int, n: int, k: int, kind: type, transposed: bool, bias: bool = False) -> onnx.ModelProto:
    """`a` [m, k] times `w` [k, n] or, transposed, [n, k]."""
    dtype, g = np.dtype(kind), Graph("decode", 20)
    a, w = g.input("a", dtype, [m, k]), g.input("w", dtype, [n, k] if transposed else [k, n])
    y = g.op("MatMul", a, g.op("Transpose", w, perm=[1, 0]) if transposed else w)
    if bias:
        y = g.op("Relu", g.op("Add", y, g.input("b", dtype, [n])))
    g.output(y, "y", dtype, [m, n])
    return g.model()


def plan(model: onnx.ModelProto, arch: str) -> str:
    return tw.compile(model, f"cuda:{arch}", stop_after="plan")


def numbers_of(text: str) -> list[dict[str, str]]:
    """The predictions of a plan, in order."""
    found = re.findall(r"tile\.prediction = \{([^}]*)\}", text)
    return [dict(re.findall(r'(\w+) = "?([\w ,]+?)"?(?: : i64)?(?:,|$)', fields)) for fields in found]


def check(model: onnx.ModelProto, arch: str, inputs: list[np.ndarray], expected: np.ndarray, error: float) -> None:
    """Run the PTX in several orders of what may happen in any order."""
    for seed in SEEDS:
        (got,) = tw.compile(model, f"cuda:{arch}", emulate={"seed": seed})(*inputs)
        scale = np.abs(expected).max()
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=error * scale)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 96, 320), (1, 33, 129), (3, 72, 256), (8, 40, 512)])
def test_products_of_few_rows(m: int, n: int, k: int, transposed: bool, kind: str, arch: str) -> None:
    dtype = KINDS[kind]
    a, w = RNG.standard_normal((m, k)).astype(dtype), RNG.standard_normal((k, n)).astype(dtype)
    expected = a.astype(np.float64) @ w.astype(np.float64)
    given = np.ascontiguousarray(w.T) if transposed else w
    check(decode(m, n, k, dtype, transposed), arch, [a, given], expected, ERRORS[kind])


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 64, 256), (1, 17, 100), (4, 48, 128)])
def test_bytes(m: int, n: int, k: int, arch: str) -> None:
    """MatMulInteger of one row: 16 elements to a load."""
    g = Graph("bytes", 20)
    y = g.op("MatMulInteger", g.input("a", np.dtype(np.int8), [m, k]), g.input("w", np.dtype(np.int8), [k, n]))
    g.output(y, "y", np.dtype(np.int32), [m, n])
    a, w = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    check(g.model(), arch, [a, w], a.astype(np.int64) @ w.astype(np.int64), 0.0)


@pytest.mark.parametrize("arch", ARCHS)
def test_what_follows_is_in_the_same_kernel(arch: str) -> None:
    a, w, b = (RNG.standard_normal(shape).astype(np.float16) for shape in ((1, 256), (256, 80), (80,)))
    expected = np.maximum(a.astype(np.float64) @ w.astype(np.float64) + b, 0)
    check(decode(1, 80, 256, np.float16, False, bias=True), arch, [a, w, b], expected, 2e-3)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("shape", [(1, 40000), (3, 30000), (2, 20011), (1, 100003), (3, 150011)])
def test_sums_of_few_long_rows(shape: tuple[int, int], arch: str) -> None:
    """Cut into parts where that is predicted to be faster; of a length without a divisor a rest is left."""
    g = Graph("mean", 17)
    y = g.op("ReduceMean", g.input("x", np.dtype(np.float32), list(shape)), axes=[1])
    g.output(y, "y", np.dtype(np.float32), [shape[0], 1])
    x = RNG.standard_normal(shape).astype(np.float32) + 1
    check(g.model(), arch, [x], x.astype(np.float64).mean(1, keepdims=True), 1e-5)
    cut = "tile.apart" in tw.compile(g.model(), f"cuda:{arch}", stop_after="plan")
    assert cut or shape[1] < 50000


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), [(3072, 768), (4096, 4096), (11008, 4096), (32000, 4096)])
def test_decoding_is_bound_by_memory(n: int, k: int, kind: str, transposed: bool) -> None:
    """By prediction: large weights come at three quarters of what memory gives and more, the launch included."""
    (found,) = numbers_of(plan(decode(1, n, k, KINDS[kind], transposed), "sm_90a"))
    assert int(found["tasks"]) >= 90 and int(found["under_way"]) > 8192
    fixed = 2500 + 800 + 800  # a launch, a task, the latency of what comes first and last
    assert int(found["roofline_ns"]) >= 0.6 * (int(found["ns"]) - fixed), found
    assert int(found["latency_ns"]) <= 1.1 * int(found["memory_ns"]) or n * k < 4e6


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_full_sizes_assemble(kind: str, transposed: bool, arch: str) -> None:
    """Without spills, and with loads of 16 bytes."""
    model = tw.compile(decode(1, 4096, 4096, KINDS[kind], transposed), f"cuda:{arch}", emulate=True)
    (kernel,) = model._manifest.kernels
    assert kernel.details["spilled_bytes"] == 0
    (text,) = model.ptx().values()
    assert len(re.findall(r"ld\.global\.v4\.(?:b32|u32|f32)|ld\.global\.v2\.(?:b64|u64)", text)) >= 4
