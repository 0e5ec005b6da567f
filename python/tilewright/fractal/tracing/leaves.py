# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Math on leaves as `linalg` and `tensor` ops of static shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.fractal.elementwise import ARITHMETIC, TABLE
from tilewright.fractal.tracing.emit import Emit, i64, is_splat
from tilewright.fractal.tracing.values import TensorValue
from tilewright.fractal.types import TensorType, is_number, number_dtype
from tilewright.fractal.where import public, wrong
from tilewright.frontend.builder.dtypes import BOOL, F32, highest, is_narrow, lowest
from tilewright.frontend.builder.tensor import Tensor
from tilewright.mlir import ir
from tilewright.mlir._mlir_libs._mlirDialectsLinalg import fill_builtin_region
from tilewright.mlir.dialects._linalg_ops_gen import MatmulOp, TransposeOp

Exprs = Sequence[int | None]  # for each dimension of a tensor the loop that it is read by; None: the first element
_SUMS = {
    "sum": (lambda m, x, acc: acc + x, lambda dtype: 0),
    "max": (lambda m, x, acc: m.maximum(acc, x), lowest),
    "min": (lambda m, x, acc: m.minimum(acc, x), highest),
}


class Leaves(Emit):
    """Functions of tensors; NumPy's meaning, types and broadcasting."""

    def generic(
        self,
        sizes: Sequence[int],
        inputs: Sequence[tuple[TensorValue, Exprs]],
        out: Sequence[int],
        dtype: np.dtype,
        body: Callable[..., Any],
        start: float | None = None,
    ) -> TensorValue:
        """One linalg.generic over loops of these sizes.

        Args:
            sizes: of the loops; those that `out` does not name are reductions.
            inputs: tensors, with the loop that reads each dimension.
            out: the loop along each dimension of the result.
            dtype: of the result.
            body: (m, *elements, accumulator) -> element.
            start: what the accumulator begins with; None: the body does not read it.
        """
        rank, e = len(sizes), self.emitter
        shape = [sizes[loop] for loop in out]

        def read(exprs: Exprs) -> ir.AffineMap:
            zero = ir.AffineExpr.get_constant(0)
            return ir.AffineMap.get(rank, 0, [zero if d is None else ir.AffineExpr.get_dim(d) for d in exprs])

        with self.here():
            init = e.empty(shape, dtype) if start is None else e.filled(start, shape, dtype)
            pairs = [(Tensor(x.dtype, x.shape, x.value, tuple(range(x.ndim))), read(exprs)) for x, exprs in inputs]
            kinds = [0 if loop in out else 1 for loop in range(rank)]
            value = e.raw_generic(kinds, pairs, init, read(out), dtype, body)
        return TensorValue(self, value, TensorType(tuple(shape), np.dtype(dtype)))

    # Elementwise --------------------------------------------------------------------------------------------------

    @public
    def elementwise(self, name: str, values: Sequence[Any]) -> TensorValue:
        """A function of the table."""
        function = TABLE[name]
        kinds, like = _kinds(name, values), function.like
        try:
            *read, result = like.resolve_dtypes((*kinds[: like.nin], None))
        except TypeError as error:
            raise wrong(name, f"it has no meaning for {_names(values)}: {error}") from None
        if name in ARITHMETIC and BOOL in read:
            raise wrong(name, f"it takes numbers, found {_names(values)}: ft.cast makes numbers of bools")
        return self._broadcast(name, values, read, result, function.body)

    @public
    def where(self, condition: Any, x: Any, y: Any) -> TensorValue:
        """x where the condition holds, else y."""
        values = (condition, x, y)
        kinds = [kind(0) if isinstance(kind, type) else kind for kind in _kinds("where", values)[1:]]
        result = number_dtype(x, y) if is_number(x) and is_number(y) else np.result_type(*kinds)
        return self._broadcast("where", values, [BOOL, result, result], result, lambda m, c, a, b: m.where(c, a, b))

    @public
    def cast(self, x: TensorValue, dtype: np.dtype) -> TensorValue:
        """Another element type."""
        if x.dtype == dtype:
            return x
        return self._broadcast("cast", [x], [x.dtype], dtype, lambda m, a: m.cast(a, dtype))

    def _broadcast(
        self, name: str, values: Sequence[Any], read: Sequence[np.dtype], result: np.dtype, body: Callable[..., Any]
    ) -> TensorValue:
        """Apply a body; numbers, and constants of one number, stand in it."""
        shapes = [np.shape(v) if _known(v) else v.shape for v in values]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            found = " and ".join(str(list(s)) for s in shapes)
            raise wrong(name, f"the shapes {found} do not fit: sizes counted from the right are equal, or 1") from None
        numbers = [_number(v) for v in values]
        tensors = [self.as_value(v) for v, number in zip(values, numbers, strict=True) if number is None]
        inputs = [(x, _aligned(x.shape, shape)) for x in tensors]

        def whole(m: Any, *elements: Any) -> Any:
            rest = iter(elements)
            operands = []
            for number, dtype in zip(numbers, read, strict=True):
                operands.append(m.cast(next(rest), dtype) if number is None else m.scalar(number, dtype))
            return m.cast(body(m, *operands), result)

        return self.generic(shape, inputs, range(len(shape)), result, whole)

    # Reductions and products --------------------------------------------------------------------------------------

    @public
    def reduce_axes(self, name: str, x: TensorValue, axis: Any, keepdims: bool) -> TensorValue:
        """A sum or an extremum along dimensions."""
        axes = set(range(x.ndim)) if axis is None else {self._axis(name, x, d) for d in np.atleast_1d(axis).tolist()}
        body, start = _SUMS[name]
        if x.dtype == BOOL:
            raise wrong(name, "it takes numbers, found bools: ft.cast makes numbers of them")
        dtype = np.sum(np.zeros(1, x.dtype)).dtype if name == "sum" else x.dtype
        wide = F32 if name == "sum" and is_narrow(dtype) else dtype
        kept = [d for d in range(x.ndim) if d not in axes]
        source = self.cast(x, wide)
        result = self.generic(x.shape, [(source, range(x.ndim))], kept, wide, body, start(dtype))
        shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
        return self.cast(self.reshape(result, shape) if keepdims else result, dtype)

    def _axis(self, name: str, x: TensorValue, axis: int) -> int:
        if not -x.ndim <= axis < x.ndim:
            raise wrong(name, f"there is no dimension {axis} in {x.type}")
        return axis % x.ndim

    @public
    def matmul(self, a: Any, b: Any) -> TensorValue:
        """NumPy's `@`."""
        a, b = self.as_value(a), self.as_value(b)
        if not (isinstance(a, TensorValue) and isinstance(b, TensorValue) and a.shape and b.shape):
            raise wrong("@", f"it takes two tensors of rank 1 or more, found {a.type} and {b.type}")
        if a.shape[-1] != b.shape[max(0, b.ndim - 2)] or BOOL in (a.dtype, b.dtype):
            raise wrong("@", f"{a.type} @ {b.type}: columns of the first and rows of the second are as many numbers")
        dtype = np.result_type(a.dtype, b.dtype)
        a, b = self.cast(a, dtype), self.cast(b, dtype)
        wide = F32 if is_narrow(dtype) else dtype
        return self.cast(self._plain_product(a, b, wide) if a.ndim == b.ndim == 2 else self._product(a, b, wide), dtype)

    def _plain_product(self, a: TensorValue, b: TensorValue, dtype: np.dtype) -> TensorValue:
        shape = (a.shape[0], b.shape[1])
        with self.here():
            place = self.emitter.filled(0, shape, dtype)
            made = MatmulOp([place.type], [a.value, b.value], [place])
            fill_builtin_region(made.operation)
        return TensorValue(self, made.results[0], TensorType(shape, dtype))

    def _product(self, a: TensorValue, b: TensorValue, dtype: np.dtype) -> TensorValue:
        """Vectors, and stacks of matrices that broadcast."""
        try:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            raise wrong("@", f"{a.type} @ {b.type}: the dimensions before the last two do not fit") from None
        n = len(batch)
        rows, columns = a.ndim > 1, b.ndim > 1
        sizes = [*batch, *a.shape[-2:-1], *(b.shape[-1:] if columns else ()), a.shape[-1]]
        inner = len(sizes) - 1
        left = [*_aligned(a.shape[:-2], batch), *([n] if rows else []), inner]
        right = [*_aligned(b.shape[:-2], batch), inner, *([n + rows] if columns else [])]

        def body(m: Any, x: Any, y: Any, acc: Any) -> Any:
            return acc + m.cast(x, dtype) * m.cast(y, dtype)

        return self.generic(sizes, [(a, left), (b, right)], range(inner), dtype, body, 0)

    # Movement -----------------------------------------------------------------------------------------------------

    @public
    def transpose(self, x: TensorValue, axes: Sequence[int] | None) -> TensorValue:
        """Dimensions in another order."""
        order = [self._axis("transpose", x, d) for d in (range(x.ndim)[::-1] if axes is None else axes)]
        if sorted(order) != list(range(x.ndim)):
            raise wrong("transpose", f"{list(axes or ())} is no order of the dimensions of {x.type}")
        if order == sorted(order):
            return x
        kind = TensorType(tuple(x.shape[d] for d in order), x.dtype)
        with self.here():
            empty = self.emitter.empty(kind.shape, kind.dtype)
            made = TransposeOp([empty.type], x.value, empty, order)
            fill_builtin_region(made.operation)
        return TensorValue(self, made.results[0], kind)

    @public
    def reshape(self, x: TensorValue, shape: Sequence[int] | int) -> TensorValue:
        """The same elements with other sizes."""
        sizes = [shape] if isinstance(shape, int) else list(shape)
        rest = prod(n for n in sizes if n != -1)
        if -1 in sizes and rest:
            sizes[sizes.index(-1)] = prod(x.shape) // rest
        if prod(sizes) != prod(x.shape) or min(sizes, default=0) < 0:
            raise wrong("reshape", f"{x.type} has {prod(x.shape)} elements, {shape} others")
        if x.shape == tuple(sizes):
            return x
        groups = _groups(x.shape, sizes)
        if groups is None:
            x, groups = self._regrouped(x, [prod(x.shape)], [list(range(x.ndim))]), [list(range(len(sizes)))]
        return self._regrouped(x, sizes, groups)

    def _regrouped(self, x: TensorValue, sizes: Sequence[int], groups: list[list[int]]) -> TensorValue:
        """Dimensions split, or neighbours made one, as groups say."""
        kind = TensorType(tuple(sizes), x.dtype)
        attributes: dict[str, ir.Attribute] = {
            "reassociation": ir.ArrayAttr.get([ir.ArrayAttr.get([i64(d) for d in group]) for group in groups])
        }
        if len(sizes) < x.ndim:
            return self.value("tensor.collapse_shape", [x.value], kind, attributes)
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(sizes))
        return self.value("tensor.expand_shape", [x.value], kind, attributes)

    @public
    def concat(self, values: Sequence[Any], axis: int) -> TensorValue:
        """Tensors side by side."""
        tensors: list[Any] = [self.as_value(value) for value in values]
        first = tensors[0]
        d = self._axis("concat", first, axis)
        for x in tensors[1:]:
            others = (x.shape[:d], x.shape[d + 1 :], x.ndim, x.dtype)
            if others != (first.shape[:d], first.shape[d + 1 :], first.ndim, first.dtype):
                raise wrong("concat", f"{first.type} and {x.type} differ in more than the size of dimension {d}")
        shape = (*first.shape[:d], sum(x.shape[d] for x in tensors), *first.shape[d + 1 :])
        if len(tensors) == 1:
            return first
        operands = [x.value for x in tensors]
        return self.value("tensor.concat", operands, TensorType(shape, first.dtype), {"dim": i64(d)})

    @public
    def index(self, x: TensorValue, index: Any) -> TensorValue:
        """NumPy's basic indexing with numbers that are known."""
        items = list(index) if isinstance(index, tuple) else [index]
        given = sum(item is not None and item is not Ellipsis for item in items)
        if given > x.ndim:
            raise wrong("a tensor", f"{given} indices, but {x.type}")
        rest = [slice(None)] * (x.ndim - given)
        place = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
        items = [*items[:place], *rest, *items[place + 1 :]]
        windows = [self._bounds(x, item, d) for d, item in enumerate(item for item in items if item is not None)]
        x = self._flipped(x, [step < 0 for _, _, step in windows])
        starts = [n - 1 - at if step < 0 else at for n, (at, _, step) in zip(x.shape, windows, strict=True)]
        sizes = [size for _, size, _ in windows]
        x = self._extract(x, starts, sizes, [abs(step) for _, _, step in windows])
        extents = iter(sizes)
        shape = [1 if item is None else (next(extents), item)[0] for item in items]
        return self.reshape(
            x, [n for n, item in zip(shape, items, strict=True) if not isinstance(item, int | np.integer)]
        )

    def _bounds(self, x: TensorValue, item: Any, d: int) -> tuple[int, int, int]:
        """First element, number of elements and step along a dimension."""
        n = x.shape[d]
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size = len(range(start, stop, step))
            return (start, size, step) if size else (0, 0, 1)
        if isinstance(item, bool) or not isinstance(item, int | np.integer):
            raise wrong("a tensor", f"{x.type} is indexed by {item!r}: numbers and slices that are known select a part")
        if not -n <= item < n:
            raise wrong("a tensor", f"index {item} is outside of dimension {d} of {x.type}")
        return int(item) % n, 1, 1

    def _flipped(self, x: TensorValue, turned: Sequence[bool]) -> TensorValue:
        if not any(turned):
            return x
        with self.here():
            exprs = [
                ir.AffineExpr.get_constant(n - 1) - ir.AffineExpr.get_dim(d) if turn else ir.AffineExpr.get_dim(d)
                for d, (n, turn) in enumerate(zip(x.shape, turned, strict=True))
            ]
            tensor = Tensor(x.dtype, x.shape, x.value, tuple(range(x.ndim)))
            same = ir.AffineMap.get_identity(x.ndim)
            source = (tensor, ir.AffineMap.get(x.ndim, 0, exprs))
            empty = self.emitter.empty(x.shape, x.dtype)
            value = self.emitter.raw_generic([0] * x.ndim, [source], empty, same, x.dtype, lambda m, a, _: a)
        return TensorValue(self, value, x.type)

    def _extract(self, x: TensorValue, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Any:
        if tuple(sizes) == x.shape:
            return x
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get(list(starts)),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(sizes)),
            "static_strides": ir.DenseI64ArrayAttr.get(list(steps)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        }
        return self.value("tensor.extract_slice", [x.value], TensorType(tuple(sizes), x.dtype), attributes)


