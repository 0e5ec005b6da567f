# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder that operators are written with: from tensors to tensors, with small known values folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import Dim, Size, has_zero, is_static, marked, same_shape, values
from tilewright.frontend.builder.dtypes import F32, computed, fitted, highest, is_float, is_narrow, lowest
from tilewright.frontend.builder.dynamic import Dynamic
from tilewright.frontend.builder.emit import At, Index, Space
from tilewright.frontend.builder.limits import KNOWN_ELEMENTS
from tilewright.frontend.builder.scalars import INDEX, NumpyMath, Scalar
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.mlir import ir

FOLD_ELEMENTS = 1 << 14  # floats: larger results of known values stay ops on weights, run once at compile time

# The fold of known values, and the body (m, x, accumulator), of each reduction.
REDUCTIONS: dict[str, tuple[Callable, Callable]] = {
    "sum": (np.add.reduce, lambda m, x, acc: acc + x),
    "prod": (np.multiply.reduce, lambda m, x, acc: acc * x),
    "max": (np.maximum.reduce, lambda m, x, acc: m.maximum(acc, x)),
    "min": (np.minimum.reduce, lambda m, x, acc: m.minimum(acc, x)),
}


def neutral(kind: str, dtype: np.dtype) -> float:
    """The neutral element of a reduction."""
    return {"sum": 0, "prod": 1, "max": lowest(dtype), "min": highest(dtype)}[kind]


def foldable(xs: Sequence[Tensor], size: int) -> bool:
    """Whether a result of `size` elements is computed here and now."""
    limit = FOLD_ELEMENTS if any(is_float(x.dtype) for x in xs) else KNOWN_ELEMENTS
    return size <= limit and all(x.is_known for x in xs)


