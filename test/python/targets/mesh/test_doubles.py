# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of type f64 on a mesh: exact as the host's, and counted as software where cores have no unit for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(5)
SAID = "cores of toy8x8 have no unit for f64: each operation counts as 64 cycles of software"


def compiled(g: GraphBuilder, made: str, shape: list[int], target: str = MESH) -> Any:
    """A model of which nothing is computed outside of the grid."""
    g.output(made, "z", np.float64, shape)
    model: Any = tw.compile(g.model(), target)
    assert "interpreted outside" not in model.explain()
    return model


def product(m: int, k: int, n: int, kind: type = np.float64, target: str = MESH) -> Any:
    g = GraphBuilder("product")
    made = g.op("MatMul", g.input("x", kind, [m, k]), g.input("y", kind, [k, n]))
    g.output(made, "z", kind, [m, n])
    return tw.compile(g.model(), target)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 13, 5), (3, 53, 37), (61, 45, 29)])
def test_products(m: int, k: int, n: int) -> None:
    x, y = RNG.standard_normal((m, k)), RNG.standard_normal((k, n))
    model = product(m, k, n)
    np.testing.assert_allclose(model(x, y)[0], x @ y, rtol=1e-13, atol=1e-13)
    assert SAID in model.explain() and "interpreted outside" not in model.explain()


def test_sums_and_functions() -> None:
    x = RNG.standard_normal((13, 17))
    g = GraphBuilder("softmax")
    model = compiled(g, g.op("Softmax", g.input("x", np.float64, [13, 17]), axis=1), [13, 17])
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(model(x)[0], expected / expected.sum(1, keepdims=True), rtol=1e-13)


def test_scans() -> None:
    x = RNG.standard_normal((3, 5))
    g = GraphBuilder("scan")
    model = compiled(g, g.op("CumSum", g.input("x", np.float64, [3, 5]), g.weight(np.array(1, np.int64))), [3, 5])
    np.testing.assert_allclose(model(x)[0], np.cumsum(x, 1), rtol=1e-13)


def cycles(model: Any) -> tuple[float, float]:
    """Of what cores compute, and of all, without the edge."""
    steps = [kernel.details for kernel in model.kernels if kernel.details["height"]]
    return sum(step["compute"] for step in steps), sum(step["cycles"] for step in steps)


def test_software_is_counted(tmp_path: Path) -> None:
    """Two operations for each multiply-add of a core; none where it has a unit."""
    m = k = n = 64
    text = (Path(tw.__file__).parent / "devices" / "toy8x8.toml").read_text()
    file = tmp_path / "double.toml"
    file.write_text(text.replace("[mesh.simd]\n", "[mesh.simd]\nf64 = 1\n").replace("toy8x8", "double"))
    soft, hard = product(m, k, n), product(m, k, n, target=f"mesh:{file}")
    assert "no unit for f64" not in hard.explain()
    assert cycles(soft)[0] - cycles(hard)[0] == pytest.approx(64 * 2 * m * k * n / 64, rel=0.02)


def test_sums_in_lines_are_software() -> None:
    """No message outruns the core that adds it to what it has: of eight cores each adds an eighth, seven times."""
    spent = []
    for kind in (np.int64, np.float64):
        g = GraphBuilder("sum")
        g.output(g.op("ReduceSum", g.input("x", kind, [8, 512]), g.const([0]), keepdims=0), "z", kind, [512])
        model: Any = tw.compile(g.model(), MESH)
        spent.append(cycles(model)[1])
    assert spent[1] > spent[0] + 7 * 8 * 64
