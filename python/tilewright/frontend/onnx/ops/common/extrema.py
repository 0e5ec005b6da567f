# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the largest and the smallest elements are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.frontend.builder.dtypes import I64, is_float
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder


def extremum_places(b: Builder, kind: str, x: Tensor, axes: Sequence[int], last: bool = False) -> Tensor:
    """The first (or last) place of the maximum or minimum along `axes`, counted row by row; they stay, with size 1.

    NaN is the extremum where there is one, as in NumPy. Two reductions: a scalar program would run on one thread.
    """
    best = b.reduce(kind, x, axes)
    outline = [n if d in axes else 1 for d, n in enumerate(x.shape)]
    count = prod(outline)
    places = b.reshape(b.positions(count), outline)
    none = Tensor.known(-1, I64) if last else b.size_tensor(count)

    def place(m, x, best, place, none):
        found = m.eq(x, best)
        found = m.logical_or(found, m.is_nan(x)) if is_float(x.dtype) else found
        return m.where(found, place, none)

    marked = b.elementwise(place, x, best, places, none, dtype=I64)
    return b.reduce("max" if last else "min", marked, axes)
