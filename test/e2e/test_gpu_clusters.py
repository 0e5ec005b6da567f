# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose plan has clusters: compiled, launched as clusters, and right on the emulator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph


def product(m: int, n: int, k: int, tail: str = "") -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n] in f16, and what follows."""
    kind, g = np.dtype(np.float16), Graph("product", 20)
    y = g.op("MatMul", g.input("a", kind, [m, k]), g.input("b", kind, [k, n]))
    if tail == "residual":
        y = g.op("Add", y, g.input("r", kind, [m, n]))
    g.output(y, "y", kind, [m, n])
    return g.model()


def launches(folder: Path) -> tuple[list[int], str]:
    """The cluster of a model's one kernel, and its PTX."""
    program = json.loads(next(folder.rglob("program.json")).read_text())
    (kernel,) = program["kernels"].values()
    return kernel["cluster"] or [1, 1, 1], next(folder.rglob("*.ptx")).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "n", "k", "tail"), [(512, 512, 512, ""), (500, 504, 520, ""), (512, 256, 1024, "residual")]
)
def test_products_in_clusters(m: int, n: int, k: int, tail: str, tmp_path: Path) -> None:
    model = tw.compile(product(m, n, k, tail), target="cuda:sm_90a", emulate=True)
    model.save(tmp_path / "m")
    cluster, ptx = launches(tmp_path / "m")
    assert cluster == [2, 1, 1] and ".multicast::cluster" in ptx and ".reqnctapercluster 2, 1, 1" in ptx
    random = np.random.default_rng(m + k)
    inputs = [random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n))]
    if tail:
        inputs.append(random.standard_normal((m, n)).astype(np.float16))
    wanted = inputs[0].astype(np.float64) @ inputs[1]
    wanted = wanted + inputs[2] if tail else wanted
    np.testing.assert_allclose(model(*inputs)[0].astype(np.float64), wanted, rtol=0, atol=2e-3 * np.abs(wanted).max())


def test_an_odd_number_of_tiles_has_no_cluster(tmp_path: Path) -> None:
    tw.compile(product(64, 16, 512), target="cuda:sm_90a", emulate=True).save(tmp_path / "m")
    cluster, ptx = launches(tmp_path / "m")
    assert cluster == [1, 1, 1] and "cluster.arrive" not in ptx
