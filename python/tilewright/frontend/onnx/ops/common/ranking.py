# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first of many in order, for machines with thousands of threads: each element counts those before it.

A heap takes about a step per element, one after the other. Here all pairs of a block are compared at once (the rank of
an element is how many come before it), and the element of each rank is found by another reduction: more work, none of
which waits for other work. Rows longer than a block leave the first of each block, and these are ranked again.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.builder import neutral
from tilewright.frontend.builder.dtypes import is_float
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder

#: Elements of a block, and how many times smaller what is kept of it must be.
_BLOCK = 512
_SHRINKS = 4
#: Elements of a row that are ranked at once where what is kept is not that much smaller.
_WHOLE = 2048
_I32 = np.dtype(np.int32)


def can_rank(count: int, size: int) -> bool:
    """Whether the first `size` of `count` elements are found by ranks; a heap is better where many of many are kept."""
    return 0 < size and (count <= _WHOLE or size * _SHRINKS <= _BLOCK)


def first_by_rank(b: Builder, x: Tensor, size: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The first elements of each row in order, and their positions (int64); of equal ones the first.

    Args:
        b: the builder.
        x: rows along the last axis, of known sizes.
        size: how many.
        largest: in falling order; NaN is larger than all others.
    """
    *outer, count = x.shape
    worst = neutral("max" if largest else "min", x.dtype)
    if is_float(x.dtype) and not largest:
        worst = float("nan")
    places = b.positions(count)
    while count > _WHOLE:
        blocks, kept = -(-count // _BLOCK), min(size, _BLOCK)
        behind = blocks * _BLOCK - count
        x = b.pad(x, [0] * x.rank, [*[0] * (x.rank - 1), behind], worst)
        places = b.pad(places, [0] * places.rank, [*[0] * (places.rank - 1), behind], 0)
        x = b.reshape(x, [*outer, blocks, _BLOCK])
        places = b.reshape(places, [*places.shape[:-1], blocks, _BLOCK])
        x, places = _ranked(b, x, places, kept, largest)
        count = blocks * kept
        x, places = (b.reshape(found, [*outer, count]) for found in (x, places))
    return _ranked(b, x, places, size, largest)


def _ranked(b: Builder, x: Tensor, places: Tensor, size: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The same for rows of one block, whose elements have given places."""
    end = x.rank
    at = b.positions(x.shape[-1], _I32)

    def precedes(m, one: Scalar, other: Scalar, i: Scalar, j: Scalar) -> Scalar:
        low, high = (one, other) if largest else (other, one)
        better, worse = _less(m, low, high), _less(m, high, low)
        alike = m.logical_and(j < i, m.logical_not(worse))
        return m.cast(m.logical_or(better, alike), _I32)

    pairs = [x.unsqueeze([end]), x.unsqueeze([end - 1]), at.unsqueeze([1]), at.unsqueeze([0])]
    ranks = b.reduce("sum", b.elementwise(precedes, *pairs, dtype=_I32), [end], keepdims=False)
    wanted = b.positions(size, _I32).unsqueeze([1])

    def chosen(kind: str, values: Tensor) -> Tensor:
        """The value whose element has each rank."""
        nothing = Tensor.known(neutral(kind, values.dtype), values.dtype)
        of_rank = b.elementwise(
            lambda m, rank, r, value, none: m.where(m.eq(rank, r), value, none),
            ranks.unsqueeze([end - 1]),
            wanted,
            values.unsqueeze([values.rank - 1]),
            nothing,
            dtype=values.dtype,
        )
        return b.reduce(kind, of_rank, [end], keepdims=False)

    return chosen("max", x), chosen("sum", places)


def _less(m, x: Scalar, y: Scalar) -> Scalar:
    """NumPy's order of numbers: NaN is larger than all others and equal to itself."""
    if not is_float(x.dtype):
        return x < y
    return m.logical_or(x < y, m.logical_and(m.is_nan(y), m.logical_not(m.is_nan(x))))
