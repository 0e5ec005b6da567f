# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling run on the grid, with the reference's numbers, whatever their windows are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

TARGET = "mesh:toy8x8"
FLOAT = onnx.TensorProto.FLOAT


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def conv(shape: tuple[int, ...], weight: tuple[int, ...], kind: int = FLOAT, **attributes: Any) -> onnx.ModelProto:
    g = GraphBuilder("conv")
    x, w, b = g.input("x", np.float32, list(shape)), g.weight(drawn(*weight)), g.weight(drawn(weight[0]))
    x, w, b = (one if kind == FLOAT else g.op("Cast", one, to=kind) for one in (x, w, b))
    y = g.op("Relu", g.op("Conv", x, w, b, **attributes))
    y = y if kind == FLOAT else g.op("Cast", y, to=FLOAT)
    g.output(y, "y", np.float32, [f"d{at}" for at in range(len(shape))])
    return g.model()


def pool(kind: str, shape: tuple[int, ...], **attributes: Any) -> onnx.ModelProto:
    g = GraphBuilder("pool")
    g.output(
        g.op(kind, g.input("x", np.float32, list(shape)), **attributes),
        "y",
        np.float32,
        [f"d{at}" for at in range(len(shape))],
    )
    return g.model()


def on_grid(model: onnx.ModelProto, x: np.ndarray, tolerance: float = 1e-4) -> str:
    """The text of the model on the grid, which gives the reference's numbers and leaves nothing outside."""
    compiled = tw.compile(model, TARGET)
    (got,), (wanted,) = compiled(x), tw.compile(model, "reference")(x)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * max(1, abs(wanted).max()))
    text = compiled.explain()
    assert "all of the model's arithmetic is done on the grid" in text
    return text


CONVS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 13, 11), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 3, 17, 7), (2, 3, 5, 3), {"strides": [2, 3], "pads": [2, 0, 1, 1]}),
    ((2, 2, 9, 9), (3, 2, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    ((1, 6, 7, 9), (4, 3, 3, 2), {"group": 2, "strides": [1, 2]}),
    ((1, 5, 7, 6), (3, 5, 1, 1), {"strides": [2, 2]}),
    ((1, 4, 19), (3, 4, 5), {"pads": [2, 2], "strides": [3]}),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"pads": [0, 1, 0, 1, 1, 1]}),
    ((1, 1, 1, 1), (1, 1, 3, 3), {"pads": [1, 1, 1, 1]}),
]


@pytest.mark.parametrize("number", range(len(CONVS)))
def test_convolutions(number: int):
    shape, weight, attributes = CONVS[number]
    text = on_grid(conv(shape, weight, **attributes), drawn(*shape))
    if attributes.get("group", 1) in (1, shape[1]):  # channels of groups are taken apart, and laid out anew
        assert len(re.findall(r"^assemble ", text, re.M)) == 1, "what a convolution reads leaves the grid"


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
def test_narrow_numbers(kind: str):
    model = conv((1, 3, 9, 8), (2, 3, 3, 3), onnx.TensorProto.DataType.Value(kind), pads=[1, 1, 1, 1])
    on_grid(model, drawn(1, 3, 9, 8), 3e-2)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "dilations": [2, 1]}),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("GlobalAveragePool", {}),
        ("GlobalMaxPool", {}),
    ],
)
def test_pooling(kind: str, attributes: dict[str, Any]):
    """Of negative numbers, so that a border of zeros shows in a maximum."""
    on_grid(pool(kind, (1, 3, 11, 13), **attributes), drawn(1, 3, 11, 13) - 9)


def test_many_channels_are_a_product():
    """Where filters are large, each core holds a part of them."""
    text = on_grid(conv((1, 40, 5, 5), (48, 40, 3, 3), pads=[1, 1, 1, 1], strides=[2, 1]), drawn(1, 40, 5, 5))
    assert re.search(r"im2col, loops along", text) and "meshgemm" in text


def test_windows_that_no_core_holds_stay_outside():
    model = conv((1, 2, 30, 600), (2, 2, 30, 599))
    text = tw.compile(model, TARGET).explain()
    assert re.search(r"its windows take \d+ bytes of a core, which has \d+ left", text)


def test_borders_on_their_way_are_counted():
    """Blocks fit, but not beside what passes between neighbours: the windows stay outside, and that is no error."""
    text = tw.compile(conv((1, 9, 96, 96), (1, 9, 17, 17), pads=[8] * 4), TARGET).explain()
    assert re.search(r"its windows take 56448 bytes of a core, which has 45056 left", text)


BORDERED = """
#image = affine_map<(h, w, o, r, s, c) -> (h + r, w + s, c)>
#filter = affine_map<(h, w, o, r, s, c) -> (r, s, c, o)>
#result = affine_map<(h, w, o, r, s, c) -> (h, w, o)>
#same = affine_map<(h, w, c) -> (h, w, c)>
ml_program.global private @w(#ml_program.extern<tensor<3x3x40x48xf32>>) : tensor<3x3x40x48xf32>
func.func @main(%x: tensor<5x5x39xf32> {tile.name = "x"}) -> (tensor<5x5x48xf32>, tensor<7x7x40xf32>) {
  %fill = arith.constant FILL : f32
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<3x3x40x48xf32>
  %e = tensor.empty() : tensor<7x7x40xf32>
  %a = linalg.fill ins(%fill : f32) outs(%e : tensor<7x7x40xf32>) -> tensor<7x7x40xf32>
  %p = tensor.insert_slice %x into %a[1, 1, LOW] [5, 5, 39] [1, 1, 1] : tensor<5x5x39xf32> into tensor<7x7x40xf32>
  %d = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<7x7x40xf32>) outs(%e : tensor<7x7x40xf32>) {
  ^bb0(%u: f32, %v: f32):
    %m = arith.addf %u, %u : f32
    linalg.yield %m : f32
  } -> tensor<7x7x40xf32>
  %ey = tensor.empty() : tensor<5x5x48xf32>
  %c = linalg.fill ins(%zero : f32) outs(%ey : tensor<5x5x48xf32>) -> tensor<5x5x48xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<7x7x40xf32>, tensor<3x3x40x48xf32>) outs(%c : tensor<5x5x48xf32>) {
  ^bb0(%u: f32, %v: f32, %t: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %t, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x5x48xf32>
  return %y, %d : tensor<5x5x48xf32>, tensor<7x7x40xf32>
}"""


@pytest.mark.parametrize(("low", "fill"), [(1, 0.0), (0, 2.0)])
def test_borders_of_channels_and_of_other_readers(low: int, fill: float):
    """Channels have a border, too, which something else reads before the windows are."""
    text = BORDERED.replace("LOW", str(low)).replace("FILL", str(fill))
    x, w = drawn(5, 5, 39), drawn(3, 3, 40, 48)
    got, doubled = tw.compile(text, TARGET, weights={"w": w})(x)
    padded = np.pad(x, ((1, 1), (1, 1), (low, 1 - low)), constant_values=fill)
    np.testing.assert_array_equal(doubled, 2 * padded)
    wanted = np.einsum("hwcrs,rsco->hwo", np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1)), w)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)
