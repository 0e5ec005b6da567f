# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Math on leaves: NumPy's meaning, shapes and element types, in both modes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import agree, declared, same, values

import tilewright.fractal as ft

X = values(3, 4)
Y = values(3, 4, seed=1)
COLUMN = values(3, 1)
ROW = values(4)
WHOLE = np.array([[1, -2, 3], [4, 0, -6]], np.int32)


@pytest.mark.parametrize(("ours", "theirs"), [
    (ft.exp, np.exp), (lambda x: ft.log(ft.abs(x)), lambda x: np.log(np.abs(x))), (ft.tanh, np.tanh),
    (lambda x: ft.sqrt(x * x), np.abs), (ft.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    (ft.relu, lambda x: np.where(x > 0, x, 0)), (lambda x: -x, lambda x: 0 - x), (abs, np.abs),
    (np.exp, np.exp), (np.sin, np.sin), (np.square, lambda x: x * x),
    (lambda x: x**2 + x**0.5, lambda x: x * x + np.sqrt(x)), (lambda x: 2.0**x, np.exp2),
    (ft.softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    (lambda x: ft.softmax(x, 0), lambda x: np.exp(x) / np.exp(x).sum(0)),
])  # fmt: skip
def test_functions_of_one_tensor(ours: Callable, theirs: Callable):
    with np.errstate(invalid="ignore"):
        found = agree(lambda x: ours(x), X)
        same(found, theirs(X.astype(np.float64)).astype(np.float32), rtol=1e-4)


@pytest.mark.parametrize("other", [Y, COLUMN, ROW, values(1), values(2, 1, 4), np.float32(0.5), 2, 1.5])
def test_operators_broadcast(other):
    def program(x):
        return x + other, other - x, x * other, other / x, ft.maximum(x, other), ft.minimum(other, x)

    x = X.astype(np.float64)
    with np.errstate(divide="ignore"):
        expected = (x + other, other - x, x * other, other / x, np.maximum(x, other), np.minimum(other, x))
    same(agree(program, X), tuple(e.astype(np.float32) for e in expected))
    if isinstance(other, np.ndarray):
        same(agree(lambda x, y: (x + y, y - x), X, other), tuple(e.astype(np.float32) for e in expected[:2]))


def test_comparisons_and_choices():
    def program(x, y):
        less, same_sign = x < y, (x > 0) == (y > 0)
        return less & same_sign, less | ~same_sign, less ^ (x >= 0), x <= y, x != y, ft.where(x > y, x, 0.5)

    positive = (X > 0) == (Y > 0)
    expected = (
        (X < Y) & positive,
        (X < Y) | ~positive,
        (X < Y) ^ (X >= 0),
        X <= Y,
        X != Y,
        np.where(X > Y, X, np.float32(0.5)),
    )
    same(agree(program, X, Y), expected)
    same(agree(lambda x: (ft.where(x > 0, COLUMN, x), ft.where(x > 0, 1.0, 0)), X)[0], np.where(X > 0, COLUMN, X))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i32", "i64", "i8", "u8"])
def test_element_types(dtype: str):
    """Those of NumPy: numbers of Python take the tensor's, two types the one that holds both."""
    x = (values(3, 4) * 5).astype(np.int8) if dtype[0] in "iu" else X
    x = ft.cast(x, dtype)

    def program(x, y):
        return x + 1, x * x, x + y, ft.maximum(x, 1), x > 0, ft.sum(x, 0), ft.max(x, 1)

    both = agree(program, x, X, rtol=1e-2)
    assert [value.dtype for value in both[:3]] == [(x + 1).dtype, x.dtype, (x + X).dtype]
    same(both[1], x * x, rtol=1e-2)
    cast = agree(lambda x: (ft.cast(x, "f32"), ft.cast(x, "i32"), ft.cast(x > 0, dtype), x.astype(np.float64)), x)
    same(cast, (x.astype(np.float32), x.astype(np.int32), (x > 0).astype(x.dtype), x.astype(np.float64)))


def test_division_of_integers_gives_floats():
    same(agree(lambda x: x / 2, WHOLE), WHOLE / 2)
    same(agree(lambda x: x @ x.T, WHOLE), WHOLE @ WHOLE.T)


@pytest.mark.parametrize(("a", "b"), [
    ((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((5, 3, 4), (4, 2)), ((5, 3, 4), (5, 4, 2)),
    ((5, 1, 3, 4), (2, 4, 6)), ((1, 3, 4), (5, 4, 2)), ((5, 3, 4), (4,)), ((4,), (5, 4, 2)), ((3, 0), (0, 2)),
])  # fmt: skip
def test_matrix_products(a: tuple[int, ...], b: tuple[int, ...]):
    x, y = values(*a), values(*b, seed=1)
    same(agree(lambda x, y: x @ y, x, y), np.asarray(x.astype(np.float64) @ y).astype(np.float32), rtol=1e-4)
    same(agree(lambda x: x @ y, x), np.asarray(x @ y), rtol=1e-4)
    same(agree(lambda y: x @ y, y), np.asarray(x @ y), rtol=1e-4)


def test_products_of_narrow_floats_are_summed_wide():
    x = np.full((1, 4096), 1, np.float16)
    same(agree(lambda x: x @ x.T, x), np.full((1, 1), 4096, np.float16))
    text = declared(lambda x: x @ x.T, x).trace().module_text
    assert "outs(%3 : tensor<1x1xf32>)" in text or "-> tensor<1x1xf32>" in text


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis, keepdims: bool):
    x = values(2, 3, 4)

    def program(x):
        named = {"axis": axis, "keepdims": keepdims}
        return ft.sum(x, **named), ft.max(x, **named), ft.min(x, **named), ft.mean(x, **named), x.sum(**named)

    functions = (np.sum, np.max, np.min, np.mean, np.sum)
    expected = tuple(np.asarray(f(x, axis=axis, keepdims=keepdims), np.float32) for f in functions)
    same(agree(program, x), expected)


def test_rows_and_whole_numbers():
    same(agree(lambda x: (ft.rowmax(x), ft.rowsum(x)), X), (X.max(-1, keepdims=True), X.sum(-1, keepdims=True)))
    same(agree(lambda x: (ft.sum(x), ft.max(x, 0), x.min(1)), WHOLE), (np.asarray(0), WHOLE.max(0), WHOLE.min(1)))
    low = np.full((2, 3), -np.inf, np.float32)
    same(agree(lambda x: ft.max(x, 1), low), low[:, 0])


@pytest.mark.parametrize("index", [
    0, -1, slice(1, 3), (slice(None), 2), (1, slice(None, None, 2)), (slice(None, None, -1), slice(3, 0, -2)),
    (None, 1), (..., -1), (slice(2, 2),), (..., None), (np.int64(1), 2), (slice(0, 1), slice(1, 2)),
])  # fmt: skip
def test_indexing(index):
    same(agree(lambda x: x[index] * 1, X), np.asarray(X[index] * 1))


@pytest.mark.parametrize("shape", [(12,), (4, 3), (1, 3, 4), (3, 1, 4), (3, 2, 2), (-1,), (2, -1), (6, 2), (3, 4)])
def test_shapes(shape: tuple[int, ...]):
    same(agree(lambda x: ft.reshape(x, shape), X), X.reshape(shape))
    same(agree(lambda x: x.reshape(*shape).reshape(3, 4), X), X)


def test_ranks_come_and_go():
    one = values(1, 1)
    same(agree(lambda x: x.reshape(()), one), one.reshape(()))
    same(agree(lambda x: x.reshape(()).reshape(1, 1, 1), one), one.reshape(1, 1, 1))
    same(agree(lambda x: ft.reshape(x, 4), values(2, 2)), values(2, 2).reshape(4))
    a, b = agree(lambda x: tuple(x), values(2, 3))
    same((a, b), tuple(values(2, 3)))
    x = values(2, 3, 4)
    same(agree(lambda x: (x.T, ft.transpose(x, (1, 0, 2)), x.transpose(0, 2, 1)), x),
         (x.T, x.transpose(1, 0, 2), x.transpose(0, 2, 1)))  # fmt: skip


def test_concatenation():
    same(agree(lambda x, y: (ft.concat([x, y]), ft.cat((x, y, x), axis=1), ft.cat([x], 0)), X, Y),
         (np.concatenate([X, Y]), np.concatenate([X, Y, X], 1), X))  # fmt: skip
    blocks = ft.Lists(values(5, 3, 4))

    def program(xs):
        return ft.map(lambda w: (ft.cat(w), ft.cat(w, axis=1)), ft.window(xs, 2))

    rows, columns = agree(program, blocks)
    pairs = np.stack([blocks.flat[:-1], blocks.flat[1:]], 1)
    same((rows, columns), (ft.Lists(pairs.reshape(4, 6, 4)), ft.Lists(np.concatenate([pairs[:, 0], pairs[:, 1]], 2))))


def test_constants():
    def program(x):
        return x + ft.zeros(3, 4), x * ft.full((1, 4), 2), ft.full((), 3.0, "f64"), ft.zeros((2,), dtype="i32")

    same(agree(program, X), (X, X * 2, np.asarray(3.0), np.zeros(2, np.int32)))
