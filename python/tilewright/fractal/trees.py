# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuples of values as one value: a tuple only names what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Shape = Any  # None for a value, else (class of the tuple, shapes of what is in it)


def flatten(tree: Any) -> tuple[list[Any], Shape]:
    """All values in nested tuples, in order, and how they were nested."""
    if not isinstance(tree, tuple):
        return [tree], None
    parts = [flatten(part) for part in tree]
    return [value for values, _ in parts for value in values], (type(tree), tuple(shape for _, shape in parts))


def rebuild(shape: Shape, values: Iterable[Any]) -> Any:
    """The nested tuples of this shape that hold the values."""
    return _rebuilt(shape, iter(values))


def _rebuilt(shape: Shape, values: Iterator[Any]) -> Any:
    if shape is None:
        return next(values)
    kind, inner = shape
    parts = [_rebuilt(part, values) for part in inner]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def describe(shape: Shape) -> str:
    """A shape for an error: `(_, (_, _))`."""
    if shape is None:
        return "_"
    return "(" + ", ".join(describe(part) for part in shape[1]) + ("," if len(shape[1]) == 1 else "") + ")"


def unzipped(value: Any) -> Any:
    """A list of tuples as a tuple of lists, at any depth of tuples; other values as they are."""
    if isinstance(value, tuple):
        parts = [unzipped(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list) and value and all(isinstance(element, tuple) for element in value):
        first = value[0]
        parts = [unzipped(list(part)) for part in zip(*value, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return value
