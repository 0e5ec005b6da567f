# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar programs on tensors: `scf.for`, `scf.while` and `scf.if` with carried tensors and scalars.

For operators that no `linalg.generic` describes: sorting, scattering, whatever depends on data. ::

    def total(b, x):  # of the positive elements of a vector
        def body(i, acc):
            v = b.at(x, [i])
            return [b.math.where(v > 0, acc + v, acc)]

        return b.for_(0, x.shape[0], [b.math.scalar(0, x.dtype)], body)[0]

Tensors in such programs are *arrays*: stored row-major with all their dimensions (`Loops.array`). Every function here
takes any tensor and makes it one; what loops carry and return are arrays. A `put` gives a new tensor, as all of layer
1 does; bufferization writes in place where a loop hands its carried tensor from one `put` to the next. Do not exchange
two carried tensors in a body, nor read the old one after a `put`: each costs a copy per iteration.

Indices, bounds and sizes (`Index`) are ints, Dims, SSA values of type index, or integer Scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder import dims
from tilewright.frontend.builder.dims import Dim, Size
from tilewright.frontend.builder.reshaping import Reshaper
from tilewright.frontend.builder.scalars import INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.mlir import ir

Index = Any  # int | Dim | ir.Value | Scalar
Carried = Tensor | Scalar  # what loops and branches hand on; bodies may return Python numbers for scalars
Body = Callable[..., Sequence]


