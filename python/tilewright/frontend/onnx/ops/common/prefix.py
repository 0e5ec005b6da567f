# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, and what is found by them, for machines with thousands of threads.

A loop that adds one element after the other takes a step per element. Here each element reduces those before it in its
block, and blocks are joined by the prefix sums of their totals (Blelloch, "Prefix sums and their applications", 1990,
with blocks as wide as a machine likes): some hundred times the work, none of which waits for other work of its block.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.builder import REDUCTIONS, neutral
from tilewright.frontend.builder.dtypes import I64, highest
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.scalars import INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder

#: Elements of a block, and elements that are one block where the row is no longer.
_BLOCK = 512
_WHOLE = 2048
_I32 = np.dtype(np.int32)


def scan(b: Builder, kind: str, x: Tensor, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The reduction of all elements up to each one along the last axis.

    Args:
        b: the builder.
        kind: sum, prod, max or min.
        x: of known sizes, none of which is 0.
        exclusive: without the element itself.
        reverse: from each one to the end.
    """
    *outer, count = x.shape
    if count <= _BLOCK:
        return _of_block(b, kind, x, exclusive, reverse)
    rank, blocks = x.rank, -(-count // _BLOCK)
    x = b.pad(x, [0] * rank, [*[0] * (rank - 1), blocks * _BLOCK - count], neutral(kind, x.dtype))
    x = b.reshape(x, [*outer, blocks, _BLOCK])
    inside = _of_block(b, kind, x, exclusive, reverse)
    totals = b.reduce(kind, x, [rank], keepdims=False)
    others = scan(b, kind, totals, exclusive=True, reverse=reverse).unsqueeze([rank])
    joined = b.elementwise(lambda m, one, other: REDUCTIONS[kind][1](m, one, other), inside, others)
    flat = b.reshape(joined, [*outer, blocks * _BLOCK])
    return b.slice(flat, [0] * rank, [*outer, count], [1] * rank)


def _of_block(b: Builder, kind: str, x: Tensor, exclusive: bool, reverse: bool) -> Tensor:
    end, at = x.rank, b.positions(x.shape[-1], _I32)
    nothing = Tensor.known(neutral(kind, x.dtype), x.dtype)

    def counted(m, value, here, there, nothing):
        first, second = (here, there) if reverse else (there, here)
        return m.where(first < second if exclusive else first <= second, value, nothing)

    pairs = [x.unsqueeze([end - 1]), at.unsqueeze([1]), at.unsqueeze([0]), nothing]
    return b.reduce(kind, b.elementwise(counted, *pairs, dtype=x.dtype), [end], keepdims=False)


def owners(b: Builder, ends: Tensor, slots: Tensor) -> Tensor:
    """The group that each slot lies in.

    Args:
        b: the builder.
        ends: where each group ends, in rising order: a vector (int64) of a known size.
        slots: a vector (int64).

    Returns:
        For each slot how many groups end before it or at it; behind the last group at least their number.
    """
    count = ends.shape[0]
    assert isinstance(count, int)
    if count <= _WHOLE:
        ended = b.elementwise(
            lambda m, end, slot: m.cast(end <= slot, I64), ends.unsqueeze([0]), slots.unsqueeze([1]), dtype=I64
        )
        return b.reduce("sum", ended, [1], keepdims=False)
    blocks = -(-count // _BLOCK)
    rows = b.array(b.reshape(b.pad(ends, [0], [blocks * _BLOCK - count], highest(I64)), [blocks, _BLOCK]))
    last = b.slice(rows, [0, _BLOCK - 1], [blocks, 1], [1, 1]).squeeze([1])
    block = owners(b, last, slots)
    space = Space([slots.shape[0], _BLOCK], frozenset([1]))
    places = b.positions(_BLOCK)

    def within(m, block: Scalar, slot: Scalar, place: Scalar, total: Scalar) -> Scalar:
        row = m.cast(m.minimum(block, blocks - 1), INDEX)
        return total + m.cast(b.at(rows, [row, m.cast(place, INDEX)]) <= slot, I64)

    found = b.generic(space, [(block, [0]), (slots, [0]), (places, [1])], [0], I64, within, 0)
    return b.elementwise(lambda m, block, place: block * _BLOCK + place, block, found)


def hits(b: Builder, flags: Tensor) -> tuple[Tensor, Tensor]:
    """The places at which a vector of bools of a known size holds, in order, then any; and how many there are."""
    ends = scan(b, "sum", b.cast(flags, I64))
    count = b.reduce("max", ends, [0], keepdims=False)
    return owners(b, ends, b.positions(flags.shape[0])), count
