# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which slices of tensors hold one known number: facts go forward, from weights to results.

A fact is of one axis: at an index of it, all elements are the same number, whatever the other axes' indices are. That
is SparTA's attribute of pruned elements (TeSA) kept per axis: what shrinks a tensor are whole slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.ir.generics import body, constant_of, kinds, maps, terminator
from tilewright.ir.views import groups_of
from tilewright.mlir import ir
from tilewright.normalize.sparsity.known import Known, evaluate
from tilewright.passes.weights import known_array
from tilewright.reference.types import dtype_of

#: Of each axis what is known at its indices; None: nothing, or its size is known at run time only.
Axes = tuple["Known | None", ...]

#: Elements of a constant's slice that are looked at before all of them.
_SAMPLES = 4


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """Sizes of a tensor; negative where they are known at run time only."""
    return tuple(ir.RankedTensorType(value.type).shape)


def is_tensor(value: ir.Value) -> bool:
    """Whether a value is a tensor with a rank."""
    return isinstance(value.type, ir.RankedTensorType)


class Facts:
    """What is known of the tensors of a function, each looked at once."""

    def __init__(self, given: Mapping[ir.Value, Axes] | None = None) -> None:
        """Know nothing yet.

        Args:
            given: facts from elsewhere, beside those of rules (`trials.py`).
        """
        self._given = given or {}
        self._axes: dict[ir.Value, Axes] = {}

    def of(self, value: ir.Value) -> Axes:
        """What is known of a tensor whose operands have been looked at."""
        found = self._axes.get(value)
        return _nothing(value) if found is None else found

    def look_at(self, op: ir.Operation) -> None:
        """Find out what is known of an operation's results."""
        rule = _RULES.get(op.name) if len(op.results) == 1 else None
        for result in filter(is_tensor, op.results):
            axes = _nothing(result) if rule is None else rule(self, op)
            if (given := self._given.get(result)) is not None:
                axes = tuple(_joined(axis, more) for axis, more in zip(axes, given, strict=True))
            if any(axis is not None and axis.any for axis in axes):
                self._axes[result] = axes

    def terms(self, op: ir.Operation, loop: int) -> np.ndarray | None:
        """[indices], bool: at which indices of a reduction's loop the body changes nothing; None where not known."""
        size = extent(op, loop)
        if size is None or not self._reads_known(op):
            return None
        *inputs, held = self._arguments(op, loop, size)
        accumulator = Known(held.numbers, np.zeros(size, bool), np.ones(size, bool))
        return evaluate(body(op), [*inputs, accumulator], _index(loop, size), size)[0].kept

    def results(self, op: ir.Operation, loop: int) -> np.ndarray | None:
        """[indices], bool: at which indices of a parallel loop the result is zero; None where at none."""
        for axis, expr in zip(self.of(op.results[0]), maps(op)[-1].results, strict=True):
            if axis is not None and isinstance(expr, ir.AffineDimExpr) and expr.position == loop:
                return axis.zero
        return None

    def _reads_known(self, op: ir.Operation) -> bool:
        """Whether anything is known of an operand."""
        return any(axis is not None for value in op.operands if is_tensor(value) for axis in self.of(value))

    def _arguments(self, op: ir.Operation, loop: int, size: int) -> list[Known]:
        """What is known of a body's arguments along a loop."""
        return [
            self._argument(value, m, loop, size, argument.type)
            for value, m, argument in zip(op.operands, maps(op), body(op).arguments, strict=True)
        ]

    def _argument(self, value: ir.Value, access: ir.AffineMap, loop: int, size: int, kind: ir.Type) -> Known:
        if not is_tensor(value):
            number = constant_of(value)
            dtype = dtype_of(kind)
            return Known.nothing(size, dtype) if number is None else Known.all(np.full(size, number, dtype))
        best = Known.nothing(size, dtype_of(kind))
        for axis, expr in zip(self.of(value), access.results, strict=True):
            if axis is None:
                continue
            if isinstance(expr, ir.AffineDimExpr) and expr.position == loop and len(axis.numbers) == size:
                best = _either(best, axis)
            elif _is_uniform(axis):
                best = _either(best, Known.all(np.full(size, axis.numbers[0])))
        return best

    # Rules, by the name of the operation -----------------------------------------------------------------------------

    def constant(self, op: ir.Operation) -> Axes:
        """Weights and tables: slices of one number."""
        value = op.results[0]
        if not isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType | ir.IntegerType | ir.IndexType):
            return _nothing(value)
        attribute = op.attributes["value"] if op.name == "arith.constant" else None
        if attribute is not None and isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            number = getattr(attribute.get_splat_value(), "value", None)
            return _nothing(value) if number is None else _filled(value, np.asarray(number, dtype_of(value.type)))
        array = known_array(value)
        return _nothing(value) if array is None else slices_of(array)

    def fill(self, op: ir.Operation) -> Axes:
        """`linalg.fill` with a constant."""
        number = constant_of(op.operands[0])
        if number is None:
            return _nothing(op.results[0])
        return _filled(op.results[0], np.asarray(number, dtype_of(op.operands[0].type)))

    def generic(self, op: ir.Operation) -> Axes:
        """`linalg.generic`: each axis of the result, along its loop."""
        if not self._reads_known(op):
            return _nothing(op.results[0])
        reduces = any(kinds(op))
        return tuple(
            self._along(op, expr.position, reduces) if isinstance(expr, ir.AffineDimExpr) else None
            for expr in maps(op)[-1].results
        )

    def _along(self, op: ir.Operation, loop: int, reduces: bool) -> Known | None:
        size = extent(op, loop)
        if size is None:
            return None
        arguments = self._arguments(op, loop, size)
        if not any(argument.any for argument in arguments):
            return None
        found = evaluate(body(op), arguments, _index(loop, size), size)[0]
        if reduces and found.any:
            # A sum is what it begins with where one term leaves that as it is, or goes where all further ones stay.
            again = evaluate(body(op), [*arguments[:-1], found], _index(loop, size), size)[0]
            same = again.known & (again.numbers == found.numbers)
            found = Known(found.numbers, found.known & same, found.kept)
        return found if found.any else None

    def expand(self, op: ir.Operation) -> Axes:
        """`tensor.expand_shape`: an axis becomes several."""
        shape, found = shape_of(op.results[0]), []
        for axis, group in zip(self.of(op.operands[0]), groups_of(op.attributes["reassociation"]), strict=True):
            sizes = [shape[d] for d in group]
            if axis is None or min(sizes, default=0) < 0:
                found += [None] * len(group)
                continue
            numbers, known = axis.numbers.reshape(sizes), axis.known.reshape(sizes)
            found += [_uniform_along(numbers, known, d) for d in range(len(group))]
        return tuple(found)

    def collapse(self, op: ir.Operation) -> Axes:
        """`tensor.collapse_shape`: several axes become one."""
        shape, axes, found = shape_of(op.operands[0]), self.of(op.operands[0]), []
        for group in groups_of(op.attributes["reassociation"]):
            sizes = [shape[d] for d in group]
            if min(sizes, default=1) < 0 or not any(axes[d] is not None for d in group):
                found.append(None)
                continue
            best = Known.nothing(int(np.prod(sizes)), dtype_of(op.operands[0].type))
            for place, d in enumerate(group):
                if (axis := axes[d]) is not None:
                    best = _either(best, _spread(axis, sizes, place))
            found.append(best)
        return tuple(found)

    def extract_slice(self, op: ir.Operation) -> Axes:
        """`tensor.extract_slice` that keeps all axes."""
        window = window_of(op)
        if window is None:
            return _nothing(op.results[0])
        return tuple(
            axis and Known(axis.numbers[place], axis.known[place], axis.kept[place])
            for axis, place in zip(self.of(op.operands[0]), window, strict=True)
        )

    def insert_slice(self, op: ir.Operation) -> Axes:
        """`tensor.insert_slice` that keeps all axes: a concatenation's part."""
        shape, window = shape_of(op.results[0]), window_of(op)
        if window is None:
            return (None,) * len(shape)
        partial = [d for d, place in enumerate(window) if place != slice(0, shape[d], 1)]
        source, target = self.of(op.operands[0]), self.of(op.operands[1])
        return tuple(_inserted(source[d], target[d], shape[d], window[d], partial, d, op) for d in range(len(shape)))

    def pad(self, op: ir.Operation) -> Axes:
        """`tensor.pad` with a constant: axes that are not padded, where it pads with their own number."""
        number = constant_of(terminator(op.regions[0]).operands[0])
        low, high = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("low", "high"))
        padded = [pair != (0, 0) for pair in zip(low, high, strict=True)]
        return tuple(
            axis and Known(axis.numbers, axis.known & (axis.numbers == number), axis.kept)
            if number is not None and not own
            else None
            for axis, own in zip(self.of(op.operands[0]), padded, strict=True)
        )


