# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that take functions: against NumPy, eager; the trace gives the same, whether lengths are known or not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from fractal_runs import agree, declared, lengths_of, ragged, run, same, values

import tilewright.fractal as ft

XS = ft.Lists(values(5, 2))
YS = ft.Lists(values(5, 2, seed=1))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)
RAGGED = ragged([3, 0, 2], 2)
NONE = ft.Lists(values(0, 2))


def add(a, b):
    return a + b


def sums(xs: ft.Lists) -> np.ndarray:
    return np.cumsum(xs.flat, 0, dtype=np.float32)


@pytest.mark.parametrize("xs", [XS, NONE])
def test_map(xs: ft.Lists):
    same(agree(lambda xs: ft.map(lambda x: x * 2, xs), xs), ft.Lists(xs.flat * 2))


def test_map_of_several_lists_and_results():
    found = agree(lambda xs, ys: ft.map(lambda x, y: (x + y, (x, x * y)), xs, ys), XS, YS)
    x, y = XS.flat, YS.flat
    same(found, (ft.Lists(x + y), (XS, ft.Lists(x * y))))


@pytest.mark.parametrize("xss", [XSS, RAGGED, ft.Lists.empty(2, (2,), np.float32)])
def test_map_at_two_levels(xss: ft.Lists):
    found = agree(lambda xss: ft.map(lambda xs: ft.map(ft.exp, xs), xss), xss)
    same(found, ft.Lists(np.exp(xss.flat), xss.offsets))
    same(agree(lambda xss: ft.forall(ft.exp, xss), xss), found)


def test_zip_gives_tuples():
    found = agree(lambda xs, ys: ft.map(lambda pair: pair[0] - pair[1], ft.zip(xs, ys)), XS, YS)
    same(found, ft.Lists(XS.flat - YS.flat))


def test_map_of_what_stands_around_it():
    """Closures, numbers, and arrays that the program holds."""
    table = values(5, 2, seed=7)

    def program(xs, w):
        return ft.map(lambda x, row: 2 * x @ w + row, xs, table)

    w = values(2, 2, seed=3)
    same(agree(program, XS, w), ft.Lists(2 * XS.flat @ w + table))


def test_a_function_may_return_numbers_lists_and_named_tuples():
    class Pair(NamedTuple):
        first: object
        second: object

    found = agree(lambda xs: ft.map(lambda x: Pair([x, x + 1], 3.0), xs), XS)
    assert type(found) is Pair
    same(found.first, ft.Lists.from_array(np.stack([XS.flat, XS.flat + 1], 1), 2))
    same(found.second, ft.Lists(np.full(5, 3, np.float32)))


@pytest.mark.parametrize("xs", [XS, NONE])
def test_scan_and_fold(xs: ft.Lists):
    zero, back = np.zeros((1, 2), np.float32), ft.Lists(xs.flat[::-1])
    same(agree(lambda xs: ft.scanl(add, ft.zeros(2), xs), xs), ft.Lists(sums(xs)))
    same(agree(lambda xs: ft.scanr(lambda s, x: s + x, ft.zeros(2), xs), xs), ft.Lists(sums(back)[::-1]))
    same(agree(lambda xs: ft.foldl(add, ft.zeros(2), xs), xs), np.concatenate([zero, sums(xs)])[-1])
    same(agree(lambda xs: ft.foldr(add, ft.zeros(2), xs), xs), np.concatenate([zero, sums(back)])[-1])


def test_left_and_right_differ():
    state = np.ones(2, np.float32)
    left = right = state
    for x in XS:
        left = left * 0.5 + x
    for x in list(XS)[::-1]:
        right = right * 0.5 + x
    same(agree(lambda xs: ft.foldl(lambda s, x: s * 0.5 + x, state, xs), XS), left)
    same(agree(lambda xs: ft.foldr(lambda s, x: s * 0.5 + x, state, xs), XS), right)
    assert not np.allclose(left, right)


def test_states_in_tuples_and_several_lists():
    def step(state, x, y):
        (total, least), count = state
        return (total + x * y, ft.minimum(least, x)), count + 1

    def program(xs, ys):
        return ft.scanl(step, ((ft.zeros(2), ft.full(2, np.inf)), 0), xs, ys)

    (total, least), count = agree(program, XS, YS)
    same(total, ft.Lists(np.cumsum(XS.flat * YS.flat, 0, dtype=np.float32)))
    same(least, ft.Lists(np.minimum.accumulate(XS.flat)))
    same(count, ft.Lists(np.arange(1, 6)))


def test_without_init_the_state_begins_as_an_element():
    left, right = sums(XS), sums(ft.Lists(XS.flat[::-1]))
    same(agree(lambda xs: (ft.foldl(add, None, xs), ft.scanl(add, None, xs)), XS), (left[-1], ft.Lists(left)))
    same(agree(lambda xs: (ft.foldr(add, None, xs), ft.scanr(add, None, xs)), XS), (right[-1], ft.Lists(right[::-1])))
    same(agree(lambda xs: ft.reduce(ft.maximum, None, xs), XS), XS.flat.max(0))
    same(agree(lambda xs, ys: ft.foldl(lambda s, p: (s[0] + p[0], s[1] * p[1]), None, ft.zip(xs, ys)), XS, YS),
         (sums(XS)[-1], np.prod(YS.flat, 0)))  # fmt: skip


