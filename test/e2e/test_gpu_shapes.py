# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of products whose kernels ptxas once refused (spills, serialized wgmma), or that once were one slow kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph

CASES = [
    (1024, 1024, 768, "float16", "", "sm_90a"),
    (2048, 768, 768, "float16", "", "sm_90a"),
    (384, 2048, 768, "float16", "residual", "sm_90a"),
    (256, 256, 512, "float16", "softmax", "sm_80"),
    (256, 256, 512, "float16", "softmax", "sm_90a"),
    (4096, 1152, 100, "float16", "", "sm_80"),
    (2000, 1000, 50, "bfloat16", "gelu", "sm_90a"),
]


def product(m: int, n: int, k: int, dtype: str, tail: str) -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n], and what follows."""
    kind, g = np.dtype(getattr(ml_dtypes, dtype, dtype)), Graph("product", 20)
    y = g.op("MatMul", g.input("a", kind, [m, k]), g.input("b", kind, [k, n]))
    if tail == "softmax":
        y = g.op("Softmax", y, axis=-1)
    if tail in ("gelu", "residual"):
        y = g.op("Add", y, g.input("bias", kind, [n]))
    if tail == "gelu":
        y = g.op("Gelu", y)
    if tail == "residual":
        y = g.op("Add", y, g.input("r", kind, [m, n]))
    g.output(y, "y", kind, [m, n])
    return g.model()


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize(("m", "n", "k", "dtype", "tail", "arch"), CASES)
def test_kernels_assemble(m: int, n: int, k: int, dtype: str, tail: str, arch: str) -> None:
    """Spills and serialized products are errors of the compiler."""
    tw.compile(product(m, n, k, dtype, tail), target=f"cuda:{arch}", emulate=True)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_softmax_that_no_product_reads_is_a_kernel_of_its_own(arch: str, tmp_path: Path) -> None:
    tw.compile(product(1024, 512, 768, "float16", "softmax"), target=f"cuda:{arch}", emulate=True).save(tmp_path / "m")
    text = "\n".join(path.read_text() for path in (tmp_path / "m").rglob("*.ptx"))
    assert text.count(".entry product_1024x512x768(") == 1 and text.count(".entry") == 2


def test_results_wait_where_nobody_reads() -> None:
    """A bias passes through shared memory, and so do results, which were once written while others read the bias."""
    rng = np.random.default_rng(5)
    a, b, bias = (rng.standard_normal(shape).astype(np.float16) / 8 for shape in ((160, 192), (192, 40), (40,)))
    graph = Graph("product", 20)
    names = [graph.input(n, np.dtype(np.float16), list(x.shape)) for n, x in zip("abc", (a, b, bias), strict=True)]
    graph.output(graph.op("Add", graph.op("MatMul", *names[:2]), names[2]), "y", np.dtype(np.float16), [160, 40])
    want = a.astype(np.float32) @ b.astype(np.float32) + bias
    for seed in range(3):
        got = tw.compile(graph.model(), target="cuda:sm_90a", emulate={"seed": seed})(a, b, bias)[0]
        np.testing.assert_allclose(got.astype(np.float32), want, atol=4e-3)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_kernels_take_the_registers_that_they_need() -> None:
    """Attention to one block of keys: ptxas kept to 64 registers for the sake of more CTAs, and spilled."""
    graph, kind = Graph("attention", 20), np.dtype(ml_dtypes.bfloat16)
    shapes = {"q": [1, 2, 130, 128], "k": [1, 2, 64, 128], "v": [1, 2, 64, 32]}
    q, k, v = (graph.input(name, kind, shape) for name, shape in shapes.items())
    scores = graph.op("MatMul", q, graph.op("Transpose", k, perm=[0, 1, 3, 2]))
    graph.output(graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v), "y", kind, [1, 2, 130, 32])
    model = tw.compile(graph.model(), target="cuda:sm_90a", emulate=True)
    assert len(model.kernels) == 1 and not model.kernels[0].details["spilled_bytes"]
