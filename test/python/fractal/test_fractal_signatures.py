# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ft.function`: signatures, checks of arguments, and errors that name the user's line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import same, values

import tilewright as tw
import tilewright.fractal as ft
from tilewright.core.errors import UserError

XS = ft.Lists(values(5, 2))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)
ONES = np.ones(2, np.float32)
ROW = values(2)


@ft.function
def scaled(xss: ft.Array[2, (2,)], w: ft.Tensor[2] = ONES, times: int = 1) -> ft.Array[2, 2]:
    """Doc."""
    return ft.map(lambda xs: ft.map(lambda x: x * w * times, xs), xss)


def test_public_names():
    assert tw.fractal is ft and "fractal" in dir(tw)
    assert all(getattr(ft, name) is not None for name in ft.__all__)


def test_signature():
    assert (scaled.name, scaled.__doc__, list(scaled.parameters)) == ("scaled", "Doc.", ["xss", "w"])
    assert str(scaled.parameters["xss"]) == "2 levels of lists of a tensor f32[2]"
    half = ft.Array[1, (), "f16"]
    assert (half.depth, half.leaf.shape, half.leaf.dtype) == (1, (), np.float16)
    assert ft.Tensor[()].type.shape == () and ft.Tensor[3, "i64"].type.dtype == np.int64
    assert ft.Tensor[(2, 3), np.float64].type.shape == (2, 3)


def test_arguments_in_any_form():
    nested = [list(row) for row in XSS.array()]
    expected = ft.Lists.from_array(XSS.array() * 3, 2)
    for given in (XSS, XSS.array(), nested, [ft.Lists(row) for row in XSS.array()], [row for row in XSS]):
        same(scaled(given, times=3), expected)
    same(scaled(xss=XSS, w=np.full(2, 3, np.float32)), expected)
    assert scaled([]) == ft.Lists.empty(2, (2,), np.float32)
    assert scaled([[], []]).lengths == (2, 0)


def test_numbers_take_the_declared_type():
    halves, number = ft.Array[1, (), "f16"], ft.Tensor[()]

    @ft.function
    def program(xs: halves, y: number) -> tuple[halves, number]:
        return xs, y

    same(program([1, 2.5], 3), (ft.Lists(np.array([1, 2.5], np.float16)), np.asarray(3, np.float32)))


def test_a_function_calls_another():
    @ft.function
    def twice(xss: ft.Array[2, (2,)]):
        return scaled(scaled(xss, times=2))

    same(twice(XSS), ft.Lists.from_array(XSS.array() * 2, 2))
    assert "fractal.map" in twice.trace().module_text


def test_tuples_as_parameters():
    @ft.function
    def program(pair: tuple[ft.Array[1, (2,)], tuple[ft.Tensor[2], ft.Tensor[2]]]):
        xs, (a, b) = pair
        return ft.map(lambda x: x * a + b, xs)

    a, b = values(2), values(2, seed=1)
    same(program((XS, (a, b))), ft.Lists(XS.flat * a + b))
    assert [spec.name for spec in program.trace().inputs] == ["pair.0", "pair.1.0", "pair.1.1"]


@ft.function
def of_a_tuple(pair: tuple[ft.Array[2, (2,)], ft.Tensor[2]]):
    return ft.map(lambda xs: ft.map(lambda x: x * pair[1], xs), pair[0])


def test_lengths_of_the_parts_of_a_tuple():
    given, named = of_a_tuple.trace({"pair": ((3, 4), None)}), of_a_tuple.trace({"pair.0": (3, 4)})
    assert given.module_text == named.module_text
    assert "!fractal.array<[3, 4] of tensor<2xf32>>" in given.module_text