def _known(value: Any) -> bool:
    return is_number(value) or isinstance(value, np.ndarray | np.generic)


def _kinds(name: str, values: Sequence[Any]) -> list[Any]:
    """Element types, and Python's types of numbers, which have none of their own."""
    for value in values:
        if not _known(value) and not isinstance(value, TensorValue):
            raise wrong(name, f"it takes tensors and numbers, found {_names([value])}")
    return [type(v) if is_number(v) else np.asarray(v).dtype if _known(v) else v.dtype for v in values]


def _number(value: Any) -> Any:
    """The number that all elements are, None where they differ or are not known."""
    if is_number(value):
        return value
    if not _known(value) or not np.size(value):
        return None
    array = np.asarray(value)
    return array.reshape(-1)[0] if is_splat(array) else None


def _groups(one: Sequence[int], other: Sequence[int]) -> list[list[int]] | None:
    """For each dimension of the shorter shape those of the longer one that it is made of; None where it is of none."""
    long, short = (one, other) if len(one) > len(other) else (other, one)
    if len(long) == len(short):
        return None
    groups, at = [], 0
    for n in short:
        group, product = [], 1
        while at < len(long) and (product != n or not group):
            group, product, at = [*group, at], product * long[at], at + 1
        if product != n or not group:
            return None
        groups.append(group)
    if any(long[d] != 1 for d in range(at, len(long))):
        return None
    if groups:
        groups[-1] += range(at, len(long))
    return groups


def _aligned(shape: Sequence[int], whole: Sequence[int]) -> list[int | None]:
    """Which loop reads each dimension, the last by the last; a size of 1 is read again and again."""
    shift = len(whole) - len(shape)
    return [None if n == 1 and whole[d + shift] != 1 else d + shift for d, n in enumerate(shape)]


def _names(values: Sequence[Any]) -> str:
    kinds = (np.asarray(v).dtype if _known(v) else getattr(v, "type", type(v).__name__) for v in values)
    return " and ".join(str(kind) for kind in kinds)
