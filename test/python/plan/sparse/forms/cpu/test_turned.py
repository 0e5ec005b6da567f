# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Columns stay across lanes between two sparse products with elementwise operations between them."""

from __future__ import annotations

import numpy as np
import pytest
from listed_products import windows

import tilewright as tw
from cpus import has_avx512

#: Sizes of x, of what is between, and of the result: blocks of the depth are whole.
DEPTH, WIDE, ROWS = 96, 384, 80


def matrix(*sizes: int, encoding: str = "") -> str:
    """A type."""
    return f"tensor<{'x'.join(map(str, sizes))}xf32{encoding}>"


def feed_forward(columns: int, between: str, results: str = "%y") -> str:
    """`relu(x @ w0 + bias) @ w1`, with more between where it is asked for; `results` are returned."""
    x, h, y = matrix(columns, DEPTH), matrix(columns, WIDE), matrix(columns, ROWS)
    w0, w1, bias = matrix(DEPTH, WIDE), matrix(WIDE, ROWS), matrix(WIDE)
    code = ", #sparse_tile.tesa<nm<2 : 4, axis = 0>>"
    e0, e1 = matrix(DEPTH, WIDE, encoding=code), matrix(WIDE, ROWS, encoding=code)
    kinds = ", ".join({"%y": y, "%h": h, "%p": h}[name] for name in results.split(", "))
    named = '{kernel = "rows_in_lanes"}'
    loops = 'iterator_types = ["parallel", "parallel"]'
    return f"""
    #same = affine_map<(m, n) -> (m, n)>
    #column = affine_map<(m, n) -> (n)>
    #row = affine_map<(m, n) -> (m)>
    ml_program.global private @w0(#ml_program.extern<{w0}>) : {w0}
    ml_program.global private @w1(#ml_program.extern<{w1}>) : {w1}
    func.func @main(%x: {x} {{tile.name = "x"}}, %bias: {bias} {{tile.name = "bias"}},
        %scale: {matrix(columns)} {{tile.name = "scale"}}, %more: {h} {{tile.name = "more"}}) -> ({kinds}) {{
      %zero = arith.constant 0.0 : f32
      %w0 = ml_program.global_load_const @w0 : {w0}
      %w1 = ml_program.global_load_const @w1 : {w1}
      %p0 = sparse_tile.pack %w0 : {w0} to {e0}
      %p1 = sparse_tile.pack %w1 : {w1} to {e1}
      %eh = tensor.empty() : {h}
      %ey = tensor.empty() : {y}
      %ch = linalg.fill ins(%zero : f32) outs(%eh : {h}) -> {h}
      %cy = linalg.fill ins(%zero : f32) outs(%ey : {y}) -> {y}
      %p = sparse_tile.matmul %x, %p0, %ch {named} : {x}, {e0}, {h}
      %b = linalg.generic {{indexing_maps = [#same, #column, #row, #same], {loops}}}
          ins(%p, %bias, %scale : {h}, {bias}, {matrix(columns)}) outs(%eh : {h}) {{
      ^bb0(%v: f32, %w: f32, %s: f32, %o: f32):
        %t = arith.addf %v, %w : f32
        %u = arith.mulf %t, %s : f32
        linalg.yield %u : f32
      }} -> {h}
      %h = linalg.generic {{indexing_maps = [#same, #same, #same], {loops}}}
          ins(%b, {between} : {h}, {h}) outs(%eh : {h}) {{
      ^bb0(%v: f32, %w: f32, %o: f32):
        %t = arith.maximumf %v, %zero : f32
        %u = arith.subf %t, %w : f32
        linalg.yield %u : f32
      }} -> {h}
      %y = sparse_tile.matmul %h, %p1, %cy {named} : {h}, {e1}, {y}
      return {results} : {kinds}
    }}"""


@pytest.mark.parametrize(
    ("columns", "between", "results", "turned"),
    [
        (32, "%b", "%y", True),
        (128, "%p", "%y", True),
        (37, "%b", "%y", False),
        (300, "%b", "%y", False),
        (32, "%more", "%y", False),
        (32, "%b", "%y, %h", False),
        (32, "%b", "%y, %p", False),
    ],
)
def test_feed_forward(columns: int, between: str, results: str, turned: bool) -> None:
    """Ragged columns, more than a task has, and what others read or bring in another order stay as they are."""
    rng = np.random.default_rng(columns)
    w0 = np.ascontiguousarray(windows(WIDE, DEPTH, 2, 4, rng).T).astype(np.float32)
    w1 = np.ascontiguousarray(windows(ROWS, WIDE, 2, 4, rng).T).astype(np.float32)
    shapes = ((columns, DEPTH), (WIDE,), (columns,), (columns, WIDE))
    x, bias, scale, more = (rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes)
    model = tw.compile(feed_forward(columns, between, results), target="cpu", weights={"w0": w0, "w1": w1})
    p = x @ w0
    b = (p + bias) * scale[:, None]
    h = np.maximum(b, 0) - {"%b": b, "%p": p, "%more": more}[between]
    want = {"%y": h @ w1, "%h": h, "%p": p}
    for name, found in zip(results.split(", "), model(x, bias, scale, more), strict=True):
        np.testing.assert_array_equal(found, want[name])
    shapes_of_maps = [kernel.name for kernel in model.kernels if kernel.name.startswith("map")]
    if has_avx512():
        assert any(name.endswith(f"_{WIDE}x{columns}") for name in shapes_of_maps) == turned


@pytest.mark.parametrize("how", ["as sums", "transposed"])
def test_square_matrices(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read in the other order, too, keeps its own, though turned matrices have the same shape."""
    for name in ("WIDE", "ROWS"):
        monkeypatch.setitem(globals(), name, 64)
    text = feed_forward(64, "%b", "%y")
    if how == "as sums":
        text = text.replace("%h, %p1, %cy", "%h, %p1, %h")
    else:
        text = text.replace("#row =", "#swap = affine_map<(m, n) -> (n, m)>\n    #row =")
        text = text.replace("[#same, #same, #same]", "[#same, #swap, #same]")
    rng = np.random.default_rng(0)
    w0 = np.ascontiguousarray(windows(64, DEPTH, 2, 4, rng).T).astype(np.float32)
    w1 = np.ascontiguousarray(windows(64, 64, 2, 4, rng).T).astype(np.float32)
    shapes = ((64, DEPTH), (64,), (64,), (64, 64))
    x, bias, scale, more = (rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes)
    (found,) = tw.compile(text, target="cpu", weights={"w0": w0, "w1": w1})(x, bias, scale, more)
    b = (x @ w0 + bias) * scale[:, None]
    h = np.maximum(b, 0) - (b if how == "as sums" else b.T)
    np.testing.assert_array_equal(found, h @ w1 + (h if how == "as sums" else 0))
