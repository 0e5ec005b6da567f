# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of bodies on sizes: what exporters compute with shapes, as far as it can be known while importing.

An element is an int, a bool, or a Dim. Where a body asks what only a run can answer, or uses another function, the
attempt fails, and the vector is computed when the model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.dims import Size, equal, maximum, minimum, nonnegative
from tilewright.frontend.builder.dtypes import I32, I64

Element = Size | bool


class Unknown(Exception):
    """The answer is known at run time only."""


class SizeMath:
    """The functions of :class:`scalars.IRMath` that make sense of sizes."""

    maximum, minimum = staticmethod(maximum), staticmethod(minimum)

    @staticmethod
    def eq(a: Size, b: Size) -> bool:
        """a == b."""
        found = equal(a, b)
        if found is None:
            raise Unknown
        return found

    @staticmethod
    def where(condition: bool, a: Element, b: Element) -> Element:
        """a if the condition holds, else b."""
        return a if _known(condition) else b

    @staticmethod
    def div(a: Size, b: Size) -> Size:
        """a / b, of sizes: truncation rounds down."""
        if not (nonnegative(a) and nonnegative(b)) or b == 0:
            raise Unknown
        return a // b

    @staticmethod
    def cast(a: Element, dtype: np.typing.DTypeLike, _saturate: bool = True, _mode: str = "up") -> Element:
        """The same number: what saturates or rounds is no integer."""
        if np.dtype(dtype) not in (I64, I32):
            raise Unknown
        return a

    @staticmethod
    def logical_not(a: bool) -> bool:
        """Not a."""
        return not _known(a)

    @staticmethod
    def logical_and(a: bool, b: bool) -> bool:
        """a and b."""
        return _known(a) and _known(b)

    @staticmethod
    def logical_or(a: bool, b: bool) -> bool:
        """a or b."""
        return _known(a) or _known(b)


def _known(truth: Any) -> bool:
    if not isinstance(truth, bool):
        raise Unknown
    return truth


def apply(body: Callable[..., Any], vectors: Sequence[Sequence[Element]]) -> list[Element] | None:
    """The body's results for vectors of equal length; None where it cannot say."""
    try:
        results = [body(SizeMath, *elements) for elements in zip(*vectors, strict=True)]
    except (Unknown, UnsupportedError, AttributeError, TypeError, ZeroDivisionError):
        return None
    return None if any(r is NotImplemented or isinstance(r, float) for r in results) else results
