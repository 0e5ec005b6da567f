# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that say which elements are read: against lists of Python, eager; the trace gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from fractal_runs import agree, declared, ragged, same, values

import tilewright.fractal as ft

XS = ft.Lists(values(7, 2))
YS = ft.Lists(values(3, 2, seed=1))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)
RAGGED = ragged([3, 0, 2], 2)
NONE = ft.Lists(values(0, 2))


def nested(*lists: list) -> ft.Lists:
    return ft.Lists.stack([ft.Lists.stack(inner) for inner in lists])


@pytest.mark.parametrize("bounds", [
    slice(None), slice(1, None), slice(-2, None), slice(2, 5), slice(5, 2), slice(1, 100), slice(None, -1),
    slice(None, None, 2), slice(1, 6, 3), slice(None, None, -1), slice(5, 1, -2), slice(None, 2, -1), slice(-3, -6, -1),
    slice(100, None, -3),
])  # fmt: skip
@pytest.mark.parametrize("xs", [XS, XSS, RAGGED, NONE])
def test_slices_are_those_of_python(bounds: slice, xs: ft.Lists):
    found = agree(lambda xs: xs[bounds], xs)
    kept = list(xs)[bounds]
    assert found.to_nested() == [] if not kept else found == ft.Lists.stack(kept)


def test_slices_by_traced_bounds():
    def program(xs, ys):
        n = ft.length(ys)
        return xs[:n], xs[n:], xs[n - 1 : n + 10 : 2], xs[n::-1]

    x, n = XS.flat, 3
    same(agree(program, XS, YS), tuple(map(ft.Lists, (x[:n], x[n:], x[n - 1 : n + 10 : 2], x[n::-1]))))


def test_elements():
    same(agree(lambda xs: (xs[2], xs[-1], ft.head(xs), ft.last(xs), ft.tail(xs)), XS),
         (*(XS.flat[i] for i in (2, 6, 0, 6)), ft.Lists(XS.flat[1:])))  # fmt: skip
    same(agree(lambda xss: (xss[1], xss[-1][1]), RAGGED), (RAGGED[1], RAGGED.flat[4]))
    same(agree(lambda xss: (ft.head(xss), ft.tail(ft.zip(xss, xss))), XSS), (XSS[0], (XSS[1:], XSS[1:])))


def test_an_element_by_a_traced_number():
    same(agree(lambda xs, i: xs[i], XS, np.asarray(4)), XS.flat[4])
    same(agree(lambda xs: ft.map(lambda p: xs[p[0]] * 2, ft.enumerate(xs)), XS), ft.Lists(XS.flat * 2))


@pytest.mark.parametrize("xs", [XS, NONE])
def test_enumerate_and_length(xs: ft.Lists):
    same(agree(ft_enumerate, xs), (ft.Lists(np.arange(len(xs))), xs))
    same(agree(lambda xs: ft.repeat(ft.zeros(2), ft.length(xs)), xs), ft.Lists(np.zeros((len(xs), 2), np.float32)))
    assert ft.length(xs) == len(xs) and ft.length((xs, xs)) == len(xs)


def ft_enumerate(xs):
    return ft.enumerate(xs)


def test_zip_checks_lengths_and_keeps_lists():
    same(ft.zip(XS, (XS, XS)), (XS, (XS, XS)))


def test_product():
    found = agree(lambda xs, ys: ft.product(xs, ys), XS, YS)
    same(found, (nested(*[[x] * 3 for x in XS]), nested(*[list(YS)] * 7)))
    (a, b), c = agree(lambda xs, ys: ft.product(ft.zip(xs, xs), ys), XS, YS)
    same((a, b, c), (found[0], found[0], found[1]))
    same(agree(lambda xs, ys: ft.product(xs, ys), YS, NONE)[0], ft.Lists(values(0, 2)).nest([0, 0, 0]))


