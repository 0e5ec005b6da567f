# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a program eagerly, and its trace in the reference interpreter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright.fractal as ft
from tilewright import reference
from tilewright.core.dtypes import presented
from tilewright.fractal.tracing.program import Traced
from tilewright.fractal.trees import flatten
from tilewright.fractal.types import Array, ListType, Tensor, type_of
from tilewright.mlir import ir


def values(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers between -1 and 1, other ones for another shape."""
    rng = np.random.default_rng([seed, *shape])
    return (rng.random(shape) * 2 - 1).astype(dtype)


def ragged(lengths: Sequence[int], *leaf: int) -> ft.Lists:
    """A list of lists of these lengths."""
    return ft.Lists(values(sum(lengths), *leaf)).nest(np.asarray(lengths))


def declared(python: Callable, *args: Any) -> ft.Function:
    """A function with annotations that say what the arguments are."""
    names = list(inspect.signature(python).parameters)
    python.__annotations__ = {name: _annotation(arg) for name, arg in zip(names, args, strict=True)}
    return ft.function(python)


def _annotation(arg: Any) -> Any:
    kind = type_of(arg)
    return Array(kind.depth, kind.leaf) if isinstance(kind, ListType) else Tensor(kind)


def lengths_of(function: ft.Function, args: Sequence[Any], known: bool) -> dict[str, Any]:
    """What a trace is told of the lengths of arguments: all, or no number."""
    given = {}
    for name, arg in zip(function.parameters, args, strict=True):
        if isinstance(arg, ft.Lists):
            given[name] = [n if known or n == "ragged" else None for n in type_of(arg).lengths]
    return given


def run(traced: Traced, *args: Any) -> list[Any]:
    """The outputs of a trace, by the interpreter."""
    with ir.Context():
        module = ir.Module.parse(traced.module_text)
        outputs = reference.run(module, "main", list(args), traced.weights)
    return [_signed(value, spec.dtype) for value, spec in zip(outputs, traced.outputs, strict=True)]


def _signed(value: Any, dtype: np.dtype) -> Any:
    """An output with the signs that its type in IR does not have."""
    if isinstance(value, ft.Lists):
        return ft.Lists(presented(value.flat, dtype), value.offsets)
    return presented(value, dtype)


def agree(python: Callable, *args: Any, rtol: float = 1e-5) -> Any:
    """Check that a program gives the same eagerly and traced, with lengths known and not; return what it gives."""
    function = declared(python, *args)
    expected = function(*args)
    for known in (True, False):
        traced = function.trace(lengths_of(function, args, known))
        same(traced.structured(run(traced, *args)), expected, rtol)
    return expected


def same(found: Any, expected: Any, rtol: float = 1e-5) -> None:
    """Compare values in tuples: structure, types, lengths exactly, elements nearly."""
    (ours, shape), (theirs, other) = flatten(found), flatten(expected)
    assert shape == other
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, ft.Lists):
            assert isinstance(a, ft.Lists) and a.depth == b.depth
            assert all(np.array_equal(x, y) for x, y in zip(a.offsets, b.offsets, strict=True))
            a, b = a.flat, b.flat
        b = np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=1e-6)


def line_of(function: Callable, text: str) -> str:
    """`file:line` of a line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    number = next(i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(function)}:{first + number}"
