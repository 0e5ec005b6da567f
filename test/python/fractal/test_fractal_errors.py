# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of eager calls name the function, what was found, the rule, and the user's line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import line_of, values

import tilewright.fractal as ft
from tilewright.core.errors import UserError

XS = ft.Lists(values(5, 2))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)

BAD: list[tuple[Callable, str]] = [
    (lambda: ft.map(ft.exp, XS, XS[1:]), "ft.map: the lists have lengths [5, 4]"),
    (lambda: ft.map(ft.exp), "ft.map: at least one list is needed"),
    (lambda: ft.map(ft.exp, 3.0), "ft.map: expected a list (Lists, a Python list, or an array"),
    (lambda: ft.map(3, XS), "ft.map: the first argument is a function, found a int"),
    (lambda: ft.map(lambda x: None, XS), "ft.map: expected a tensor, a list, or a tuple of them, found a NoneType"),
    (lambda: ft.map(lambda x: x[: int(x[0] > 0)], XS), "ft.map: element"),
    (lambda: ft.forall(ft.exp, XS[:3], XSS), "ft.forall: the lists have depths [1, 2]"),
    (lambda: ft.scanl(lambda s, x: x, (ft.zeros(2),), XS), "the function returned _, but the state is (_,)"),
    (lambda: ft.scanl(lambda s, x: (s, x), ft.zeros(2), XS), "the function returned (_, _), but the state is _"),
    (
        lambda: ft.foldl(lambda s, x: x[:1], ft.zeros(2), XS),
        "ft.foldl: the state begins as a tensor f32[2] and becomes a tensor f32[1]",
    ),
    (lambda: ft.foldr(lambda s, x: s + 1.5j, ft.zeros(2), XS), "begins as a tensor f32[2] and becomes a tensor c64[2]"),
    (lambda: ft.foldl(ft.maximum, None, XS[:0]), "ft.foldl: without init there must be an element"),
    (lambda: ft.scanr(ft.maximum, None, XS, XS), "ft.scanr: without init the state is an element: give one list"),
    (lambda: ft.reduce(ft.maximum, 0.0, XS), "ft.reduce: the init is a tensor f32[], the elements are of lists [5] of"),
    (lambda: ft.reduce(ft.maximum, (ft.zeros(2),), XS), "ft.reduce: the init is (_,), but an element is _"),
    (lambda: ft.filter(lambda x: x > 0, XS), "ft.filter: the function says yes or no, a bool of rank 0; it gave"),
    (lambda: ft.dilated_map(lambda xs: xs, XS, 0), "ft.dilated_map: the dilation is 0"),
    (lambda: ft.dilated_map(lambda xs: xs[: 4 - len(xs)], XS, 2), "ft.deinterleave: group"),
    (lambda: ft.zip(XS, XSS), "ft.zip: the lists have lengths [5, 3]"),
    (lambda: ft.join(XS, XSS), "ft.join: part 1 is Lists([3, 4] of float32 (2,)), but part 0 is"),
    (lambda: ft.join(XS, (XS, XS)), "ft.join: (_, _) does not go on after _"),
    (lambda: ft.join(), "ft.join: at least one list is needed"),
    (lambda: ft.window(XS, 0), "ft.window: size 0, stride 1 and dilation 1 are positive"),
    (lambda: ft.window(XS, 3, padding=1), "ft.window: elements outside of the list are read"),
    (lambda: ft.window(XS, 3, padding=1, fill=0.0, wrap=True), "ft.window: fill= and wrap=True are both given"),
    (lambda: ft.shift(XS, 1), "ft.shift: elements outside of the list are read"),
    (lambda: ft.shift(XS, 1, fill=np.zeros(3, np.float32)), "ft.shift: the fill is a tensor f32[3]"),
    (lambda: ft.shift(XSS, 1, fill=0.0), "ft.shift: the fill is a tensor f32[]"),
    (lambda: ft.interleave(XS, 0), "ft.interleave: elements are dealt to at least one group"),
    (lambda: ft.deinterleave(XS), "ft.deinterleave: a list of lists is needed, found lists [5] of f32[2]"),
    (lambda: ft.flatten(XS), "ft.flatten: a list of lists is needed"),
    (lambda: ft.split(XS, 2), "ft.split: a list of length 5 has no 2 equal parts"),
    (lambda: ft.gather(XS, [5]), "ft.gather: index 5 is outside a list of length 5"),
    (lambda: ft.gather(XS, [0.5]), "ft.gather: places are a list of integers"),
    (lambda: ft.scatter(XS, [5], XS[:1]), "ft.scatter: index 5 is outside a list of length 5"),
    (lambda: ft.scatter(XS, [1], XS[:2]), "ft.scatter: 2 elements for 1 places: each element has one"),
    (lambda: ft.repeat(ft.zeros(2), -1), "ft.repeat: an element repeated -1 times"),
    (lambda: ft.head(XS[:0]), "ft.head: index 0 is outside a list of length 0"),
    (lambda: ft.slices(XS.flat, 2), "ft.slices: a tensor with a dimension 2 is needed, found a tensor f32[5, 2]"),
    (lambda: ft.tensor(ft.Lists(XS.flat).nest([2, 3])), "ft.tensor: lists of level 1"),
    (lambda: ft.stack([XS, XS[0]]), "ft.stack: "),
    (lambda: ft.exp(XS), "ft.exp: it takes tensors, found lists [5] of f32[2]: ft.map applies it to the elements"),
    (lambda: ft.sum(XS), "ft.sum: it takes tensors"),
    (lambda: ft.cat(XSS), "ft.concat: it takes one list of a known length, found lists [3, 4]"),
    (lambda: ft.zeros(2, 0.5), "ft.zeros: the shape (2, 0.5) has a size that is no number"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_errors_name_the_function_and_the_line(call: Callable, message: str):
    with pytest.raises(UserError) as error:
        call()
    assert message in error.value.message
    file, _, line = (error.value.location or "").rpartition(":")
    first = call.__code__.co_firstlineno
    assert file == __file__ and first <= int(line) <= first + 1


def test_the_line_is_the_innermost_one():
    def program(xss):
        return ft.map(
            lambda xs: ft.foldl(lambda s, x: x[:1], ft.zeros(2), xs),  # here
            xss,
        )

    with pytest.raises(UserError) as error:
        program(XSS)
    assert error.value.location == line_of(program, "# here")