@pytest.mark.parametrize("xs", [XS, NONE])
def test_reduce(xs: ft.Lists):
    same(agree(lambda xs: ft.reduce(add, ft.zeros(2), xs), xs), xs.flat.sum(0))


def test_reduce_of_pairs():
    """Affine functions x -> a x + b are composed in order."""

    def compose(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    found = agree(lambda xs, ys: ft.reduce(compose, (ft.full(2, 1), ft.zeros(2)), ft.zip(xs, ys)), XS, YS)
    a, b = np.ones(2, np.float32), np.zeros(2, np.float32)
    for x, y in zip(XS, YS, strict=True):
        a, b = a * x, b * x + y
    same(found, (a, b))


def test_reduce_of_lists():
    """Elements of one length keep it; joined they have a length of their own each time."""
    same(agree(lambda xss: ft.reduce(lambda a, b: ft.map(add, a, b), ft.repeat(ft.zeros(2), 4), xss), XSS),
         ft.Lists(XSS.array().sum(0)))  # fmt: skip
    same(agree(lambda xss, e: ft.reduce(ft.join, e, xss), RAGGED, NONE), ft.Lists(RAGGED.flat))


@pytest.mark.parametrize("xs", [XS, NONE])
def test_filter(xs: ft.Lists):
    kept = ft.Lists(xs.flat[xs.flat[:, 0] > 0])
    same(agree(lambda xs: ft.filter(lambda x: x[0] > 0, xs), xs), kept)
    again = agree(lambda xs: ft.map(lambda x: -x, ft.filter(lambda x: x[0] > 0, xs)), xs)
    same(again, ft.Lists(-kept.flat))


def test_filter_of_pairs():
    found = agree(lambda xs, ys: ft.filter(lambda p: ft.sum(p[0] * p[1]) > 0, ft.zip(xs, ys)), XS, YS)
    places = np.flatnonzero((XS.flat * YS.flat).sum(1) > 0)
    assert 0 < len(places) < 5
    same(found, (XS.take(places), YS.take(places)))


@pytest.mark.parametrize("dilation", [1, 2, 3, 5, 7])
def test_dilated_map(dilation: int):
    def program(xs):
        return ft.dilated_map(lambda group: ft.scanl(add, ft.zeros(2), group), xs, dilation)

    expected = XS.flat.copy()
    for i in range(dilation, 5):
        expected[i] += expected[i - dilation]
    same(agree(program, XS), ft.Lists(expected))
    traced = declared(program, XS).trace()
    assert traced.outputs[0].lengths == (None,)


def test_a_state_may_change_its_lengths():
    """Then less is known of them: the batch that shrinks over time, and lists that grow."""

    def shrink(state, xs):
        return ft.map(add, state[: ft.length(xs)], xs)

    falling = ragged([4, 3, 3, 1], 2)
    lists, state = [], np.zeros((4, 2), np.float32)
    for xs in falling:
        state = state[: len(xs)] + xs.flat
        lists.append(ft.Lists(state))
    init = ft.Lists(np.zeros((4, 2), np.float32))
    same(agree(lambda xss, init: ft.scanl(shrink, init, xss), falling, init), ft.Lists.stack(lists))
    same(agree(lambda xss, init: ft.foldl(shrink, init, xss), falling, init), lists[-1])
    same(agree(lambda xss, e: ft.foldl(ft.join, e, xss), falling, NONE), ft.Lists(falling.flat))
    same(agree(lambda xss, e: ft.scanl(lambda s, xs: ft.join(s, [xs]), e, xss), XSS, XSS[:1]),
         ft.Lists.stack([ft.Lists.from_array(np.concatenate([XSS.array()[:1], XSS.array()[: i + 1]]), 2)
                         for i in range(3)]))  # fmt: skip


def test_lengths_follow_as_far_as_they_are_known():
    def program(xss):
        doubled = ft.map(lambda xs: ft.map(lambda x: x + x, xs), xss)
        return doubled, ft.map(lambda xs: xs[1:], xss), ft.map(lambda xs: ft.filter(lambda x: x[0] > 0, xs), xss)

    function = declared(program, XSS)
    levels = {
        (3, 4): [(3, 4), (3, 3), (3, "ragged")],
        (None, None): [(None, None), (None, "ragged"), (None, "ragged")],
        (3, "ragged"): [(3, "ragged")] * 3,
    }
    for lengths, expected in levels.items():
        traced = function.trace({"xss": lengths})
        assert [spec.lengths for spec in traced.outputs] == expected
        same(traced.structured(run(traced, XSS)), function(XSS))
    assert lengths_of(function, [RAGGED], True) == {"xss": [3, "ragged"]}