def test_repeat_and_stack():
    same(agree(lambda x, xs: (ft.repeat(x, 3), ft.repeat(xs, 2), ft.repeat((x, xs), 0)[0]), XS.flat[0], YS),
         (ft.Lists(np.stack([XS.flat[0]] * 3)), nested(list(YS), list(YS)), NONE))  # fmt: skip
    same(agree(lambda x, y: ft.stack([x, y, np.ones(2, np.float32)]), XS.flat[0], XS.flat[1]),
         ft.Lists(np.stack([XS.flat[0], XS.flat[1], [1, 1]]).astype(np.float32)))  # fmt: skip
    same(agree(lambda xs, ys: ft.stack([xs, ys]), XS, YS), nested(list(XS), list(YS)))
    same(agree(lambda xs: ft.stack([(xs[0], xs), (xs[1], xs)]), YS), (YS[:2], nested(list(YS), list(YS))))


def test_join():
    same(agree(lambda xs, ys: ft.join(xs, ys, xs), XS, YS), ft.Lists.stack([*XS, *YS, *XS]))
    same(agree(lambda xs, e: ft.join(e, xs, e), XS, NONE), XS)
    same(agree(lambda a, b: ft.join(a, b), XSS, RAGGED), ft.Lists.stack([*XSS, *RAGGED]))
    same(agree(lambda xs, ys: ft.join((xs, ys), (ys, xs)), XS, YS),
         (ft.Lists.stack([*XS, *YS]), ft.Lists.stack([*YS, *XS])))  # fmt: skip


@pytest.mark.parametrize("by", [0, 1, -2, 9])
def test_shift(by: int):
    fill = values(2, seed=5)
    place = np.arange(7) + by
    inside = ((place >= 0) & (place < 7))[:, None]
    filled = np.where(inside, XS.flat[place % 7], fill)
    same(agree(lambda xs: ft.shift(xs, by, fill=fill), XS), ft.Lists(filled))
    same(agree(lambda xs: ft.shift(xs, by, fill=0.5), XS), ft.Lists(np.where(inside, filled, np.float32(0.5))))
    same(agree(lambda xs: ft.shift(xs, by, wrap=True), XS), ft.Lists(XS.flat[place % 7]))


def test_shift_of_lists():
    same(agree(lambda xss: ft.shift(xss, 1, fill=xss[0]), XSS), nested(list(XSS[1]), list(XSS[2]), list(XSS[0])))
    same(agree(lambda xss: ft.reverse(xss), RAGGED), ft.Lists.stack([RAGGED[2], RAGGED[1], RAGGED[0]]))
    same(agree(lambda xs: ft.reverse(xs), NONE), NONE)


@pytest.mark.parametrize(("size", "stride", "dilation", "padding"), [
    (3, 1, 1, (0, 0)), (3, 1, 1, (1, 1)), (2, 2, 1, (0, 1)), (3, 1, 2, (2, 2)), (3, 2, 2, (3, 0)), (7, 1, 1, (0, 0)),
    (9, 1, 1, (0, 0)), (1, 3, 1, (0, 0)),
])  # fmt: skip
def test_window(size: int, stride: int, dilation: int, padding: tuple[int, int]):
    count = (7 + sum(padding) - dilation * (size - 1) - 1) // stride + 1
    place = np.array([[stride * i + dilation * u - padding[0] for u in range(size)] for i in range(max(count, 0))])
    place = place.astype(int).reshape(-1, size)
    wrapped = ft.Lists.from_array(XS.flat[place % 7], 2)
    same(agree(lambda xs: ft.window(xs, size, stride, dilation, padding, wrap=True), XS), wrapped)
    inside = ((place >= 0) & (place < 7))[..., None]
    filled = ft.Lists.from_array(np.where(inside, XS.flat[place % 7], np.float32(-1)), 2)
    same(agree(lambda xs: ft.window(xs, size, stride, dilation, padding, fill=-1), XS), filled)
    if padding == (0, 0):
        same(agree(lambda xs: ft.window(xs, size, stride, dilation), XS), filled)


def test_windows_of_pairs_that_wrap():
    found = agree(lambda xs: ft.shifted_slide(ft.zip(xs, xs), 3, dilation=2), XS)
    expected = ft.Lists.from_array(XS.flat[[[(i + 2 * (u - 1)) % 7 for u in range(3)] for i in range(7)]], 2)
    same(found, (expected, expected))
    traced = declared(lambda xs: ft.shifted_slide(xs, 4), XS).trace()
    assert traced.outputs[0].lengths == (None, 4)


