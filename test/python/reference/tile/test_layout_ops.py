# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`linalg.pack`, `linalg.unpack`, `linalg.softmax`."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError


def element(packed, order, dims, tiles, index):
    """Where an element lies in the packed form, straight from the definition."""
    tile = dict(zip(dims, tiles, strict=True))
    outer = [i // tile.get(d, 1) for d, i in enumerate(index)]
    return packed[tuple(outer[d] for d in order) + tuple(index[d] % tile[d] for d in dims)]


@pytest.mark.parametrize(
    ("shape", "order", "dims", "tiles"),
    [((6, 8), [0, 1], [1], [4]), ((6, 8), [1, 0], [0, 1], [2, 4]), ((6, 8, 5), [2, 0, 1], [2, 0], [5, 3])],
)
def test_pack_and_unpack(interpret, rng, shape, order, dims, tiles):
    tile = dict(zip(dims, tiles, strict=True))
    packed_shape = [shape[d] // tile.get(d, 1) for d in order] + list(tiles)
    plain, packed = ("tensor<" + "".join(f"{n}x" for n in s) + "f32>" for s in (shape, packed_shape))
    layout = f"outer_dims_perm = {order} inner_dims_pos = {dims} inner_tiles = {tiles}"
    text = f"""func.func @main(%a: {plain}, %d: {packed}) -> ({packed}, {plain}) {{
      %p = linalg.pack %a {layout} into %d : {plain} -> {packed}
      %u = linalg.unpack %p {layout} into %a : {packed} -> {plain}
      return %p, %u : {packed}, {plain} }}"""
    a = rng.random(shape, np.float32)
    got, back = interpret(text, a, np.zeros(packed_shape, np.float32))
    assert got.shape == tuple(packed_shape)
    assert all(element(got, order, dims, tiles, index) == a[index] for index in np.ndindex(shape))
    np.testing.assert_array_equal(back, a)


def test_pack_pads_and_unpack_crops(interpret, rng):
    text = """func.func @main(%a: tensor<5x7xf32>, %v: f32) -> (tensor<5x2x4xf32>, tensor<5x7xf32>) {
      %e = tensor.empty() : tensor<5x2x4xf32>
      %p = linalg.pack %a padding_value(%v : f32) inner_dims_pos = [1] inner_tiles = [4] into %e
        : tensor<5x7xf32> -> tensor<5x2x4xf32>
      %o = tensor.empty() : tensor<5x7xf32>
      %u = linalg.unpack %p inner_dims_pos = [1] inner_tiles = [4] into %o : tensor<5x2x4xf32> -> tensor<5x7xf32>
      return %p, %u : tensor<5x2x4xf32>, tensor<5x7xf32> }"""
    a = rng.random((5, 7), np.float32)
    packed, back = interpret(text, a, 9)
    np.testing.assert_array_equal(packed.reshape(5, 8), np.pad(a, ((0, 0), (0, 1)), constant_values=9))
    np.testing.assert_array_equal(back, a)


def test_packing_without_padding_needs_a_multiple(interpret):
    text = """func.func @main(%a: tensor<?xf32>, %d: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %p = linalg.pack %a inner_dims_pos = [0] inner_tiles = [4] into %d : tensor<?xf32> -> tensor<?x4xf32>
      return %p : tensor<?x4xf32> }"""
    with pytest.raises(InterpreterError, match="no multiple of the tiles"):
        interpret(text, np.zeros(6, np.float32), np.zeros((2, 4), np.float32))


def test_softmax(interpret, rng):
    text = """func.func @main(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
      %e = tensor.empty() : tensor<3x5xf32>
      %s = linalg.softmax dimension(0) ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
      return %s : tensor<3x5xf32> }"""
    a = 50 * rng.standard_normal((3, 5)).astype(np.float32)
    (got,) = interpret(text, a)
    e = np.exp(a.astype(np.float64) - a.max(0))
    np.testing.assert_allclose(got, e / e.sum(0), rtol=1e-6)
