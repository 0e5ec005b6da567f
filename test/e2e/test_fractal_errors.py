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
def copies(xss: ft.Array[2, (2,)]):
    return ft.map(lambda xs: ft.repeat(xs[0], ft.length(xs)), xss)  # here


@ft.function
def told(xs: ft.Array[1, (2,)], n: ft.Tensor[(), np.int64]):
    return ft.repeat(xs[0], n)  # here


@ft.function
def lengthened(xss: ft.Array[2, (2,)]):
    return ft.length(ft.foldl(lambda state, xs: xs, xss[0], xss))  # here


@ft.function
def halves(xss: ft.Array[2, (2,)]):
    return ft.map(lambda xs: ft.split(xs, 2), xss)  # here


@ft.function
def uneven(xss: ft.Array[2, (2,)], yss: ft.Array[2, (2,)]):
    return ft.map(lambda xs: ft.reduce(lambda a, b: a + b, ft.zeros(2), xs), ft.join(xss, yss))  # here


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
    assert "given for ys" in str(error) and "lists among the parameters: xss" in str(error)
    assert error.location.startswith(f"{__file__}:")


@pytest.mark.parametrize("given", [(4, 3, 2), "many", (4, -1), (4, 2.5), ("ragged", 3)])
def test_lengths_that_are_none(given: Any) -> None:
    error = refused(UserError, joined, {"xss": given})
    assert f"lengths of xss are {given!r}, but it has 2 levels" in str(error)
    assert error.location.startswith(f"{__file__}:")


def test_lengths_of_their_own_without_a_largest() -> None:
    error = refused(UserError, joined, {"xss": (4, "ragged")})
    assert "the lengths of xss are not known" in str(error)
    assert 'shapes={"xss": (4, ("ragged", ...))}, as in {"xss": (4, ("ragged", 64))}' in str(error)


@pytest.mark.parametrize("given", [(("ragged", 4), 3), (4, ("ragged", -1)), (4, ("ragged", 1.5)), (4, ("even", 3))])
def test_largest_lengths_that_are_none(given: Any) -> None:
    program = ft.function(joined.__wrapped__)
    with pytest.raises(UserError, match="but it has 2 levels: for each a number") as caught:
        program.trace({"xss": given})
    assert caught.value.location is not None and caught.value.location.startswith(f"{__file__}:")


def test_a_result_of_any_length() -> None:
    error = refused(UserError, told, {"xs": (4,)})
    assert "output0 is lists [?] of f32[2], and how long its lists are at most is not known" in str(error)
    assert error.location == line(told)


@pytest.mark.parametrize(("program", "text"), [
    (copies, "'fractal.repeat' makes lists of which no length is known"),
    (lengthened, "'fractal.fold' has a state that is a list whose length a step changes"),
    (halves, "'fractal.split' reads a list whose length only a run knows"),
])  # fmt: skip
def test_ragged_lists_that_have_no_lowering(program: ft.Function, text: str) -> None:
    error = refused(UnsupportedError, program, {"xss": (4, ("ragged", 3))})
    assert text in str(error)
    assert error.location.startswith(line(program))


def test_lists_longer_than_the_largest() -> None:
    model = tw.compile(joined, "cpu", shapes={"xss": (3, ("ragged", 4))})
    long = ft.Lists(np.zeros((6, 2), np.float32))
    with pytest.raises(UserError, match="input xss: list 1 of level 1 has 5 elements; the model was compiled for"):
        model(long.nest([0, 5, 1]))
    with pytest.raises(UserError, match="input xss is a list of 3, got 2 lists"):
        model(long.nest([3, 3]))
    with pytest.raises(UserError, match="input xss has 2 levels of lists"):
        model(long)
    with pytest.raises(UserError, match=r"missing input xss.offsets0"):
        model(np.zeros((3, 4, 2), np.float32))
    whole = tw.compile(joined, "cpu", shapes={"xss": (3, 2)})
    with pytest.raises(UserError, match="lists of level 1 have lengths from 0 to 5"):
        whole(long.nest([0, 5, 1]))
    (found,) = whole(long.nest([2, 2, 2]))
    np.testing.assert_array_equal(found, joined(long.nest([2, 2, 2])).array())


def test_lists_of_unequal_lengths_joined() -> None:
    error = refused(UnsupportedError, uneven, {"xss": (2, 3), "yss": (2, 4)})
    assert "joins lists of lists of different lengths" in str(error)
    assert error.location.startswith(line(uneven))


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
