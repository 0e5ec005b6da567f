# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot be traced: the error says what was found, what to do, and the user's line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import declared, line_of, same, values

import tilewright.fractal as ft
from tilewright.core.errors import UserError

XS = ft.Lists(values(5, 2))
ROW = values(2)


def choose(x):
    if x[0] > 0:  # here
        return x
    return -x


CANNOT: list[tuple[Callable, str]] = [
    (lambda xs, w: choose(w), "choose with ft.where"),
    (lambda xs, w: w * float(w[0]), "only a run of the compiled program has them"),
    (lambda xs, w: np.linalg.norm(w), "use functions of ft in place of NumPy's"),
    (lambda xs, w: np.arctan(w), "np.arctan: this use of it cannot be traced"),
    (lambda xs, w: np.add(w, w, dtype=np.float64), "np.add: this use of it cannot be traced"),
    (lambda xs, w: ft.zeros(len(xs)), "len: only a run knows how long this list is: use ft.length"),
    (lambda xs, w: [x for x in xs], "use ft.length"),
    (lambda xs, w: w if xs else -w, "choose with ft.where"),
    (lambda xs, w: w @ np.ones((3, 2), np.float32), "@: a tensor f32[2] @ a tensor f32[3, 2]: columns of the first"),
    (lambda xs, w: w + np.ones(3, np.float32), "add: the shapes [2] and [3] do not fit"),
    (lambda xs, w: w + "a", "add: it takes tensors and numbers, found str"),
    (lambda xs, w: w * xs, "multiply: it takes tensors and numbers, found lists [?] of f32[2]"),
    (lambda xs, w: (w > 0) + (w > 1), "add: it takes numbers, found a tensor i1[2] and a tensor i1[2]: ft.cast"),
    (lambda xs, w: w & w, "bitwise_and: it has no meaning for a tensor f32[2] and a tensor f32[2]"),
    (lambda xs, w: ft.sum(w > 0), "sum: it takes numbers, found bools"),
    (lambda xs, w: ft.sum(w, 1), "sum: there is no dimension 1 in a tensor f32[2]"),
    (lambda xs, w: ft.exp(xs), "ft.exp: it takes tensors, found lists [?] of f32[2]: ft.map"),
    (lambda xs, w: w[2], "a tensor: index 2 is outside of dimension 0 of a tensor f32[2]"),
    (lambda xs, w: w[0, 0], "a tensor: 2 indices, but a tensor f32[2]"),
    (lambda xs, w: w[w], "numbers and slices that are known select a part"),
    (lambda xs, w: w.reshape(3), "reshape: a tensor f32[2] has 2 elements"),
    (lambda xs, w: ft.transpose(w, (0, 0)), "transpose: [0, 0] is no order"),
    (lambda xs, w: ft.cat([w, xs[0][:1] @ ft.zeros(1, 2), w.reshape(1, 2)]), "concat: a tensor f32[2] and a tensor"),
    (lambda xs, w: xs["a"], "a list is indexed by a number, found 'a'"),
    (lambda xs, w: xs[:: w[0]], "the step <traced a tensor f32[]> of a slice is a number other than 0"),
    (lambda xs, w: ft.tensor(xs), "ft.tensor: lists [?] of f32[2] has lengths that are not known"),
    (lambda xs, w: ft.stack([w, w[:1]]), "ft.stack: element 1 is a tensor f32[1], but element 0 is a tensor f32[2]"),
    (lambda xs, w: ft.join(xs, [w[:1]]), "ft.join: part 1 is lists [1] of f32[1], but part 0 is lists [?] of f32[2]"),
    (lambda xs, w: ft.gather(xs, xs), "ft.gather: places are a list of integers (i32 or i64), found lists"),
    (lambda xs, w: ft.shift(xs, 1, fill=w[:1]), "ft.shift: the fill is a tensor f32[1]"),
    (lambda xs, w: ft.split(xs[:0], 0), "has no 0 equal parts"),
    (lambda xs, w: ft.interleave(xs, 0), "ft.interleave: elements are dealt to at least one group"),
    (lambda xs, w: ft.repeat(w, -1), "ft.repeat: an element repeated -1 times"),
    (lambda xs, w: ft.foldl(lambda s, x: x[:1], w, xs), "ft.foldl: the state begins as a tensor f32[2] and becomes"),
    (lambda xs, w: ft.reduce(ft.maximum, w[:1], xs), "ft.reduce: the init is a tensor f32[1], the elements are of"),
    (lambda xs, w: ft.filter(lambda x: x > 0, xs), "ft.filter: the function says yes or no"),
    (
        lambda xs, w: ft.map(lambda x: None, xs),
        "ft.map: expected a tensor, a list, or a tuple of them, found a NoneType",
    ),
    (lambda xs, w: ft.map(lambda a, b: a, [w, w], [w]), "ft.map: the lists have lengths [2, 1]"),
    (lambda xs, w: ft.map(lambda x: x, w[0]), "ft.map: expected a list"),
    (lambda xs, w: [w][0:1][0:0][5:] or xs[0:2][3], "index 3 is outside a list of length 2"),
    (lambda xs, w: "text", "<lambda>: returns what is no result: expected a tensor"),
]


@pytest.mark.parametrize(("program", "message"), CANNOT)
def test_what_cannot_be_traced(program: Callable, message: str):
    lengths = {"xs": (2 if "index 3" in message else None,)}
    with pytest.raises(UserError) as error:
        declared(program, XS, ROW).trace(lengths)
    assert message in error.value.message
    file, _, line = (error.value.location or "").rpartition(":")
    if "no result" not in message:
        first = program.__code__.co_firstlineno
        expected = line_of(choose, "# here") if "choose" in program.__code__.co_names else f"{__file__}:{first}"
        assert f"{file}:{line}" == expected
    same(ft.map(lambda x: x + 1, XS), ft.Lists(XS.flat + 1))  # eager again


def test_the_mode_ends_with_the_trace():
    with pytest.raises(ZeroDivisionError):
        declared(lambda xs: ft.map(lambda x: x / (1 // 0), xs), XS).trace()
    same(ft.reverse(XS), ft.Lists(XS.flat[::-1]))
