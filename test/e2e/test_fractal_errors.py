# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of programs of nested lists that cannot be compiled: which rule, and where in the user's file."""
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft
from tilewright.core.errors import TilewrightError, UnsupportedError, UserError


@ft.function
def joined(xss: ft.Array[2, (2,)]):
    return ft.map(lambda x: x + 1.0, ft.flatten(xss))


@ft.function
def positive(xs: ft.Array[1, (2,)]):
    doubled = ft.map(lambda x: x + x, xs)
    return ft.filter(lambda x: ft.sum(x) > 0.0, doubled)  # here


@ft.function
def kept(xs: ft.Array[1, (2,)]):
    some = ft.filter(lambda x: ft.sum(x) > 0.0, xs)  # here
    return ft.foldl(lambda s, x: s + x, ft.zeros(2), some)


@ft.function
def dealt(xs: ft.Array[1, (2,)]):
    def scan(ys):
        return ft.scanl(lambda s, y: s + y, ft.zeros(2), ys)

    return ft.dilated_map(scan, xs, 2)  # here


@ft.function
def uneven(xss: ft.Array[2, (2,)], yss: ft.Array[2, (2,)]):
    return ft.map(lambda xs: ft.reduce(lambda a, b: a + b, ft.zeros(2), xs), ft.join(xss, yss))  # here


@ft.function
def chosen(xs: ft.Array[1, (2,)], places: ft.Array[2, (), np.int64]):
    return ft.map(lambda some: ft.gather(xs, some), places)  # here


@ft.function
def growing(xs: ft.Array[1, (2,)]):
    return ft.foldl(lambda s, x: ft.concat([s, x]), ft.zeros(2), xs)  # here


@ft.function
def unlike(xs: ft.Array[1, (2,)], ys: ft.Array[1, (2,)]):
    return ft.map(lambda x, y: x + y, xs, ys)  # here


def line(function: Callable[..., Any]) -> str:
    """Where `# here` stands in a function of this file."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    (offset,) = (i for i, text in enumerate(lines) if "# here" in text)
    return f"{__file__}:{first + offset}"


def refused(kind: type[TilewrightError], program: Any, shapes: dict[str, Any] | None, target: str = "cpu") -> Any:
    with pytest.raises(kind) as caught:
        tw.compile(program, target, shapes=shapes)
    return caught.value


@pytest.mark.parametrize(
    ("shapes", "wanted"), [(None, "(..., ...)"), ({"xss": (4,)}, "(4, ...)"), ({"xss": (None, 3)}, "(..., 3)")]
)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a", "reference"])
def test_lengths_that_are_missing(shapes: dict[str, Any] | None, wanted: str, target: str) -> None:
    error = refused(UserError, joined, shapes, target)
    assert "the lengths of xss are not known" in str(error)
    assert f'shapes={{"xss": {wanted}}}' in str(error)


def test_lengths_of_what_is_no_parameter() -> None:
    error = refused(UserError, joined, {"ys": (4, 3)})
    assert "names ys" in str(error) and "lists among the parameters: xss" in str(error)
    assert error.location.startswith(f"{__file__}:")


@pytest.mark.parametrize("given", [(4, 3, 2), "many", (4, -1), (4, 2.5), ("ragged", 3)])
def test_lengths_that_are_none(given: Any) -> None:
    error = refused(UserError, joined, {"xss": given})
    assert f"lengths of xss are {given!r}, but it has 2 levels" in str(error)
    assert error.location.startswith(f"{__file__}:")


def test_ragged_lists() -> None:
    error = refused(UnsupportedError, joined, {"xss": (4, "ragged")})
    assert "xss of joined is ragged" in str(error) and "pad them to one length" in str(error)


@pytest.mark.parametrize("program", [positive, kept])
def test_filter(program: ft.Function) -> None:
    error = refused(UnsupportedError, program, {"xs": (4,)})
    assert "'fractal.filter' has no lowering yet" in str(error)
    assert error.location.startswith(line(program))


def test_groups_of_unequal_lengths() -> None:
    error = refused(UnsupportedError, dealt, {"xs": (5,)})
    assert "cuts a list of 5 in 2 parts of unequal lengths" in str(error)
    assert error.location.startswith(line(dealt))


def test_lists_of_unequal_lengths_joined() -> None:
    error = refused(UnsupportedError, uneven, {"xss": (2, 3), "yss": (2, 4)})
    assert "joins lists of lists of different lengths" in str(error)
    assert error.location.startswith(line(uneven))


def test_places_that_differ_between_elements() -> None:
    error = refused(UnsupportedError, chosen, {"xs": (5,), "places": (2, 3)})
    assert "indices that differ between elements" in str(error)
    assert error.location.startswith(line(chosen))


def test_a_state_that_changes_its_shape() -> None:
    error = refused(UserError, growing, {"xs": (5,)})
    assert "the state begins as a tensor f32[2] and becomes a tensor f32[4]" in str(error)
    assert error.location.startswith(line(growing))


def test_lists_of_different_lengths_read_together() -> None:
    error = refused(UserError, unlike, {"xs": (5,), "ys": (4,)})
    assert "the lists have lengths [5, 4]" in str(error)
    assert error.location.startswith(line(unlike))


def test_arguments_of_other_lengths() -> None:
    model = tw.compile(joined, "cpu", shapes={"xss": (4, 3)})
    with pytest.raises(UserError, match=r"xss must have shape \[4, 3, 2\], got \[4, 2, 2\]"):
        model(np.zeros((4, 2, 2), np.float32))


def test_unsupported_programs_are_right_eagerly() -> None:
    """The limits are those of the lowering: eager mode knows the results."""
    xs = np.array([[1, 2], [-3, 1], [4, 0], [0, -1], [2, 2]], np.float32)
    np.testing.assert_array_equal(positive(xs).array(), 2 * xs[[0, 2, 4]])
    np.testing.assert_array_equal(kept(xs), xs[[0, 2, 4]].sum(0))
    expected = [xs[0], xs[1], xs[0] + xs[2], xs[1] + xs[3], xs[0] + xs[2] + xs[4]]
    np.testing.assert_array_equal(dealt(xs).array(), expected)
