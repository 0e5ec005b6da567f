# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that a mesh's cores hold without zeros, or as codes: what the product is, and what a core holds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.targets.mesh.pipeline import PIPELINE
from tilewright.targets.mesh.weights.sparse import condensed, packed

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(21)

PRUNED = """
#w = #sparse_tile.tesa<{pattern}>
ml_program.global private @w(#ml_program.extern : tensor<{w}xf32>) : tensor<{w}xf32>
func.func @main(%x: tensor<{x}xf32>, %c: tensor<{y}xf32>) -> tensor<{y}xf32> {{
  %d = ml_program.global_load_const @w : tensor<{w}xf32>
  %p = sparse_tile.pack %d : tensor<{w}xf32> to tensor<{w}xf32, #w>
  %y = sparse_tile.matmul {operands} : {types}, tensor<{y}xf32>
  return %y : tensor<{y}xf32>
}}
"""
CODED = """
#q = #sparse_tile.tesa<dense : format<{code}, scales = f32, group = [?, 1]>>
ml_program.global private @w(#ml_program.extern : tensor<{k}x{n}xi8>) : tensor<{k}x{n}xi8>
ml_program.global private @s(#ml_program.extern : tensor<1x{n}xf32>) : tensor<1x{n}xf32>
func.func @main(%x: tensor<{m}x{k}xf32>, %c: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %w = ml_program.global_load_const @w : tensor<{k}x{n}xi8>
  %s = ml_program.global_load_const @s : tensor<1x{n}xf32>
  %q = sparse_tile.assemble %w, %s : tensor<{k}x{n}xi8>, tensor<1x{n}xf32> to tensor<{k}x{n}xf32, #q>
  %u = sparse_tile.dequantize %q : tensor<{k}x{n}xf32, #q> to tensor<{k}x{n}xf32>
  %y = linalg.matmul ins(%x, %u : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%c : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %y : tensor<{m}x{n}xf32>
}}
"""


DENSE = """
func.func @main(%x: tensor<9x13xf32>, %w: tensor<13x8xf32>, %c: tensor<9x8xf32>) -> tensor<9x8xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<9x13xf32>, tensor<13x8xf32>)
      outs(%c : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %y : tensor<9x8xf32>
}
"""