@pytest.mark.parametrize(("call", "message"), [
    (lambda: scaled(XS), "scaled: xss is lists [5] of f32[2]; declared are 2 levels of lists of a tensor f32[2]"),
    (lambda: scaled(values(3, 2)), "scaled: xss: an array (3, 2) has 2 dimensions"),
    (lambda: scaled(values(3, 4, 3)), "xss is lists [3, 4] of f32[3]; declared are"),
    (lambda: scaled(values(3, 4, 2, dtype=np.float64)), "xss is lists [3, 4] of f64[2]; declared are"),
    (lambda: scaled([[np.zeros(2)]]), "of f64[2]; declared are"),
    (lambda: scaled([[np.zeros(2, np.float32)], [np.zeros(3, np.float32)]]), "element 1 is a tensor of float32 (3,)"),
    (lambda: scaled("abc"), "expected a list (Lists, a Python list"),
    (lambda: scaled(XSS, np.ones((2, 2), np.float32)), "w is a tensor f32[2, 2]; declared are a tensor f32[2]"),
    (lambda: scaled(XSS, np.ones(2)), "w is a tensor f64[2]; declared are"),
    (lambda: scaled(XSS, XS), "w is lists [5] of f32[2]; declared are"),
    (lambda: scaled(XSS, times=1.5j), "the result is lists [3, 4] of c64[2]; declared are"),
    (lambda: scaled.trace({"xss": (3, 4, 5)}), "lengths of xss are (3, 4, 5), but it has 2 levels"),
    (lambda: scaled.trace({"xss": ("ragged", 2)}), "lengths of xss"),
    (lambda: scaled.trace({"xss": (-1, 2)}), "lengths of xss"),
    (lambda: scaled.trace({"ys": 3}), "lengths are given for ys, but no list is called so; lists"),
    (lambda: of_a_tuple.trace({"pair": (3,)}), "lengths of pair are (3,), but it is a tuple of 2: say lengths of each"),
    (lambda: of_a_tuple.trace({"pair": ((3, -4), None)}), "write {'pair.0': (16, (\"ragged\", 64))}"),
    (lambda: of_a_tuple.trace({"pair": (("ragged", 3), None)}), "lengths of pair[0] are ('ragged', 3), but it has"),
    (lambda: ft.trace(lambda x: x), "annotate x with ft.Array or ft.Tensor"),
    (lambda: ft.Array[2], "expected ft.Array[depth, leaf shape]"),
    (lambda: ft.Array[0, (2,)], "expected ft.Array[depth, leaf shape]"),
    (lambda: ft.Tensor["n", 2], "static shapes"),
])  # fmt: skip
def test_what_does_not_fit_the_signature(call: Callable, message: str):
    with pytest.raises(UserError) as error:
        call()
    assert message in error.value.message


def test_what_is_no_result():
    with pytest.raises(UserError, match="returns what is no result: expected a tensor, a list, or a tuple of them"):
        ft.function(lambda: None)()
    same(ft.function(lambda: (1.5, [ROW, ROW]))(), (np.asarray(1.5, np.float32), ft.Lists(np.stack([ROW, ROW]))))


def test_errors_of_the_users_own_code_pass():
    with pytest.raises(ZeroDivisionError):
        ft.map(lambda x: 1 // 0, XS)
    with pytest.raises(TypeError, match="missing a required argument"):
        scaled()


def test_annotations_as_text():
    """This module has them: names of the function's own surroundings are found."""
    width = 2

    @ft.function
    def program(xs: ft.Array[1, (width,)]):
        return xs

    assert program.parameters["xs"].leaf.shape == (2,)
    with pytest.raises(UserError, match="its annotations cannot be read: name 'unknown'"):

        @ft.function
        def wrong(xs: ft.Array[1, (unknown,)]):  # noqa: F821
            return xs


def test_an_empty_list_asks_for_the_types_of_results():
    seen = []

    def look(x):
        seen.append(x)
        return x[:1], ft.cast(x, "i32")

    first, second = ft.map(look, XS[:0])
    assert (first.leaf_shape, second.dtype, len(first)) == ((1,), np.int32, 0)
    assert len(seen) == 1 and not seen[0].any()
    assert ft.map(lambda xs: ft.map(look, xs)[0], XSS[:0]).depth == 2
