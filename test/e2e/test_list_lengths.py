# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists too short for the elements that a compiled program reads of each: refused at the call, where eager mode raises.

What may not run for a list is no reason to refuse it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fractal_runs import declared, ragged

import tilewright as tw
import tilewright.fractal as ft
from tilewright.core.errors import UserError
from tilewright.fractal.tracing.program import Traced

SHAPES = {"xss": (3, ("ragged", 4))}
DEEP = {"xsss": (2, ("ragged", 3), ("ragged", 4))}


def add(a, b):
    return a + b


def rows(function: Callable) -> Callable:
    return lambda xss: ft.map(function, xss)


def of_each_row(function: Callable) -> Callable:
    return lambda xsss: ft.map(lambda xss: ft.map(function, xss), xsss)


#: What reads so far into each list, and the index of the element.
READS: dict[str, tuple[Callable, int, int]] = {
    "first": (rows(lambda xs: xs[0]), 1, 0),
    "third": (rows(lambda xs: xs[0] + xs[2]), 3, 2),
    "last": (rows(lambda xs: xs[-1]), 1, -1),
    "last_but_one": (rows(lambda xs: ft.foldl(lambda s, x: s + x, xs[-2], xs)), 2, -2),
    "without_init": (rows(lambda xs: ft.foldl(add, None, xs)), 1, 0),
    "of_a_walk": (lambda xss: ft.foldl(lambda s, xs: s + xs[1], ft.zeros(2), xss), 2, 1),
    "of_a_filter": (lambda xss: ft.length(ft.filter(lambda xs: xs[0][0] > 0, xss)), 1, 0),
    "in_a_known_walk": (rows(lambda xs: ft.map(lambda n: xs[0] * n, ft.Lists(np.ones(2, np.float32)))), 1, 0),
}
#: What need not run, or reads what is no list of the parameter.
OTHERS: dict[str, Callable] = {
    "in_their_own_walk": rows(lambda xs: ft.map(lambda x: x * xs[0], xs)),
    "a_slice": rows(lambda xs: xs[:1]),
    "some_lists": lambda xss: ft.map(lambda xs: xs[0], xss[1:]),
    "scanned": rows(lambda xs: ft.join(ft.scanl(add, ft.zeros(2), xs), ft.stack([ft.zeros(2)]))[0]),
}


def traced(python: Callable, shapes: dict = SHAPES) -> Traced:
    lists = ragged([1, 1, 1], 2)
    return declared(python, lists if shapes is SHAPES else lists.nest([2, 1])).trace(shapes, flat=True)


@pytest.mark.parametrize("name", READS)
def test_found(name: str) -> None:
    python, length, element = READS[name]
    text = traced(python).module_text
    assert f"fractal.shortest = {{element = {element} : i64, length = {length} : i64" in text
    assert f"{__file__}:" in text.split("fractal.shortest")[1].partition("}")[0]


@pytest.mark.parametrize("name", OTHERS)
def test_not_found(name: str) -> None:
    assert "fractal.shortest" not in traced(OTHERS[name]).module_text


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_refused(target: str) -> None:
    function = declared(READS["third"][0], ragged([3, 3, 3], 2))
    model = tw.compile(function, target, shapes=SHAPES)
    (found,) = model(ragged([3, 4, 3], 2))
    np.testing.assert_allclose(found, function(ragged([3, 4, 3], 2)).array(), rtol=1e-6)
    with pytest.raises(UserError, match="input xss: list 1 of level 1 has length 2, but the program reads") as raised:
        model(ragged([3, 2, 0], 2))
    assert "element 2 of each" in str(raised.value) and __file__ in str(raised.value)
    with pytest.raises(IndexError):
        function(ragged([3, 2, 0], 2))
    # By its arrays, in the way of a caller that has no lists.
    flat = np.zeros((12, 2), np.float32)
    with pytest.raises(UserError, match="list 2 of level 1 has length 1"):
        model(flat, np.array([0, 3, 6, 7]))


def test_lists_that_are_not_there() -> None:
    """Offsets of a level have room for more lists than there are; those say nothing."""
    function = declared(of_each_row(lambda xs: xs[-1]), ragged([1, 1], 2).nest([1, 1]))
    model = tw.compile(function, "cpu", shapes=DEEP)
    lists = ragged([1, 2], 2).nest([2, 0])
    (found,) = ft.unpacked(model(lists))
    np.testing.assert_allclose(found.flat, function(lists).flat)
    with pytest.raises(UserError, match="input xsss: list 1 of level 2 has length 0"):
        model(ragged([1, 0], 2).nest([1, 1]))


def test_kept_on_disk(tmp_path) -> None:
    model = tw.compile(declared(READS["first"][0], ragged([1] * 3, 2)), "cpu", shapes=SHAPES)
    model.save(tmp_path / "first")
    with pytest.raises(UserError, match="list 0 of level 1 has length 0"):
        tw.load(tmp_path / "first")(ragged([0, 1, 1], 2))