def numbers(*shape: int) -> np.ndarray:
    """Small integers: their sums are exact, whatever their order."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def sizes(*arrays: np.ndarray) -> list[str]:
    return ["x".join(map(str, array.shape)) for array in arrays]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("pattern", ["nm<2 : 4, axis = {}>", "block<[4, 4]>"])
def test_encoded_weights(pattern: str, left: bool) -> None:
    """On either side; without zeros where that is faster, and the same numbers anyway."""
    m, k, n = 20, 53, 37
    w = RNG.integers(1, 5, (n, k) if left else (k, n)).astype(np.float32)
    if pattern.startswith("nm"):
        place = np.arange(k) % 4
        keep = (place == 1) | (place == 2)
        w *= keep if left else keep[:, None]
    else:
        keep = RNG.random((-(-w.shape[0] // 4), -(-w.shape[1] // 4))) < 0.3
        w *= keep.repeat(4, 0).repeat(4, 1)[: w.shape[0], : w.shape[1]]
    x = numbers(*((k, m) if left else (m, k)))
    expected = w @ x if left else x @ w
    c = numbers(*expected.shape)
    shapes = dict(zip("wxy", sizes(w, x, c), strict=True))
    kinds = [f"tensor<{shapes['w']}xf32, #w>", f"tensor<{shapes['x']}xf32>"]
    text = PRUNED.format(
        pattern=pattern.format(int(left)),
        operands="%p, %x, %c" if left else "%x, %p, %c",
        types=", ".join(kinds if left else kinds[::-1]),
        **shapes,
    )
    model: Any = tw.compile(text, MESH, weights={"w": w})
    np.testing.assert_array_equal(model(x, c)[0], expected + c)
    assert "of its numbers that are not 0" in model.explain()


def test_a_pruned_weight_of_a_model() -> None:
    """That nobody encoded; of most of the columns a core holds a few numbers and where they stand."""
    g, w = GraphBuilder("pruned"), numbers(61, 40) * (RNG.random((61, 40)) < 0.2)
    g.output(g.op("MatMul", g.input("x", np.float32, [5, 61]), g.weight(w)), "y", np.float32, [5, 40])
    model: Any = tw.compile(g.model(), MESH)
    x = numbers(5, 61)
    np.testing.assert_array_equal(model(x)[0], x @ w)
    most = len(condensed(w, 8)[0])
    assert most < 61 and f"{most}x40xf32, {most}x40xi8" in model.explain()


def test_rows_of_zeros_are_left_out() -> None:
    """Which ones is a table that a pass makes, large enough to stand beside the weights."""
    w = numbers(512, 24)
    w[1::2] = 0
    g = GraphBuilder("rows")
    g.output(g.op("MatMul", g.input("x", np.float32, [5, 512]), g.weight(w)), "y", np.float32, [5, 24])
    x = numbers(5, 512)
    model: Any = tw.compile(g.model(), MESH)
    np.testing.assert_array_equal(model(x)[0], x @ w)
    assert "256x24xf32" in model.explain()


def of_groups(k: int, n: int, kept: int, size: int = 4) -> np.ndarray:
    """A weight of which each column has `kept` numbers of `size` in a row, each column others."""
    order = RNG.random((-(-k // size), size, n)).argsort(1).argsort(1)
    return RNG.integers(1, 5, (k, n)).astype(np.float32) * (order < kept).reshape(-1, n)[:k]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_many_rows_go_round(batch: tuple[int, ...], left: bool) -> None:
    """Of many rows, all of which no core would hold, what stands for the weight goes round; its time is foreseen."""
    m, k, n = 203, 250, 246
    w = of_groups(k, n, 1)
    x = numbers(*batch, *((k, m) if left else (m, k)))
    expected = w.T @ x if left else x @ w
    g = GraphBuilder("round")
    weight, given = g.weight(np.ascontiguousarray(w.T) if left else w), g.input("x", np.float32, list(x.shape))
    made = g.op("MatMul", *((weight, given) if left else (given, weight)))
    g.output(made, "y", np.float32, list(expected.shape))
    model: Any = tw.compile(g.model(), MESH)
    np.testing.assert_array_equal(model(x)[0], expected)
    text = model.explain()
    found = re.search(r"condensed_meshgemm: ([\d,]+) cycles simulated", text)
    assert found is not None and re.search(rf"^block_gemm +8x8 +1 +{found[1]} ", text, re.MULTILINE), text
    assert f"{len(condensed(w, 8)[0])}x{n}xi8" in text


def test_all_of_a_batch_is_in_the_cores() -> None:
    """A whole line of cores cannot hold all matrices, one core can hold its blocks of them: it goes round."""
    batch, m, k, n = 20, 64, 256, 128
    w = numbers(k, n) * (RNG.random((k, n)) < 0.1)
    x = numbers(batch, k, m)
    g = GraphBuilder("batch")
    made = g.op("MatMul", g.weight(np.ascontiguousarray(w.T)), g.input("x", np.float32, list(x.shape)))
    g.output(made, "y", np.float32, [batch, n, m])
    model: Any = tw.compile(g.model(), MESH)
    np.testing.assert_array_equal(model(x)[0], w.T @ x)
    assert "condensed_meshgemm" in model.explain()


@pytest.mark.parametrize("code", ["i8", "i4"])
def test_codes_go_round(code: str) -> None:
    m, k, n = 190, 53, 37
    w = RNG.integers(-8 if code == "i4" else -100, 8, (k, n)).astype(np.int8)
    s = np.exp2(RNG.integers(-3, 3, (1, n))).astype(np.float32)
    planned = edited(CODED.format(code=code, m=m, k=k, n=n), "condensed_meshgemm", {"w": w, "s": s})
    x, c = numbers(m, k), numbers(m, n)
    np.testing.assert_array_equal(planned(x, c)[0], x @ (w * s) + c)
    assert "block_gemm" in planned.explain()


def edited(text: str, algorithm: str, weights: dict[str, np.ndarray]) -> Any:
    """A model whose product takes an algorithm, whatever was planned."""
    planned = tw.compile(text, MESH, weights=weights, stop_after="plan")
    text = re.sub(
        r'coremesh.algorithm = "\w+", coremesh.loops = \[.*?\]',
        f'coremesh.algorithm = "{algorithm}", coremesh.loops = ["y", "x", ""]',
        planned,
    )
    assert algorithm in text
    return tw.compile(text, MESH, weights=weights, pipeline=PIPELINE.after("plan"))


def test_nothing_goes_round_for_a_weight_without_zeros() -> None:
    with pytest.raises(UserError, match="is 'condensed_meshgemm' where no weight has zeros or is of codes; use gemv"):
        edited(DENSE, "condensed_meshgemm", {})


def test_a_weight_with_few_zeros_is_dense() -> None:
    g, w = GraphBuilder("full"), np.abs(numbers(40, 24)) + 1
    w[::9] = 0
    g.output(g.op("MatMul", g.input("x", np.float32, [3, 40]), g.weight(w)), "y", np.float32, [3, 24])
    model: Any = tw.compile(g.model(), MESH)
    x = numbers(3, 40)
    np.testing.assert_array_equal(model(x)[0], x @ w)
    assert "the weight is held dense: 88% of the weight are not 0" in model.explain()


@pytest.mark.parametrize(("code", "rows"), [("i8", 53), ("i4", 32)])
def test_codes(code: str, rows: int) -> None:
    """Cores hold bytes, or two codes in each, and decode them when they multiply."""
    m, k, n = 20, 53, 37
    w = RNG.integers(-8 if code == "i4" else -100, 8, (k, n)).astype(np.int8)
    s = np.exp2(RNG.integers(-3, 3, (1, n))).astype(np.float32)
    model: Any = tw.compile(CODED.format(code=code, m=m, k=k, n=n), MESH, weights={"w": w, "s": s})
    x, c = numbers(m, k), numbers(m, n)
    np.testing.assert_array_equal(model(x, c)[0], x @ (w * s) + c)
    assert f"{m}x{k}xf32, {rows}x{n}xi8, 1x{n}xf32" in model.explain()


@pytest.mark.parametrize("side", [1, 3, 8])
def test_condensed(side: int) -> None:
    """Unpacked again by plain loops."""
    w = numbers(13, 5) * (RNG.random((13, 5)) < 0.4)
    held_numbers, places = condensed(w, side)
    most, rows = len(held_numbers) // side, -(-13 // side)
    found = np.zeros((side * rows, 5))
    for at, column in np.ndindex(held_numbers.shape):
        found[at // most * rows + places[at, column], column] += held_numbers[at, column]
    np.testing.assert_array_equal(found[:13], w)
    assert places.dtype == np.int8


@pytest.mark.parametrize(("size", "side", "dim"), [(13, 3, 0), (8, 4, 1), (1, 8, 0)])
def test_packed(size: int, side: int, dim: int) -> None:
    codes = RNG.integers(-8, 8, (size, 5) if dim == 0 else (5, size)).astype(np.int8)
    made = np.moveaxis(packed(codes, dim, side), dim, 0).reshape(side, -1, 5)
    low, high = (made << 4).astype(np.int8) >> 4, made >> 4
    rows = -(-size // side)
    found = np.concatenate([low, high], 1)[:, :rows].reshape(side * rows, 5)[:size]
    np.testing.assert_array_equal(np.moveaxis(found, 0, dim), codes)