class Builder(Dynamic):
    """Tensor functions. Dimensions of size 1 broadcast as in NumPy; sizes may be Dims, known at run time only."""

    # Elementwise ----------------------------------------------------------------------------------------------

    def elementwise(
        self,
        body: Callable[..., Scalar],
        *xs: Tensor,
        dtype: np.typing.DTypeLike = None,
        shape: Sequence[Size] = (),
        order: Sequence[int] | None = None,
        into: ir.Value | None = None,
    ) -> Tensor:
        """Apply `body(m, *elements)` over the broadcast inputs (broadcast to `shape` too, where given).

        The result is stored as the largest input is, or in the given `order` of its dimensions; in the place of
        the tensor `into`, where given.
        """
        dtype = xs[0].dtype if dtype is None else np.dtype(dtype)
        shape = self.common_shape(*(x.shape for x in xs), tuple(shape))
        if is_static(shape) and prod(shape) == 0:
            return nothing(shape, dtype)
        if into is None and is_static(shape) and foldable(xs, prod(shape)):
            with np.errstate(all="ignore"):
                result = fitted(np.asarray(body(NumpyMath, *(computed(x.numpy()) for x in xs))), dtype)
            return Tensor.known(np.broadcast_to(result, shape))
        if into is None and (sizes := self.computed_sizes(body, xs, shape, dtype)) is not None:
            return sizes
        order = _common_order(xs, shape) if order is None else order
        inlined = [x.is_known and x.size == 1 for x in xs]
        inputs = [(x, _right_aligned(x, len(shape))) for x, known in zip(xs, inlined, strict=True) if not known]

        def whole(m, *elements):
            rest = iter(elements)
            return body(
                *[m, *(m.scalar(_item(x), x.dtype) if k else next(rest) for x, k in zip(xs, inlined, strict=True))]
            )

        return self.generic(Space(shape), inputs, range(len(shape)), dtype, whole, order=order, into=into)

    def copy(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """The same tensor stored in another order of its dimensions."""
        kept = tuple(d for d in order if x.shape[d] != 1)
        if x.is_known and foldable([x], x.size):
            moved = x.numpy().transpose([*kept, *(d for d in range(x.rank) if x.shape[d] == 1)])
            data = np.ascontiguousarray(moved).reshape([x.shape[d] for d in kept] or [1])
            return Tensor(x.dtype, x.shape, data, kept or (None,))
        return self.generic(Space(x.shape), [(x, range(x.rank))], range(x.rank), x.dtype, _same, order=order)

    def broadcast(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """NumPy's broadcast of `x` and `shape` (ONNX Expand)."""
        shape = self.common_shape(x.shape, tuple(shape))
        if same_shape([n for n in x.shape if n != 1], [n for n in shape if n != 1]):
            return x.with_ones(shape)
        if x.is_known and is_static(shape) and (x.size == 1 or foldable([x], prod(shape))):
            return Tensor.known(np.broadcast_to(x.numpy(), shape))
        return self.elementwise(_same, x, shape=shape)

    def cast(self, x: Tensor, dtype: np.typing.DTypeLike) -> Tensor:
        """ONNX Cast."""
        dtype = np.dtype(dtype)
        return x if x.dtype == dtype else self.elementwise(lambda m, a: m.cast(a, dtype), x, dtype=dtype)

    # Reductions and contractions ------------------------------------------------------------------------------

    def reduce(
        self, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool = True, start: float | None = None
    ) -> Tensor:
        """Reduce `axes` (non-negative) by sum, prod, max or min, from `start` or the neutral element on."""
        shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        final = shape if keepdims else tuple(n for d, n in enumerate(x.shape) if d not in axes)
        function, body = REDUCTIONS[kind]
        first = neutral(kind, x.dtype) if start is None else start
        if x.is_static and x.size == 0:
            return Tensor.known(np.full(final, first, x.dtype))
        if x.is_known and foldable([x], x.size):
            result = function(x.numpy(), axis=tuple(axes), keepdims=True, initial=start).astype(x.dtype)
            return Tensor.known(result).with_ones(final)
        if same_shape(shape, x.shape):
            return (x if start is None else self.elementwise(lambda m, a: body(m, a, start), x)).with_ones(final)
        if is_narrow(x.dtype) and kind in ("sum", "prod"):
            return self.cast(self.reduce(kind, self.cast(x, F32), axes, keepdims, start), x.dtype)
        space = Space(x.shape, frozenset(axes))
        order = [d for d in x.stored_order() if d not in axes]
        out = [None if d in axes else d for d in range(x.rank)]
        return self.generic(space, [(x, range(x.rank))], out, x.dtype, body, first, order).with_ones(final)

    def contract(
        self,
        space: Space,
        a: tuple[Tensor, Sequence[Index]],
        b: tuple[Tensor, Sequence[Index]],
        out: Sequence[int | None],
        order: Sequence[int] | None = None,
    ) -> Tensor:
        """Sum of products over the space's reductions: matrix products and convolutions.

        Floats of 16 bits and fewer are summed as f32.
        """
        dtype = a[0].dtype
        if any(x.is_static and x.size == 0 for x, _ in (a, b)) and is_static(space.sizes):
            return Tensor.known(np.zeros([1 if d is None else space.sizes[d] for d in out], dtype))
        if is_narrow(dtype):
            return self.cast(self.generic(space, [a, b], out, F32, lambda m, x, y, acc: acc + x * y, 0.0, order), dtype)
        if all(space.sizes[d] == 1 for d in space.reduced):
            return self.generic(space, [a, b], out, dtype, lambda m, x, y, acc: x * y, order=order)
        return self.generic(space, [a, b], out, dtype, lambda m, x, y, acc: acc + x * y, 0.0, order)

    # Movement -------------------------------------------------------------------------------------------------

    def slice(self, x: Tensor, starts: Sequence[Size], sizes: Sequence[Size], steps: Sequence[Size]) -> Tensor:
        """Elements starts[d] + i * steps[d], i < sizes[d], of each logical dimension d. All must lie inside."""
        shape = tuple(sizes)
        if same_shape(shape, x.shape) and all(s == 1 for s, n in zip(steps, shape, strict=True) if n != 1):
            return x
        if has_zero(shape):
            return self.hollow(shape, x.dtype)
        if not is_static(steps):
            return self.slice_reads(x, starts, sizes, steps)
        static = is_static((*starts, *sizes, *x.shape))
        if static and x.is_known:
            return Tensor.known(x.numpy()[tuple(_range(*key) for key in zip(starts, sizes, steps, strict=True))])
        if any(s < 0 for s, n in zip(steps, sizes, strict=True) if n != 1):
            if not static:
                return self.slice_reads(x, starts, sizes, steps)
            at = [At(((d, steps[d]),), starts[d]) for d in range(x.rank)]
            order = [d for d in x.stored_order() if shape[d] != 1]
            return self.generic(Space(shape), [(x, at)], range(x.rank), x.dtype, _same, order=order)
        x = self.stored(x)
        if any(d not in x.dims and not isinstance(n, int) for d, n in enumerate(shape)):
            return self.slice_reads(x, starts, sizes, steps)  # of a size 1 that is not stored remains 0 or 1
        offsets = [0 if d is None else starts[d] for d in x.dims]
        extents = [1 if d is None else shape[d] for d in x.dims]
        strides = [1 if d is None or shape[d] == 1 else steps[d] for d in x.dims]
        value, dims = self.extract(x.data, offsets, extents, strides), x.dims
        return Tensor(x.dtype, shape, value, _kept(dims, extents))

    def hollow(self, shape: Sequence[Size], dtype: np.dtype) -> Tensor:
        """A tensor that is known to have no elements, though some of its sizes may not be known."""
        if is_static(shape):
            return nothing(shape, dtype)
        dims = [d for d, n in enumerate(shape) if n != 1]
        return Tensor(dtype, tuple(shape), self.empty([shape[d] for d in dims], dtype), tuple(dims))

    def extract(
        self,
        source: ir.Value,
        offsets: Sequence[Size | ir.Value],
        sizes: Sequence[Size],
        strides: Sequence[int] | None = None,
    ) -> ir.Value:
        """tensor.extract_slice; result dimensions of size 1 are dropped (one stays where all are)."""
        kept = [n for n in sizes if n != 1] or [1]
        kind = ir.RankedTensorType.get(marked(kept), source.type.element_type)
        if has_zero(kept) or _at_the_end(source, offsets):
            return self.op("tensor.empty", values(kept), kind)
        _check_inside(source.type.shape, offsets, sizes, strides)
        dynamic, attributes = _slice_attributes(offsets, sizes, strides, [1])
        return self.op("tensor.extract_slice", [source, *dynamic], kind, attributes)

    def insert(
        self,
        source: ir.Value,
        target: ir.Value,
        offsets: Sequence[Size | ir.Value],
        sizes: Sequence[Size],
        strides: Sequence[int] | None = None,
    ) -> ir.Value:
        """tensor.insert_slice of what `extract` with the same arguments gave."""
        if has_zero(sizes) or _at_the_end(target, offsets):
            return target
        dynamic, attributes = _slice_attributes(offsets, sizes, strides, [1, 1])
        return self.op("tensor.insert_slice", [source, target, *dynamic], target.type, attributes)

    def write(
        self,
        x: Tensor,
        target: ir.Value,
        dims: Sequence[int | None],
        offsets: Sequence[Size | ir.Value],
    ) -> ir.Value:
        """`target` with `x` copied to `offsets`; dims[j] is the dimension of x along stored dimension j of target."""
        sizes = [1 if d is None else x.shape[d] for d in dims]
        x = self.stored(x)
        piece = self.extract(target, offsets, sizes)
        loops = [d for d in dims if d is not None and x.shape[d] != 1]
        space = Space(x.shape)
        space.arrange(loops)
        rank = max(1, len(loops))
        read = self.input_map(x, range(x.rank), space, rank)
        kinds = [0] * rank
        copied = self.raw_generic(kinds, [(x, read)], piece, ir.AffineMap.get_identity(rank), x.dtype, _same)
        return self.insert(copied, target, offsets, sizes)

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        """Concatenate along a logical dimension."""
        xs = [x for x in xs if not _adds_nothing(x, axis)] or list(xs)
        shape = self.common_outline(xs, axis)
        if has_zero(shape):
            return self.hollow(shape, xs[0].dtype)
        if len(xs) == 1:
            return xs[0]
        if is_static(shape) and foldable(xs, prod(shape)):
            return Tensor.known(np.concatenate([x.numpy() for x in xs], axis))
        dims = [d for d in _common_order(xs, shape) if shape[d] != 1]
        value, at = self.empty([shape[d] for d in dims], xs[0].dtype), 0
        for x in xs:
            if not has_zero(x.shape):
                value = self.write(x, value, dims, [at if d == axis else 0 for d in dims])
            at += x.shape[axis]
        return Tensor(xs[0].dtype, tuple(shape), value, tuple(dims))

    def pad(
        self,
        x: Tensor,
        low: Sequence[Size],
        high: Sequence[Size],
        value: Scalar | float,
        order: Sequence[int] | None = None,
        shape: Sequence[Size] | None = None,
    ) -> Tensor:
        """Surround with a constant.

        Args:
            x: what is surrounded.
            low: non-negative amounts before each dimension.
            high: the same behind it.
            value: the constant.
            order: all dimensions, as the result is to be stored.
            shape: of the result, where more is known of it than follows from `low` and `high`.
        """
        shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True)) if shape is None else tuple(shape)
        if same_shape(shape, x.shape):
            return x if order is None else self.ordered(x, order)
        static = is_static((*shape, *low, *high))
        if static and not isinstance(value, Scalar) and foldable([x], prod(shape)):
            width = list(zip(low, high, strict=True))
            padded = np.pad(x.numpy(), width, constant_values=x.dtype.type(value))  # pyright: ignore[reportCallIssue]
            return Tensor.known(padded)
        chosen = _common_order([x], shape) if order is None else order
        dims = [d for d in chosen if shape[d] != 1]
        target = self.filled(value, [shape[d] for d in dims] or [1], x.dtype)
        if not has_zero(x.shape):
            target = self.write(x, target, dims or [None], [low[d] for d in dims] or [0])
        return Tensor(x.dtype, tuple(shape), target, tuple(dims) or (None,))

    def gather(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        """x[..., indices, ...] along `axis`. Negative indices count from the end; others are clamped to the bounds."""
        if not x.is_static:
            return self.gather_reads(x, indices, axis)
        limit, inner = x.shape[axis], indices.rank
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        if has_zero(shape):
            return self.hollow(shape, x.dtype)
        if is_static(shape) and foldable([x, indices], prod(shape)):
            return Tensor.known(np.take(x.numpy(), indices.numpy(), axis))
        table = self.stored(x)
        place = [d if d < axis else d + inner - 1 for d in range(x.rank)]  # loop along each dimension of x
        space = Space(shape)
        loops = [d for d in range(len(shape)) if shape[d] != 1]

        def body(m, index, _):
            wrapped = m.where(index < 0, index + limit, index)
            row = m.cast(m.minimum(m.maximum(wrapped, 0), limit - 1), INDEX)
            position = [self._position(d, axis, row, place, space, table) for d in table.dims]
            element = self.op("tensor.extract", [table.data, *position], self.element_type(x.dtype))
            return Scalar(m, element, x.dtype)

        inputs = [(indices, range(axis, axis + inner))]
        return self.generic(space, inputs, range(len(shape)), x.dtype, body, order=loops)

    def repeat(self, x: Tensor, times: int, axis: int, size: int) -> Tensor:
        """Each index along `axis` `times` times, of which the result has the first `size`: a read by `floordiv`.

        For what is known at compile time; planning then sees which elements of the result are one of `x`.
        """
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        if has_zero(shape):
            return self.hollow(shape, x.dtype)
        x = self.stored(x)
        loops = [d for d in range(x.rank) if shape[d] != 1] or [0]
        exprs = []
        for d in x.dims:
            at = self._zero if d is None else self._dim(loops.index(d))
            exprs.append(ir.AffineExpr.get_floor_div(at, times) if d == axis else at)
        read = ir.AffineMap.get(len(loops), 0, exprs)
        place = self.empty([shape[d] for d in loops], x.dtype)
        same = ir.AffineMap.get_identity(len(loops))
        value = self.raw_generic([0] * len(loops), [(x, read)], place, same, x.dtype, _same)
        return Tensor(x.dtype, shape, value, tuple(d if shape[d] != 1 else None for d in loops))

    def _position(self, dim, axis, row, place, space, table) -> ir.Value:
        if dim == axis:
            return self.index(0) if table.shape[axis] == 1 else row.value
        number = None if dim is None else space.number.get(place[dim])
        if number is None:
            return self.index(0)
        attribute = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        return self.op("linalg.index", [], ir.IndexType.get(), attribute)


def _same(m, x, *_):
    return x


def _at_the_end(x: ir.Value, offsets: Sequence[Size | ir.Value]) -> bool:
    """Whether a slice begins behind the last element: it is empty, and no offset may say so."""
    sizes = x.type.shape
    return any(isinstance(o, int) and 0 <= n <= o for o, n in zip(offsets, sizes, strict=True))


def _adds_nothing(x: Tensor, axis: int) -> bool:
    """Whether a concatenation is the same without x; exporters write an empty vector for nothing of any rank."""
    return x.is_static and x.size == 0 and (x.rank <= axis or x.shape[axis] == 0)


def _item(x: Tensor):
    return x.data.reshape(-1)[0]


def _range(start: int, size: int, step: int) -> slice:
    stop = start + size * step
    return slice(start, None if stop < 0 else stop, step)


def _kept(dims: Sequence[int | None], extents: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(d for d, n in zip(dims, extents, strict=True) if n != 1) or (None,)


def _right_aligned(x: Tensor, rank: int) -> list[int]:
    return list(range(rank - x.rank, rank))


def _common_order(xs: Sequence[Tensor], shape: Sequence[int]) -> list[int]:
    """How a result of `shape` is stored: as its largest input, preferring those that are not weights.

    Row-major where sizes are known at run time only.
    """
    if not (is_static(shape) and all(x.is_static for x in xs)):
        return list(range(len(shape)))
    model = max(xs, key=lambda x: (x.size, not x.is_known))
    shift = len(shape) - model.rank
    order = [d + shift for d in model.stored_order()]
    for d in range(len(shape)):
        if shape[d] != 1 and d not in order:
            later = [i for i, other in enumerate(order) if other > d]
            order.insert(later[0] if later else len(order), d)
    return order


def _check_inside(shape: Sequence[int], offsets, sizes: Sequence[Size], strides: Sequence[int] | None) -> None:
    """Raises ValueError for a slice beyond what it is taken from, as far as that is known."""
    for n, at, size, step in zip(shape, offsets, sizes, strides or [1] * len(sizes), strict=True):
        if not all(isinstance(v, int) for v in (at, size, step)) or ir.ShapedType.is_dynamic_size(n):
            continue
        if at < 0 or at + (size - 1) * step >= n:
            raise ValueError(f"a size of {n} does not fit {size} elements from {at} on")


def _slice_attributes(offsets, sizes, strides, leading: list[int]) -> tuple[list[ir.Value], dict]:
    offsets = [Dim(o) if isinstance(o, ir.Value) else o for o in offsets]
    strides = list(strides or [1] * len(sizes))
    dynamic = [values(group) for group in (offsets, sizes, strides)]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get(marked(offsets)),
        "static_sizes": ir.DenseI64ArrayAttr.get(marked(sizes)),
        "static_strides": ir.DenseI64ArrayAttr.get(marked(strides)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*leading, *map(len, dynamic)]),
    }
    return sum(dynamic, []), attributes