class Loops(Reshaper):
    """Adds scalar programs to the builder."""

    # Values ---------------------------------------------------------------------------------------------------

    def array(self, x: Tensor) -> Tensor:
        """`x` stored row-major, dimensions of size 1 included."""
        if isinstance(x.data, np.ndarray) and x.data.size == 0:
            return self.blank(x.shape, x.dtype)
        return Tensor(x.dtype, x.shape, self.value(x), tuple(range(x.rank)))

    def size(self, value: Index) -> Size:
        """An entry of a shape: an int or a Dim."""
        return value if isinstance(value, int | Dim) else Dim(self.idx(value).value)

    def blank(self, shape: Sequence[Index], dtype: np.typing.DTypeLike) -> Tensor:
        """A new array of undefined elements."""
        sizes = tuple(self.size(n) for n in shape)
        kind = ir.RankedTensorType.get(dims.marked(sizes), self.element_type(np.dtype(dtype)))
        value = self.op("tensor.empty", dims.values(sizes), kind)
        return Tensor(np.dtype(dtype), sizes, value, tuple(range(len(sizes))))

    def full(self, value: Scalar | float, shape: Sequence[Index], dtype: np.typing.DTypeLike) -> Tensor:
        """A new array of one value."""
        x = self.blank(shape, dtype)
        return self._like(x, self.fill(value, _value(x), x.dtype))

    def item(self, x: Tensor) -> Scalar:
        """The element of a tensor of one element; a constant where it is known."""
        if x.is_known:
            if x.size == 0:
                raise ValueError("a parameter has no elements")
            return self.math.scalar(x.numpy().reshape(-1)[0].item(), x.dtype)
        return self.at(x, [0] * x.rank)

    def at(self, x: Tensor, indices: Sequence[Index]) -> Scalar:
        """The element of `x` at one index per dimension. Negative ones do not count from the end."""
        x = self.array(x) if not self._is_array(x) else x
        operands = [_value(x), *(self.idx(i).value for i in indices)]
        return Scalar(self.math, self.op("tensor.extract", operands, self.element_type(x.dtype)), x.dtype)

    def put(self, value: Scalar | float, x: Tensor, indices: Sequence[Index]) -> Tensor:
        """`x` with one element replaced."""
        x = self.array(x) if not self._is_array(x) else x
        element = self.math.scalar(value, x.dtype).value
        target = _value(x)
        operands = [element, target, *(self.idx(i).value for i in indices)]
        return self._like(x, self.op("tensor.insert", operands, target.type))

    def first(self, x: Tensor, count: Index, axis: int = 0) -> Tensor:
        """The first `count` positions along `axis`; the count may be known at run time only."""
        x = self.array(x)
        shape = tuple(self.size(count) if d == axis else n for d, n in enumerate(x.shape))
        marked, dynamic = dims.marked(shape), dims.values(shape)
        kind = ir.RankedTensorType.get(marked, self.element_type(x.dtype))
        if dims.has_zero(shape):
            return Tensor(x.dtype, shape, self.op("tensor.empty", dynamic, kind), x.dims)
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get([0] * x.rank),
            "static_sizes": ir.DenseI64ArrayAttr.get(marked),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * x.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(dynamic), 0]),
        }
        value = self.op("tensor.extract_slice", [_value(x), *dynamic], kind, attributes)
        return Tensor(x.dtype, shape, value, x.dims)

    def loosen(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """An array whose sizes along `axes` are no longer part of its type: it may be carried with others."""
        x = self.array(x)
        old = _value(x)
        sizes = [ir.ShapedType.get_dynamic_size() if d in axes else n for d, n in enumerate(old.type.shape)]
        value = self._fit(old, ir.RankedTensorType.get(sizes, old.type.element_type))
        return Tensor(x.dtype, self.sizes_of(value), value, x.dims)

    # Control --------------------------------------------------------------------------------------------------

    def for_(
        self,
        lower: Index,
        upper: Index,
        carried: Sequence[Carried],
        body: Body,
        step: int = 1,
        varying: bool = False,
    ) -> list[Any]:
        """A counted loop.

        Args:
            lower: the first value of the counter.
            upper: where it ends, exclusive.
            carried: tensors and scalars that iterations hand on.
            body: a function of (counter, *carried) that returns the next carried values.
            step: of the counter, positive.
            varying: whether iterations change those sizes of tensors that are unknown at compile time.

        Returns:
            The last carried values.
        """
        start = self._carry(carried)
        if isinstance(lower, int) and isinstance(upper, int):
            if upper <= lower:
                return start
            if upper - lower <= step:
                return self._carry(self._given(body(self.idx(lower), *start), start))
        if varying:  # an scf.for folds a cast of what it starts with, as if that were the type of every iteration
            return self._count_up(lower, upper, start, body, step)
        operands = [self.idx(lower).value, self.idx(upper).value, self.index(step), *(_value(c) for c in start)]
        kinds = [_value(c).type for c in start]
        loop = ir.Operation.create("scf.for", results=kinds, operands=operands, regions=1)
        block = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get(), *kinds])
        with ir.InsertionPoint(block):
            counter, *inner = block.arguments
            values = body(self.idx(counter), *self._bind(inner, start, False))
            ir.Operation.create("scf.yield", operands=self._operands(values, start))
        return self._bind(loop.results, start, False)

    def _count_up(self, lower: Index, upper: Index, start: Sequence[Carried], body: Body, step: int) -> list[Any]:
        end = self.idx(upper)

        def iterate(counter: Scalar, *now: Carried) -> list[Any]:
            return [counter + step, *body(counter, *now)]

        first = self.idx(lower)
        return self.while_([first, *start], lambda counter, *_: counter < end, iterate, varying=True)[1:]

    def nest(self, shape: Sequence[Index], carried: Sequence[Carried], body: Body) -> list[Any]:
        """A loop over all indices of a shape in row-major order. The body gets (list of indices, *carried).

        It is one loop, not several: what it carries is handed on in place.
        """
        sizes = [self.size(n) for n in shape]
        total: Size = 1
        for n in sizes:
            total = n * total
        return self.for_(0, total, carried, lambda i, *values: body(self._split(i, sizes), *values))

    def _split(self, place: Scalar, sizes: Sequence[Size]) -> list[Scalar]:
        """A row-major position as one index per dimension."""
        loops = [d for d, n in enumerate(sizes) if n != 1]
        result = [self.idx(0)] * len(sizes)
        for d in reversed(loops[1:]):
            size = self.math.scalar(sizes[d], INDEX) if isinstance(sizes[d], int) else self.idx(sizes[d])
            result[d], place = self.math.rem(place, size), self.math.div(place, size)
        if loops:
            result[loops[0]] = place
        return result

    def while_(
        self,
        carried: Sequence[Carried],
        condition: Callable[..., Scalar],
        body: Body,
        varying: bool = False,
    ) -> list[Any]:
        """Repeat `body` as long as `condition` holds; both are functions of (*carried). See for_."""
        start = self._carry(carried)
        values = [_value(c) for c in start]
        kinds = [v.type for v in values]
        loop = ir.Operation.create("scf.while", results=kinds, operands=values, regions=2)
        before, after = (ir.Block.create_at_start(region, kinds) for region in loop.regions)
        with ir.InsertionPoint(before):
            holds = condition(*self._bind(before.arguments, start, varying))
            ir.Operation.create("scf.condition", operands=[holds.value, *before.arguments])
        with ir.InsertionPoint(after):
            following = body(*self._bind(after.arguments, start, varying))
            ir.Operation.create("scf.yield", operands=self._operands(following, start))
        return self._bind(loop.results, start, varying)

    def if_(self, condition: Scalar, then: Callable[[], Sequence], else_: Callable[[], Sequence]) -> list[Any]:
        """The results of one of two functions of (). A size in which their tensors differ is a Dim of the result.

        Raises:
            UnsupportedError: the branches give different ranks or element types.
        """
        draft = ir.Operation.create("scf.if", operands=[condition.value], regions=2)
        blocks = [ir.Block.create_at_start(region, []) for region in draft.regions]
        results = []
        for block, branch in zip(blocks, (then, else_), strict=True):
            with ir.InsertionPoint(block):
                results.append(self._carry(branch()))
        kinds = [_join(_value(a).type, _value(c).type) for a, c in zip(*results, strict=True)]
        final = ir.Operation.create("scf.if", results=kinds, operands=[condition.value], regions=2)
        for region, block, values in zip(final.regions, blocks, results, strict=True):
            block.append_to(region)
            with ir.InsertionPoint(block):
                operands = [self._fit(_value(v), kind) for v, kind in zip(values, kinds, strict=True)]
                ir.Operation.create("scf.yield", operands=operands)
        draft.erase()
        return self._bind(final.results, results[0], True)

    # Between values and what bodies see -------------------------------------------------------------------------

    def _is_array(self, x: Tensor) -> bool:
        return isinstance(x.data, ir.Value) and x.dims == tuple(range(x.rank))

    def _like(self, x: Tensor, value: ir.Value) -> Tensor:
        return Tensor(x.dtype, x.shape, value, x.dims)

    def _carry(self, values: Sequence[Carried]) -> list[Any]:
        return [self.array(v) if isinstance(v, Tensor) else v for v in values]

    def _given(self, values: Sequence, start: Sequence[Carried]) -> list[Any]:
        """What a body returned as carried values of the kinds of `start`."""
        pairs = zip(values, start, strict=True)
        return [v if isinstance(v, Tensor) else self.math.scalar(v, c.dtype) for v, c in pairs]

    def _operands(self, values: Sequence, start: Sequence[Carried]) -> list[ir.Value]:
        given = self._carry(self._given(values, start))
        return [self._fit(_value(v), _value(c).type) for v, c in zip(given, start, strict=True)]

    def _bind(self, values: Sequence[ir.Value], like: Sequence[Carried], varying: bool) -> list[Any]:
        return [self._bound(v, c, varying) for v, c in zip(values, like, strict=True)]

    def _bound(self, value: ir.Value, like: Carried, varying: bool) -> Carried:
        if isinstance(like, Scalar):
            return Scalar(self.math, value, like.dtype)
        shape = self.sizes_of(value) if varying else like.shape
        return Tensor(like.dtype, shape, value, tuple(range(like.rank)))

    def _fit(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        """The value under a type that differs only in which sizes it holds."""
        return value if value.type == kind else self.op("tensor.cast", [value], kind)

    def sizes_of(self, value: ir.Value) -> tuple[Size, ...]:
        """The sizes that a value itself has: those of its type, and what `tensor.dim` says of the others."""
        dynamic, kind = ir.ShapedType.get_dynamic_size(), ir.IndexType.get()
        return tuple(
            Dim(self.op("tensor.dim", [value, self.index(d)], kind)) if n == dynamic else n
            for d, n in enumerate(value.type.shape)
        )


def _value(x: Carried) -> ir.Value:
    value = x.data if isinstance(x, Tensor) else x.value
    assert isinstance(value, ir.Value)
    return value


def _join(a: ir.Type, b: ir.Type) -> ir.Type:
    """The type that holds the values of both."""
    if a == b:
        return a
    tensors = isinstance(a, ir.RankedTensorType) and isinstance(b, ir.RankedTensorType)
    if not tensors or a.rank != b.rank or a.element_type != b.element_type:
        raise UnsupportedError(f"the branches give {a} and {b}; ranks and element types must agree")
    sizes = [m if m == n else ir.ShapedType.get_dynamic_size() for m, n in zip(a.shape, b.shape, strict=True)]
    return ir.RankedTensorType.get(sizes, a.element_type)
