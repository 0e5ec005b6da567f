# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tensor` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError


def arange(*shape):
    """0, 1, 2, ... as f32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_empty_is_poison(interpret):
    text = """func.func @main(%n: index) -> (tensor<?x2xf32>, tensor<2xi32>) {
      %e = tensor.empty(%n) : tensor<?x2xf32>
      %i = tensor.empty() : tensor<2xi32>
      return %e, %i : tensor<?x2xf32>, tensor<2xi32> }"""
    floats, integers = interpret(text, 3)
    assert floats.shape == (3, 2)
    assert np.isnan(floats).all()
    assert integers.tolist() == [-7777, -7777]


def test_slices(interpret):
    text = """func.func @main(%a: tensor<6x8xf32>, %i: index, %n: index) ->
        (tensor<2x3xf32>, tensor<?xf32>, tensor<6x8xf32>, tensor<0x8xf32>) {
      %s = tensor.extract_slice %a[1, 2] [2, 3] [3, 2] : tensor<6x8xf32> to tensor<2x3xf32>
      %r = tensor.extract_slice %a[%i, 0] [1, %n] [1, 1] : tensor<6x8xf32> to tensor<?xf32>
      %row = tensor.extract_slice %a[5, 0] [1, 8] [1, 1] : tensor<6x8xf32> to tensor<8xf32>
      %w = tensor.insert_slice %row into %a[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<6x8xf32>
      %z = tensor.extract_slice %a[0, 0] [0, 8] [1, 1] : tensor<6x8xf32> to tensor<0x8xf32>
      return %s, %r, %w, %z : tensor<2x3xf32>, tensor<?xf32>, tensor<6x8xf32>, tensor<0x8xf32> }"""
    a = arange(6, 8)
    before = a.copy()
    strided, row, written, empty = interpret(text, a, 4, 5)
    np.testing.assert_array_equal(strided, a[1:5:3, 2:7:2])
    np.testing.assert_array_equal(row, a[4, :5])
    np.testing.assert_array_equal(written[4], a[5])
    np.testing.assert_array_equal(a, before)
    assert empty.shape == (0, 8)


def test_slice_outside_is_reported(interpret):
    text = """func.func @main(%a: tensor<6xf32>, %i: index) -> tensor<3xf32> {
      %s = tensor.extract_slice %a[%i] [3] [1] : tensor<6xf32> to tensor<3xf32>
      return %s : tensor<3xf32> }"""
    assert interpret(text, arange(6), 3)[0].tolist() == [3, 4, 5]
    for i in (4, -1):
        with pytest.raises(InterpreterError, match="outside a dimension of 6"):
            interpret(text, arange(6), i)


@pytest.mark.parametrize(
    ("shape", "target"), [((2, 1, 3), (2, 3)), ((1, 1, 3), (1, 3)), ((1, 1, 1), ()), ((1, 4), (4,))]
)
def test_rank_reduction(interpret, shape, target):
    source, result = ("tensor<" + "".join(f"{n}x" for n in s) + "f32>" for s in (shape, target))
    zeros, ones = ", ".join("0" * len(shape)), ", ".join("1" * len(shape))
    text = f"""func.func @main(%a: {source}) -> ({result}, {source}) {{
      %s = tensor.extract_slice %a[{zeros}] [{", ".join(map(str, shape))}] [{ones}] : {source} to {result}
      %w = tensor.insert_slice %s into %a[{zeros}] [{", ".join(map(str, shape))}] [{ones}] : {result} into {source}
      return %s, %w : {result}, {source} }}"""
    reduced, back = interpret(text, arange(*shape))
    np.testing.assert_array_equal(reduced, arange(*shape).reshape(target))
    np.testing.assert_array_equal(back, arange(*shape))


def test_shapes(interpret):
    text = """func.func @main(%a: tensor<4x6xf32>, %s: tensor<3xindex>) ->
        (tensor<4x2x3xf32>, tensor<24xf32>, tensor<?x?x?xf32>, index, index, tensor<?x6xf32>) {
      %e = tensor.expand_shape %a [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
      %c = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
      %r = tensor.reshape %a(%s) : (tensor<4x6xf32>, tensor<3xindex>) -> tensor<?x?x?xf32>
      %c1 = arith.constant 1 : index
      %d = tensor.dim %a, %c1 : tensor<4x6xf32>
      %k = tensor.rank %a : tensor<4x6xf32>
      %cast = tensor.cast %a : tensor<4x6xf32> to tensor<?x6xf32>
      return %e, %c, %r, %d, %k, %cast
        : tensor<4x2x3xf32>, tensor<24xf32>, tensor<?x?x?xf32>, index, index, tensor<?x6xf32> }"""
    a = arange(4, 6)
    expanded, collapsed, reshaped, dim, rank, cast = interpret(text, a, np.int64([3, 1, 8]))
    np.testing.assert_array_equal(expanded, a.reshape(4, 2, 3))
    np.testing.assert_array_equal(collapsed, a.ravel())
    np.testing.assert_array_equal(reshaped, a.reshape(3, 1, 8))
    assert (int(dim), int(rank)) == (6, 2)
    np.testing.assert_array_equal(cast, a)


def test_a_wrong_cast_is_reported(interpret):
    text = """func.func @main(%a: tensor<?xf32>) -> tensor<3xf32> {
      %c = tensor.cast %a : tensor<?xf32> to tensor<3xf32>
      return %c : tensor<3xf32> }"""
    with pytest.raises(InterpreterError, match=r"shape \(4,\) is no tensor<3xf32>"):
        interpret(text, arange(4))


def test_elements(interpret):
    text = """func.func @main(%a: tensor<2x3xf32>, %v: f32) ->
        (f32, tensor<2x3xf32>, tensor<2x2xf32>, tensor<3x2xindex>, tensor<2x2xf32>) {
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %e = tensor.extract %a[%c1, %c2] : tensor<2x3xf32>
      %i = tensor.insert %v into %a[%c1, %c2] : tensor<2x3xf32>
      %f = tensor.from_elements %v, %e, %e, %v : tensor<2x2xf32>
      %g = tensor.generate { ^bb0(%x: index, %y: index):
          %s = arith.muli %x, %c2 : index
          %t = arith.addi %s, %y : index
          tensor.yield %t : index } : tensor<3x2xindex>
      %sp = tensor.splat %v : tensor<2x2xf32>
      return %e, %i, %f, %g, %sp : f32, tensor<2x3xf32>, tensor<2x2xf32>, tensor<3x2xindex>, tensor<2x2xf32> }"""
    a = arange(2, 3)
    element, inserted, made, generated, splat = interpret(text, a, -1)
    assert element == 5
    assert inserted.tolist() == [[0, 1, 2], [3, 4, -1]]
    assert made.tolist() == [[-1, 5], [5, -1]]
    assert generated.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert splat.tolist() == [[-1, -1]] * 2
    assert a[1, 2] == 5


def test_pad_and_concat(interpret):
    text = """func.func @main(%a: tensor<2x3xf32>, %v: f32, %n: index) -> (tensor<?x6xf32>, tensor<2x6xf32>) {
      %p = tensor.pad %a low[%n, 1] high[0, 2] { ^bb0(%i: index, %j: index): tensor.yield %v : f32 }
        : tensor<2x3xf32> to tensor<?x6xf32>
      %c = tensor.concat dim(1) %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
      return %p, %c : tensor<?x6xf32>, tensor<2x6xf32> }"""
    a = arange(2, 3)
    padded, joined = interpret(text, a, 9, 2)
    np.testing.assert_array_equal(padded, np.pad(a, ((2, 0), (1, 2)), constant_values=9))
    np.testing.assert_array_equal(joined, np.concatenate([a, a], 1))


def test_gather(interpret):
    text = """func.func @main(%a: tensor<5x4x3xf32>, %i: tensor<2x6x2xindex>) ->
        (tensor<2x6x1x4x1xf32>, tensor<2x6x4xf32>) {
      %k = tensor.gather %a[%i] gather_dims([0, 2]) : (tensor<5x4x3xf32>, tensor<2x6x2xindex>) -> tensor<2x6x1x4x1xf32>
      %d = tensor.gather %a[%i] gather_dims([0, 2]) : (tensor<5x4x3xf32>, tensor<2x6x2xindex>) -> tensor<2x6x4xf32>
      return %k, %d : tensor<2x6x1x4x1xf32>, tensor<2x6x4xf32> }"""
    a, rng = arange(5, 4, 3), np.random.default_rng(0)
    index = np.stack([rng.integers(0, 5, (2, 6)), rng.integers(0, 3, (2, 6))], -1)
    kept, dropped = interpret(text, a, index)
    expected = np.array([[a[x, :, y] for x, y in row] for row in index])
    np.testing.assert_array_equal(dropped, expected)
    np.testing.assert_array_equal(kept, expected.reshape(2, 6, 1, 4, 1))