def extent(op: ir.Operation, loop: int) -> int | None:
    """How many indices a loop has; None where that is known at run time only."""
    for value, access in zip(op.operands, maps(op), strict=True):
        for d, expr in enumerate(access.results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == loop and is_tensor(value):
                size = shape_of(value)[d]
                return size if size > 0 else None
    return None


def small_and_large(op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """The slice that an operation cuts out or puts in, and the tensor that it is a part of."""
    inserts = op.name == "tensor.insert_slice"
    return (op.operands[0], op.results[0]) if inserts else (op.results[0], op.operands[0])


def window_of(op: ir.Operation) -> list[slice] | None:
    """The places of a slice in the larger tensor, by axis; None where they are not known, or axes fall away."""
    small, large = small_and_large(op)
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if len(shape_of(large)) != len(shape_of(small)) or dynamic in (*offsets, *sizes, *strides):
        return None
    if min((*shape_of(large), *shape_of(small)), default=0) < 0:
        return None
    return [slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides, strict=True)]


def slices_of(array: np.ndarray) -> Axes:
    """The slices of a constant that hold one number each."""
    return tuple(_constant_along(np.moveaxis(array, axis, 0)) for axis in range(array.ndim))


def _constant_along(array: np.ndarray) -> Known | None:
    """Slices along the first axis. A few elements of each are looked at before all: a dense weight is not read."""
    if array.size == 0:
        return None
    first = np.array(array[(slice(None), *(0,) * (array.ndim - 1))])
    known = np.ones(len(array), bool)
    for part in range(1, _SAMPLES + 1):
        known &= array[(slice(None), *((n - 1) * part // _SAMPLES for n in array.shape[1:]))] == first
    for at in np.flatnonzero(known) if array.ndim > 1 else ():
        known[at] = bool((array[at] == first[at]).all())
    return Known(first, known, np.zeros(len(array), bool)) if known.any() else None


def _nothing(value: ir.Value) -> Axes:
    return (None,) * len(shape_of(value))


def _filled(value: ir.Value, number: np.ndarray) -> Axes:
    return tuple(Known.all(np.full(size, number)) if size > 0 else None for size in shape_of(value))


def _index(loop: int, size: int) -> dict[int, Known]:
    return {loop: Known.all(np.arange(size, dtype=np.int64))}


def _is_uniform(axis: Known) -> bool:
    return bool(axis.known.all()) and bool((axis.numbers == axis.numbers[0]).all())


def _either(a: Known, b: Known) -> Known:
    return Known(np.where(a.known, a.numbers, b.numbers), a.known | b.known, np.zeros(len(a.known), bool))


def _joined(a: Known | None, b: Known | None) -> Known | None:
    return _either(a, b) if a is not None and b is not None else a or b


def _uniform_along(numbers: np.ndarray, known: np.ndarray, axis: int) -> Known | None:
    """Where all indices of the other axes of a group are known to be the same number."""
    numbers = np.moveaxis(numbers, axis, 0).reshape(numbers.shape[axis], -1)
    known = np.moveaxis(known, axis, 0).reshape(known.shape[axis], -1)
    first = np.array(numbers[:, 0])
    same = known.all(axis=1) & (numbers == first[:, None]).all(axis=1)
    return Known(first, same, np.zeros(len(first), bool)) if same.any() else None


def _spread(axis: Known, sizes: Sequence[int], place: int) -> Known:
    shape = [size if d == place else 1 for d, size in enumerate(sizes)]
    numbers = np.broadcast_to(axis.numbers.reshape(shape), sizes).reshape(-1)
    known = np.broadcast_to(axis.known.reshape(shape), sizes).reshape(-1)
    return Known(numbers, known, np.zeros(known.shape, bool))


def _inserted(
    source: Known | None, target: Known | None, size: int, place: slice, partial: Sequence[int], axis: int,
    op: ir.Operation,
) -> Known | None:  # fmt: skip
    """An axis of a tensor with a slice in it: outside it is the target; inside the slice, or both where it is small."""
    dtype = dtype_of(op.results[0].type)
    below = target or Known.nothing(size, dtype)
    count = len(range(place.start, place.stop, place.step))
    above = source or Known.nothing(count, dtype)
    numbers, known = np.array(below.numbers), np.array(below.known)
    inside = above.known
    if [d for d in partial if d != axis]:
        inside = above.known & below.known[place] & (above.numbers == below.numbers[place])
    numbers[place], known[place] = above.numbers, inside
    return Known(numbers, known, np.zeros(size, bool)) if known.any() else None


_RULES = {
    "arith.constant": Facts.constant,
    "ml_program.global_load_const": Facts.constant,
    "linalg.fill": Facts.fill,
    "linalg.generic": Facts.generic,
    "tensor.expand_shape": Facts.expand,
    "tensor.collapse_shape": Facts.collapse,
    "tensor.extract_slice": Facts.extract_slice,
    "tensor.insert_slice": Facts.insert_slice,
    "tensor.pad": Facts.pad,
}
