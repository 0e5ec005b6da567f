# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that a loop stacks, one element per iteration, and elements taken from a tensor at a run-time position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.dims import Dim, Size, has_zero, marked, same, values
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.mlir import ir


@dataclass(frozen=True)
class Element:
    """What is stacked; None for a size that is known inside the loop only."""

    dtype: np.dtype
    shape: tuple[Size | None, ...]

    @staticmethod
    def of(x: Tensor, loop: ir.Operation) -> Element:
        """The description of a tensor that the body of `loop` makes."""
        return Element(x.dtype, tuple(n if isinstance(n, int) or _outside(n, loop) else None for n in x.shape))

    @property
    def bytes(self) -> int:
        """The size of one, as far as it is known."""
        return self.dtype.itemsize * prod(n for n in self.shape if isinstance(n, int))

    def covering(self, x: Tensor) -> Element:
        """The description of both."""
        pairs = zip(self.shape, x.shape, strict=True)
        return Element(self.dtype, tuple(n if n is not None and same(n, m) else None for n, m in pairs))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Element)
            and len(self.shape) == len(other.shape)
            and all(m is n or None not in (m, n) and same(m, n) for m, n in zip(self.shape, other.shape, strict=True))
        )

    def __hash__(self) -> int:
        return hash((self.dtype, len(self.shape)))


def _outside(size: Dim, loop: ir.Operation) -> bool:
    """Whether a size is computed before the loop."""
    owner = size.value.owner
    at = owner.owner if isinstance(owner, ir.Block) else owner
    while at is not None:
        if at.operation == loop:
            return False
        at = at.operation.parent
    return True


class Stack:
    """A stacked result while its loop is built.

    Where the room and the size of an element are known before the loop, there is one buffer and each iteration writes
    its row. Otherwise the buffer grows by a row per iteration, which copies it.

    Args:
        b: the builder.
        element: what is stacked.
        rows: how many at most, known before the loop; None: not known.
        backward: whether the first iteration makes the last row.
        padded: whether rows that no iteration writes stay, as zeros.
    """

    def __init__(
        self, b: Builder, element: Element, rows: Size | Scalar | None, backward: bool, padded: bool = False
    ) -> None:
        self.b, self.element, self.rows, self.backward, self.padded = b, element, rows, backward, padded
        self.grows = rows is None or None in element.shape

    def buffer(self) -> Tensor:
        """What the loop starts with."""
        b, element = self.b, self.element
        if self.grows:
            b.remark("a stacked result grows by a copy per iteration: its length or its elements are not known before")
            empty = b.blank([0, *(0 if n is None else n for n in element.shape)], element.dtype)
            return b.loosen(empty, [0, *(d + 1 for d, n in enumerate(element.shape) if n is None)])
        shape = [_natural(b, self.rows), *element.shape]
        return b.full(0, shape, element.dtype) if self.padded else b.blank(shape, element.dtype)

    def put(self, buffer: Tensor, x: Tensor, counter: Scalar, count: Size | Scalar | None) -> Tensor:
        """The buffer with the row of one iteration."""
        b = self.b
        x = b.array(x)
        if self.grows:
            old = _sizes(b, buffer)
            target = b.blank([old[0] + 1, *x.shape], x.dtype)
            copied = _insert(b, buffer, target, 1 if self.backward else 0, old)
            return _insert(b, x, copied, 0 if self.backward else counter, [1, *x.shape])
        at = b.idx(count) - 1 - counter if self.backward else counter
        return _insert(b, x, buffer, at, [1, *x.shape])

    def finished(self, buffer: Tensor, done: Scalar | None) -> Tensor:
        """The result: the rows that were written. `done` is how many there are, None: all."""
        result = Tensor(buffer.dtype, _sizes(self.b, buffer), buffer.data, buffer.dims)
        return result if self.grows or self.padded or done is None else self.b.first(result, done)


def _natural(b: Builder, count: Size | Scalar | None) -> Size | Scalar:
    assert count is not None
    return b.math.maximum(count, 0) if isinstance(count, Scalar) else count


def _sizes(b: Builder, x: Tensor) -> tuple[Size, ...]:
    """The sizes that the tensor itself has: inside a loop its own, not those it began with."""
    assert isinstance(x.data, ir.Value)
    return b.sizes_of(x.data)


def _insert(b: Builder, x: Tensor, into: Tensor, first: int | Scalar, sizes: Sequence[Size]) -> Tensor:
    """`into` with `x` written from row `first` on."""
    if has_zero(sizes):
        return into
    rank = len(sizes)
    known = isinstance(first, int)
    attributes = _slice(first, 0, rank, sizes, [1, 1])
    operands = [x.data, into.data, *([] if known else [b.idx(first).value]), *values(sizes)]
    return Tensor(into.dtype, into.shape, b.op("tensor.insert_slice", operands, into.data.type, attributes), into.dims)


def pick(b: Builder, x: Tensor, axis: int, at: int | Scalar) -> Tensor:
    """x[..., at, ...] without that dimension; `x` is an array (Loops.array)."""
    sizes = [1 if d == axis else n for d, n in enumerate(x.shape)]
    rest = tuple(n for d, n in enumerate(x.shape) if d != axis)
    kind = ir.RankedTensorType.get(marked(rest), b.element_type(x.dtype))
    if has_zero(rest):
        return Tensor(x.dtype, rest, b.op("tensor.empty", values(rest), kind), tuple(range(len(rest))))
    operands = [x.data, *([] if isinstance(at, int) else [b.idx(at).value]), *values(sizes)]
    value = b.op("tensor.extract_slice", operands, kind, _slice(at, axis, x.rank, sizes, [1]))
    return Tensor(x.dtype, rest, value, tuple(range(len(rest))))


def replaced(b: Builder, x: Tensor, part: Tensor, axis: int, at: int | Scalar) -> Tensor:
    """`x` with another x[..., at, ...]; both are arrays, `part` has no such dimension, and elements."""
    sizes = [1 if d == axis else n for d, n in enumerate(x.shape)]
    operands = [part.data, x.data, *([] if isinstance(at, int) else [b.idx(at).value]), *values(sizes)]
    attributes = _slice(at, axis, x.rank, sizes, [1, 1])
    return Tensor(x.dtype, x.shape, b.op("tensor.insert_slice", operands, x.data.type, attributes), x.dims)


def _slice(first: int | Scalar, axis: int, rank: int, sizes: Sequence[Size], leading: list[int]) -> dict:
    offset = first if isinstance(first, int) else ir.ShapedType.get_dynamic_size()
    counts = [int(not isinstance(first, int)), len(values(sizes)), 0]
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get([offset if d == axis else 0 for d in range(rank)]),
        "static_sizes": ir.DenseI64ArrayAttr.get(marked(sizes)),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*leading, *counts]),
    }
