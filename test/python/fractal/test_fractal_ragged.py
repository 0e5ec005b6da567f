# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists whose lengths differ, deep in each other: the trace claims no more of them than is true, and gives the same.

The interpreter checks what types say of lengths, so that a wrong claim is an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import agree, ragged, values

import tilewright.fractal as ft

XS = ft.Lists(values(5, 2))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)
RAGGED = ragged([3, 0, 2], 2)
DEEP = ragged([2, 0, 3, 1], 2).nest([3, 0, 1])


def add(a, b):
    return a + b


def grown(row, xs):
    """A state that gets longer, from a filter's result on; and a scan from the right of a joined list."""
    kept = ft.filter(lambda x: x[0] > 0, row)
    longer = ft.foldl(lambda state, x: ft.join(state, [x + ft.sum(xs[0])]), kept, row)
    return longer, ft.scanr(add, None, ft.join(row, [xs[1]]))


PROGRAMS: list[Callable] = [
    lambda xss, xs: ft.map(lambda row: grown(row, xs), xss),
    lambda xss, xs: ft.map(lambda row: ft.map(lambda a, b: ft.map(add, a, b), *ft.product(row, row)), xss),
    lambda xss, xs: ft.map(lambda row: ft.product(row, xs), xss),
    lambda xss, xs: ft.scanl(lambda state, row: ft.map(lambda x: x, row), xss[0], xss),
    lambda xss, xs: ft.foldl(lambda state, row: row, xss[0], xss),
    lambda xss, xs: ft.foldr(lambda state, row: ft.join(row, state), xs, xss),
    lambda xss, xs: ft.map(lambda row: (ft.interleave(row, 2), ft.reverse(row), row[1:], row[::-2]), xss),
    lambda xss, xs: ft.map(lambda row: ft.window(row, 2), xss),
    lambda xss, xs: ft.window(xss, 2),
    lambda xss, xs: ft.flatten(ft.map(lambda row: ft.join(row, row), xss)),
    lambda xss, xs: ft.map(lambda row: ft.repeat(row, ft.length(row)), xss),
    lambda xss, xs: ft.map(lambda row: (ft.enumerate(row), ft.cast(ft.length(row), "f32")), xss),
    lambda xss, xs: ft.filter(lambda row: ft.reduce(add, ft.zeros(2), row)[0] > 0, xss),
    lambda xss, xs: ft.map(lambda row, x: ft.map(lambda y: x * y, row), xss, xs[:3]),
    lambda xss, xs: ft.map(lambda row: ft.dilated_map(lambda g: ft.scanl(add, ft.zeros(2), g), row, 2), xss),
    lambda xss, xs: ft.gather(xss, [2, 0]),
    lambda xss, xs: ft.join(xss, xss)[1:5],
    lambda xss, xs: ft.stack([xss[0], xss[2]]),
    lambda xss, xs: ft.shift(xss, -1, fill=xs),
    lambda xss, xs: ft.window(xss, 2, padding=1, fill=xs[:4]),
    lambda xss, xs: ft.map(lambda xs: xs, ft.split(ft.join(xs, xs), 2)),
]


@pytest.mark.parametrize("xss", [RAGGED, XSS], ids=["ragged", "rectangular"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_on_two_levels(program: Callable, xss: ft.Lists):
    agree(program, xss, XS)


@pytest.mark.parametrize("program", [
    lambda xsss: ft.forall(lambda x: x * 2, xsss),
    lambda xsss: ft.map(lambda xss: ft.flatten(xss), xsss),
    lambda xsss: ft.flatten(xsss),
    lambda xsss: ft.map(lambda xss: ft.map(lambda xs: ft.foldl(add, ft.zeros(2), xs), xss), xsss),
    lambda xsss: ft.map(lambda xss: ft.scanl(ft.join, ft.filter(lambda x: x[0] > 9, xsss[0][0]), xss), xsss),
    lambda xsss: ft.map(lambda xss: xss[::-1], xsss)[::2],
    lambda xsss: ft.scanr(lambda state, xss: ft.join(xss, state), xsss[1], xsss),
])  # fmt: skip
def test_programs_on_three_levels(program: Callable):
    agree(program, DEEP)


def test_lists_of_known_length_within_states():
    found = agree(
        lambda xss: ft.reduce(lambda a, b: (ft.map(add, a[0], b[0]), a[1] + b[1]),
                              (ft.map(lambda x: x * 0, xss[0]), 0), (xss, ft.map(lambda xs: 1, xss))), XSS)  # fmt: skip
    np.testing.assert_allclose(found[0].array(), XSS.array().sum(0), rtol=1e-5)
    assert found[1] == 3
