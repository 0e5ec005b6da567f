# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors and sizes that meet at run time: shapes read from tensors, declared shapes, broadcasting, slices, gathers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from operator import add, mul
from typing import TYPE_CHECKING

import numpy as np

from tilewright.frontend.builder import size_math
from tilewright.frontend.builder.dims import Dim, Size, is_static, maximum, minimum, same
from tilewright.frontend.builder.dtypes import I32, I64
from tilewright.frontend.builder.limits import check_copies, check_known
from tilewright.frontend.builder.loops import Loops
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.symbols import Symbols
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.mlir import ir

if TYPE_CHECKING:
    from tilewright.frontend.onnx.node import Node

#: Types that models compute sizes in. TensorFlow's have 32 bits: a dimension has fewer than 2^31 elements there.
_COUNTS = (I64, I32)
_REDUCED = {"sum": add, "prod": mul, "max": maximum, "min": minimum}


class Dynamic(Loops):
    """Adds what builder functions do for sizes that are known at run time only.

    Attributes:
        symbols: the symbolic dimensions of the graph's inputs.
    """

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.symbols = Symbols(self)

    # Between sizes and tensors ----------------------------------------------------------------------------------

    def index_of(self, x: Tensor) -> Size:
        """The only element of a tensor of integers, as a size."""
        return self.shape_values(self.reshape(x, (1,)))[0]

    def shape_values(self, x: Tensor) -> list[Size]:
        """The elements of a vector of integers, as sizes."""
        check_copies(_length(x), "elements of a tensor of sizes or axes")
        if x.is_known:
            return [int(n) for n in x.numpy().reshape(-1)]
        entries = self.entries(x)
        return [self._as_size(s) for s in entries] if entries else [self._element(x, i) for i in range(_length(x))]

    def _element(self, x: Tensor, i: int) -> Size:
        return Dim(self.idx(self.read(x, [i] * x.rank)).value, nonneg=False)

    def shape_tensor(self, sizes: Sequence[Size], dtype: np.dtype = I64) -> Tensor:
        """The vector (int64 or int32) of sizes; known where they are."""
        if is_static(sizes):
            return Tensor.known(np.array(sizes, dtype))
        return self.vector([self._as_scalar(n, dtype) for n in sizes], dtype)

    def size_tensor(self, size: Size, dtype: np.typing.DTypeLike = I64) -> Tensor:
        """A size as a tensor without dimensions, of any element type."""
        if isinstance(size, int):
            return Tensor.known(size, dtype)
        dtype = np.dtype(dtype)
        scalar = self._as_scalar(size, dtype) if dtype in _COUNTS else self.math.cast(self._as_scalar(size), dtype)
        return self.vector([scalar], dtype).squeeze([0])

    def vector(self, scalars: Sequence[Scalar], dtype: np.typing.DTypeLike) -> Tensor:
        """A vector of its elements."""
        kind = self.tensor_type([len(scalars)], np.dtype(dtype))
        value = self.op("tensor.from_elements", [s.value for s in scalars], kind)
        self._entries[value] = list(scalars)
        return Tensor(np.dtype(dtype), (len(scalars),), value, (0,))

    def entries(self, x: Tensor) -> list[Scalar] | None:
        """The elements of a small vector (or scalar) that was made from scalars, or is known."""
        if x.rank > 1 or not x.is_static or x.size > 64:
            return None
        if x.is_known and x.size and x.dtype in _COUNTS:
            return [self._as_scalar(int(n), x.dtype) for n in x.numpy().reshape(-1)]
        return None if isinstance(x.data, np.ndarray) else self._entries.get(x.data)

    def computed_sizes(
        self, body: Callable, xs: Sequence[Tensor], shape: Sequence[Size], dtype: np.dtype
    ) -> Tensor | None:
        """The result of an elementwise operation on sizes, of which some are known at run time only."""
        if len(shape) > 1 or not is_static(shape) or dtype not in (*_COUNTS, np.dtype(bool)):
            return None
        count = prod(shape)
        vectors = [self._size_elements(x, count) for x in xs] if count <= 64 else [None]
        results = None if None in vectors else size_math.apply(body, vectors)  # type: ignore[arg-type]
        if results is None:
            return None
        if dtype not in _COUNTS or is_static(results):
            return Tensor.known(np.array(results, dtype).reshape(tuple(shape)))
        return self.shape_tensor(results, dtype) if shape else self.size_tensor(results[0], dtype)

    def reduced_sizes(self, kind: str, x: Tensor, keepdims: bool) -> Tensor | None:
        """The sum, product, largest or smallest of a vector of sizes, of which some are known at run time only."""
        if x.rank != 1 or x.is_known or not x.is_static or x.size == 0 or x.dtype not in _COUNTS:
            return None
        elements = self._size_elements(x, 1)
        if elements is None:
            return None
        total = reduce(_REDUCED[kind], elements)
        return self.shape_tensor([total], x.dtype) if keepdims else self.size_tensor(total, x.dtype)

    def _size_elements(self, x: Tensor, count: int) -> list[Size] | None:
        """The elements of a vector of sizes, or of one that is known, broadcast to `count`."""
        if x.rank > 1 or x.dtype not in (*_COUNTS, np.dtype(bool)):
            return None
        if x.is_known:
            elements = x.numpy().reshape(-1).tolist()
        else:
            entries = self.entries(x)
            if entries is None or any(s.value not in self._sizes for s in entries):
                return None
            elements = [self._sizes[s.value] for s in entries]
        return elements * count if len(elements) == 1 else elements

    def _as_scalar(self, size: Size, dtype: np.dtype = I64) -> Scalar:
        """An integer that remembers which size it is."""
        scalar = self.math.scalar(size, dtype) if isinstance(size, int) else self.math.cast(self.idx(size), dtype)
        self._sizes[scalar.value] = size
        return scalar

    def _as_size(self, scalar: Scalar) -> Size:
        found = self._sizes.get(scalar.value)
        return Dim(self.idx(scalar).value, nonneg=False) if found is None else found

    def positions(self, size: Size, dtype: np.typing.DTypeLike = I64) -> Tensor:
        """The vector 0, 1, ... size - 1."""
        dtype = np.dtype(dtype)
        if isinstance(size, int):
            check_known(size)
            return Tensor.known(np.arange(size).astype(dtype))
        return self.produce([size], dtype, lambda m, i: m.cast(m.cast(i, I64), dtype))

    # Declared shapes --------------------------------------------------------------------------------------------

    def settle(self, shape: Sequence[Size], declared: Sequence[int | None] | None, node: Node) -> tuple[Size, ...]:
        """Sizes of a result with those that the model declares in the place of Dims, checked at run time.

        An open size of an input of the model stays open, whatever a result is declared to be: exporters leave sizes of
        their example behind (onnxmltools declares one label for a batch of any size).
        """
        if declared is None or is_static(shape):
            return tuple(shape)
        if len(declared) != len(shape):
            node.wrong(f"the result has {len(shape)} dimensions, but the model declares {list(declared)}")
        return tuple(
            n if stated is None or isinstance(n, int) or self.symbols.has(n)
            else self.require_same(n, stated, _contradiction(d, stated))
            for d, (n, stated) in enumerate(zip(shape, declared, strict=True))
        )  # fmt: skip

    def refine(self, x: Tensor, declared: Sequence[int | None] | None, node: Node) -> Tensor:
        """`x` with the sizes that the model declares, checked at run time."""
        return x if x.is_static else self.resize(x, self.settle(x.shape, declared, node))

    def resize(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """`x` with other words for the same sizes: ints for Dims, or the reverse."""
        if is_static(shape) and 0 in shape:
            return nothing(shape, x.dtype)
        x = self.stored(x)
        data = self.resized(x.data, [1 if d is None else shape[d] for d in x.dims])
        return Tensor(x.dtype, tuple(shape), data, x.dims)

    # Broadcasting -----------------------------------------------------------------------------------------------

    def common_shape(self, *shapes: Sequence[Size]) -> tuple[Size, ...]:
        """NumPy's broadcast of shapes. Sizes known at run time only may turn out to be 1."""
        if all(map(is_static, shapes)):
            return np.broadcast_shapes(*shapes)
        rank = max(map(len, shapes))
        padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
        return tuple(reduce(self._common_size, sizes) for sizes in zip(*padded, strict=True))

    def _common_size(self, a: Size, b: Size) -> Size:
        if same(a, b) or isinstance(b, int) and b == 1:
            return a
        if isinstance(a, int) and a == 1:
            return b
        if isinstance(a, int) and isinstance(b, int):
            raise ValueError(f"sizes {a} and {b} do not broadcast")
        if isinstance(a, int) or isinstance(b, int):
            return a if isinstance(a, int) else b
        joined = self.symbols.join(a, b) if ir.InsertionPoint.current.block == self.entry else None
        if joined is not None:
            return joined
        m = self.math
        return Dim(m.where(m.eq(self.idx(a), self.idx(1)), self.idx(b), self.idx(a)).value)

    # Movement ---------------------------------------------------------------------------------------------------

    def common_outline(self, xs: Sequence[Tensor], axis: int) -> list[Size]:
        """The sizes that all tensors share, but for their sum along `axis`."""
        shape = list(xs[0].shape)
        for x in xs[1:]:
            if x.rank != len(shape):
                raise ValueError(f"inputs of {len(shape)} and {x.rank} dimensions")
            for d, n in enumerate(x.shape):
                message = f"dimension {d} differs among the inputs"
                shape[d] = shape[d] + n if d == axis else self.require_same(shape[d], n, message)
        return shape

    def slice_reads(self, x: Tensor, starts: Sequence[Size], sizes: Sequence[Size], steps: Sequence[Size]) -> Tensor:
        """A slice by single elements: steps of any sign."""
        x = self.stored(x)

        def body(m, *indices):
            places = zip(indices, starts, steps, strict=True)
            return self.read(x, [i * self.idx(step) + self.idx(start) for i, start, step in places])

        return self.produce(sizes, x.dtype, body)

    def gather_reads(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        """See Builder.gather."""
        limit, inner = x.shape[axis], indices.rank
        x, indices = self.stored(x), self.stored(indices)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        self.require_elements(limit, shape, axis)

        def body(m, *place):
            row = self.wrapped_index(self.read(indices, place[axis : axis + inner]), limit)
            return self.read(x, [*place[:axis], row, *place[axis + inner :]])

        return self.produce(shape, x.dtype, body)

    def require_elements(self, limit: Size, shape: Sequence[Size], axis: int) -> None:
        """A gather of something from an axis without elements stops the run."""
        if isinstance(limit, Dim):
            m, total = self.math, self.idx(prod(shape))
            some = m.logical_or(self.idx(limit) > self.idx(0), m.eq(total, self.idx(0)))
            self.require(some, f"there is nothing to gather along axis {axis}")

    def wrapped_index(self, index: Scalar, limit: Size) -> Scalar:
        """An index into `limit` elements; negative ones count from the end, others are clamped to the bounds."""
        m, index, size = self.math, self.idx(index), self.idx(limit)
        index = m.where(index < self.idx(0), index + size, index)
        return m.minimum(m.maximum(index, self.idx(0)), size - self.idx(1))


def _length(x: Tensor) -> int:
    size = x.size
    return size if isinstance(size, int) else size.__index__()


def _contradiction(d: int, stated: int) -> str:
    return f"dimension {d} of the result is not {stated}, the size that the model declares"