@pytest.mark.parametrize("by", [1, 2, 7, 10])
def test_interleave(by: int):
    groups = [list(XS)[g::by] for g in range(min(by, 7))]
    same(agree(lambda xs: ft.interleave(xs, by), XS), nested(*groups))
    same(agree(lambda xs: ft.deinterleave(ft.interleave(xs, by)), XS), XS)


def test_flatten_and_split():
    same(agree(lambda xss: ft.flatten(xss), XSS), ft.Lists(XSS.flat))
    same(agree(lambda xss: ft.flatten(xss), RAGGED), ft.Lists(RAGGED.flat))
    same(agree(lambda xs: ft.split(xs[1:], 3), XS), ft.Lists.from_array(XS.flat[1:].reshape(3, 2, 2), 2))
    same(agree(lambda xss: ft.split(xss, 1), XSS), ft.Lists.from_array(XSS.array()[None], 3))


def test_gather():
    places = np.array([3, 0, 3])
    expected = ft.Lists(XS.flat[places])
    same(agree(lambda xs: ft.gather(xs, [3, 0, 3]), XS), expected)
    same(agree(lambda xs, i: ft.gather(xs, i), XS, places.astype(np.int32)), expected)
    same(agree(lambda xs, i: ft.gather(xs, i), XS, ft.Lists(places)), expected)
    same(agree(lambda xss, i: ft.gather(xss, i), RAGGED, ft.Lists(places[1:2])), RAGGED[:1])


def test_scatter():
    places, written = np.array([3, 0, 3]), values(3, *XS.flat.shape[1:], seed=1)
    expected = XS.flat.copy()
    expected[3], expected[0] = written[2], written[1]  # of two for place 3 the last one
    expected = ft.Lists(expected)
    same(agree(lambda xs, ys: ft.scatter(xs, [3, 0, 3], ys), XS, ft.Lists(written)), expected)
    same(agree(lambda xs, i, ys: ft.scatter(xs, i, ys), XS, places.astype(np.int32), ft.Lists(written)), expected)
    same(agree(lambda xs, i, ys: ft.scatter(xs, i, ys), XS, ft.Lists(places), ft.Lists(written)), expected)
    rows = agree(lambda xss, i, ys: ft.scatter(xss, i, ys), RAGGED, ft.Lists(places[1:2]), RAGGED[1:2])
    same(rows, ft.Lists(RAGGED.flat[3:]).nest(np.array([0, 0, 2])))


def test_tensors_and_lists():
    x = values(3, 4, 2)
    same(agree(lambda x: ft.slices(x), x), ft.Lists(x))
    same(agree(lambda x: ft.slices(x, 1), x), ft.Lists(x.swapaxes(0, 1)))
    same(agree(lambda x: ft.slices(x, -1, keepdims=True), x), ft.Lists(x.transpose(2, 0, 1)[..., None]))
    same(agree(lambda x: ft.map(lambda row: row * 2, x), x), ft.Lists(x * 2))
    agreed = declared(lambda xss: ft.tensor(xss) + 1, XSS)
    same(agreed(XSS), XSS.array() + 1)
    traced = agreed.trace({"xss": (3, 4)})
    assert traced.outputs[0].shape == (3, 4, 2)


def test_lists_of_python():
    """What a user has at hand is a list: nested lists, arrays, numbers."""
    same(ft.map(lambda x: x + 1, [1.0, 2.0]), ft.Lists(np.array([2, 3], np.float32)))
    same(ft.map(lambda xs: ft.reduce(ft.maximum, 0, xs), [[1, 2], [5]]), ft.Lists(np.array([2, 5])))
    same(ft.reverse([np.ones(2), np.zeros(2)]), ft.Lists(np.array([[0.0, 0], [1, 1]])))
    same(ft.zip([(1, 2.0), (3, 4.0)]), ((ft.Lists(np.array([1, 3])), ft.Lists(np.array([2, 4], np.float32))),))
