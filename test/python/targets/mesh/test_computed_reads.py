# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagonals, reversed filters, and sums of what bodies pick, on the cores of a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(2)
READ = """
func.func @main(%x: tensor<13x13x5xf32>) -> tensor<13x5xf32> {{
  %e = tensor.empty() : tensor<13x5xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> {read}>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<13x13x5xf32>) outs(%e : tensor<13x5xf32>) {{
    ^bb0(%a: f32, %b: f32):
      %m = arith.mulf %a, %a : f32
      linalg.yield %m : f32
  }} -> tensor<13x5xf32>
  return %r : tensor<13x5xf32>
}}"""


def on_cores(model: Any) -> Any:
    assert "interpreted outside" not in model.explain()
    return model


@pytest.mark.parametrize(
    ("read", "pick"),
    [
        ("(i, i, j)", lambda x, i, j: x[i, i, j]),
        ("(-i + 12, 3, j)", lambda x, i, j: x[12 - i, 3, j]),
        ("(i, j * 2 + 1, -j + 4)", lambda x, i, j: x[i, 2 * j + 1, 4 - j]),
    ],
)
def test_places(read: str, pick: Any) -> None:
    """Sums of loops with factors, the same loop twice."""
    x = RNG.integers(-9, 9, (13, 13, 5)).astype(np.float32)
    model = on_cores(tw.compile(READ.format(read=read), MESH))
    expected = np.array([[pick(x, i, j) ** 2 for j in range(5)] for i in range(13)], np.float32)
    np.testing.assert_array_equal(model(x)[0], expected)


@pytest.mark.parametrize("stride", [1, 2])
def test_filters_that_a_run_brings(stride: int) -> None:
    """A transposed convolution turns them round."""
    g = GraphBuilder("up")
    x, w = g.input("x", np.float32, [1, 3, 5, 4]), g.input("a", np.float32, [3, 2, 3, 3])
    size = [stride * 4 + 3, stride * 3 + 3]
    g.output(g.op("ConvTranspose", x, w, strides=[stride, stride]), "y", np.float32, [1, 2, *size])
    given = [RNG.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 5, 4), (3, 2, 3, 3))]
    model, reference = on_cores(tw.compile(g.model(), MESH)), tw.compile(g.model(), "reference")
    np.testing.assert_allclose(model(*given)[0], reference(*given)[0], rtol=1e-5, atol=1e-5)


def regions(count: int) -> tuple[Any, list[np.ndarray]]:
    """Averages of parts of an image, which only a run knows."""
    g = GraphBuilder("regions")
    x, boxes = g.input("x", np.float32, [1, 2, 10, 10]), g.input("r", np.float32, [count, 4])
    made = g.op(
        "RoiAlign", x, boxes, g.input("i", np.int64, [count]), output_height=3, output_width=3, sampling_ratio=2
    )
    g.output(made, "y", np.float32, [count, 2, 3, 3])
    low = RNG.uniform(0, 4, (count, 2))
    boxed = np.concatenate([low, low + RNG.uniform(1, 5, (count, 2))], axis=1).astype(np.float32)
    return g.model(), [RNG.standard_normal((1, 2, 10, 10)).astype(np.float32), boxed, np.zeros(count, np.int64)]


def test_sums_of_what_is_picked() -> None:
    """No input has the points that are added up."""
    graph, given = regions(5)
    model, reference = on_cores(tw.compile(graph, MESH)), tw.compile(graph, "reference")
    np.testing.assert_allclose(model(*given)[0], reference(*given)[0], rtol=1e-5, atol=1e-5)


def test_more_points_than_cores_hold_come_in_blocks() -> None:
    graph, given = regions(400)
    model, reference = tw.compile(graph, MESH), tw.compile(graph, "reference")
    assert "none of its inputs has all of its elements" not in model.explain()
    np.testing.assert_allclose(model(*given)[0], reference(*given)[0], rtol=1e-5, atol=1e-5)
