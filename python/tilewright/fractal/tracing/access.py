# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which elements are read, as the access ops of `fractal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.fractal.tracing.emit import Index, i64
from tilewright.fractal.tracing.formats import Formats
from tilewright.fractal.tracing.values import ListValue, TensorValue, Value
from tilewright.fractal.types import (
    RAGGED,
    ListType,
    Own,
    Size,
    TensorType,
    Type,
    alike,
    is_number,
    list_of,
    longest,
    most_in,
    most_of,
)
from tilewright.mlir import ir

I64 = TensorType((), np.dtype(np.int64))


class Access(Formats):
    """Functions of lists; lengths follow as far as they are known."""

    def at(self, xs: ListValue, place: Any) -> Value:
        """One element; negative places that are known count from the end."""
        length, number = xs.type.lengths[0], place
        if isinstance(place, int | np.integer):
            if isinstance(length, int) and not -length <= place < length:
                raise UserError(f"index {place} is outside a list of length {length}")
            number = self.plus(self.count(xs), int(place)) if place < 0 else int(place)
        elif not (isinstance(place, TensorValue) and place.shape == () and place.dtype.kind in "iu"):
            raise UserError(f"a list is indexed by a number, found {place!r}")
        else:
            number = self.index_of(place)
        kind = xs.type.element(self.scopes[-1])
        return self.value("fractal.at", [xs.value, self.index_value(number)], kind)

    def count(self, xs: ListValue) -> Index:
        """The number of elements, as far as that is known a number."""
        length = xs.type.lengths[0]
        return length if isinstance(length, int) else self.op("fractal.length", [xs.value], [ir.IndexType.get()]).result

    def length(self, xs: ListValue) -> Any:
        """The number of elements; a tensor where only a run knows it."""
        count = self.count(xs)
        if isinstance(count, int):
            return count
        word = self.op("arith.index_cast", [count], [self.emitter.element_type(I64.dtype)]).results[0]
        made = self.op("tensor.from_elements", [word], [self.mlir(I64)])
        return TensorValue(self, made.result, I64, xs.type.lengths[0])

    def cut(self, xs: ListValue, bounds: slice) -> ListValue:
        """The elements of a Python slice; bounds that only a run knows are not negative."""
        step = 1 if bounds.step is None else bounds.step
        if not isinstance(step, int) or step == 0:
            raise UserError(f"the step {step!r} of a slice is a number other than 0")
        count = self.count(xs)
        given = [None if b is None else self.index_of(b) for b in (bounds.start, bounds.stop)]
        if isinstance(count, int) and all(b is None or isinstance(b, int) for b in given):
            start, stop, step = slice(given[0], given[1], step).indices(count)
            size = len(range(start, stop, step))
            return self._slice(xs, start if size else 0, size, step)
        if step > 0:
            first = self._bound(given[0], count, 0, 0)
            room = self.minus(self._bound(given[1], count, count, 0), first)
        else:
            first = self._bound(given[0], count, self.minus(count, 1), -1)
            room = self.minus(first, self._bound(given[1], count, -1, -1))
        return self._slice(xs, first, self._steps(room, abs(step)), step)

    def _bound(self, bound: Index | None, count: Index, default: Index, low: int) -> Index:
        """Where a slice begins or ends, as Python has it: low..count + low."""
        if bound is None:
            return default
        if isinstance(bound, int) and bound < 0:
            return self.most(self.plus(count, bound), low)
        return self.least(bound, self.plus(count, low))

    def _steps(self, room: Index, step: int) -> Index:
        room = self.most(room, 0)
        if step == 1:
            return room
        return self.index_op("arith.ceildivui", lambda a, b: -(-a // b), room, step)

    def _slice(self, xs: ListValue, offset: Index, size: Index, stride: int) -> ListValue:
        if isinstance(size, int) and (offset, size, stride) == (0, xs.type.lengths[0], 1):
            return xs
        dynamic = [[n] if isinstance(n, ir.Value) else [] for n in (offset, size)]
        static = [ir.ShapedType.get_dynamic_size() if isinstance(n, ir.Value) else n for n in (offset, size)]
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get(static[:1]),
            "static_sizes": ir.DenseI64ArrayAttr.get(static[1:]),
            "stride": i64(stride),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, *map(len, dynamic)]),
        }
        kind = self._resized(xs, size if isinstance(size, int) else self.fresh(most_of(xs.type.lengths[0])))
        return self.value("fractal.slice", [xs.value, *dynamic[0], *dynamic[1]], kind, attributes)

    def _resized(self, xs: ListValue, length: Size) -> ListType:
        return ListType((length, *xs.type.lengths[1:]), xs.type.leaf)

    def cast_list(self, xs: Value, kind: Type) -> Value:
        """The same list with other knowledge of its lengths."""
        mlir = self.mlir(kind)
        return self.symbol(xs.value, kind) if xs.value.type == mlir else self.value("fractal.cast", [xs.value], kind)

    def as_long_as(self, xs: ListValue, other: ListValue) -> Value:
        """A list that is known to have the length of another one."""
        return self.cast_list(xs, self._resized(xs, other.type.lengths[0]))

    def reverse(self, xs: ListValue) -> ListValue:
        """From the last to the first."""
        return self.value("fractal.reverse", [xs.value], xs.type)

    def filler(self, xs: ListValue, value: Any) -> Value:
        """An element to fill a list with."""
        kind = xs.type.element(self.scopes[-1])
        if is_number(value) and isinstance(kind, TensorType):
            value = np.full(kind.shape, value, kind.dtype)
        fill = self.as_value(value)
        if not alike(fill.type, kind):
            raise UserError(f"the fill is {fill.type}, the list's elements are {kind}")
        return fill

    def _beside(self, xs: ListValue, fill: Value | None) -> Any:
        """A list of which no more is claimed than is true of a fill among its elements."""
        if not isinstance(fill, ListValue):
            return xs
        levels = zip(xs.type.lengths[1:], fill.type.lengths, strict=True)
        inner = [_either(a, b) for a, b in levels]
        return self.cast_list(xs, ListType((xs.type.lengths[0], *inner), xs.type.leaf))

    def shift(self, xs: ListValue, by: int, fill: Value | None = None) -> ListValue:
        """Neighbours at a distance."""
        attributes, operands = _filled(fill, fill is None)
        xs = self._beside(xs, fill)
        return self.value("fractal.shift", [xs.value, *operands], xs.type, {"by": i64(by), **attributes})

    def window(
        self,
        xs: ListValue,
        size: int,
        stride: int,
        dilation: int,
        padding: tuple[int, int],
        fill: Value | None,
        wrap: bool,
    ) -> ListValue:
        """Lists of neighbours."""
        xs = self._beside(xs, fill)
        length, more = xs.type.lengths[0], sum(padding) - dilation * (size - 1)
        if isinstance(length, int):
            windows: Size = max(0, (length + more - 1) // stride + 1)
        else:
            most = most_of(length)
            bound = None if most is None else max(0, (most + more - 1) // stride + 1)
            windows = length if (stride, more) == (1, 0) else self.fresh(bound)
        attributes, operands = _filled(fill, wrap)
        attributes |= {"size": i64(size), "stride": i64(stride), "dilation": i64(dilation)}
        attributes["padding"] = ir.DenseI64ArrayAttr.get(list(padding))
        kind = list_of(windows, self._resized(xs, size))
        return self.value("fractal.window", [xs.value, *operands], kind, attributes)

    def interleave(self, xs: ListValue, by: int) -> ListValue:
        """Groups of every by-th element."""
        if not isinstance(by, int) or by < 1:
            raise UserError(f"elements are dealt to at least one group, a number that is known; got {by!r}")
        length = xs.type.lengths[0]
        most = most_of(length)
        groups: Size = min(by, length) if isinstance(length, int) else self.fresh(by if most is None else min(by, most))
        rounded = None if most is None else -(-most // by)
        inner = rounded if isinstance(length, int) and length % by == 0 and rounded else Own(rounded)
        return self.value("fractal.interleave", [xs.value], list_of(groups, self._resized(xs, inner)), {"by": i64(by)})

    def deinterleave(self, xss: ListValue) -> ListValue:
        """The inverse."""
        return self.value("fractal.deinterleave", [xss.value], self._merged(xss))

    def flatten(self, xss: ListValue) -> ListValue:
        """Lists joined."""
        return self.value("fractal.flatten", [xss.value], self._merged(xss))

    def _merged(self, xss: ListValue) -> ListType:
        first, second, *rest = xss.type.lengths
        length = first * second if isinstance(first, int) and isinstance(second, int) else None
        length = self.fresh(most_in((first, second))) if length is None else length
        return ListType((length, *rest), xss.type.leaf)

    def split(self, xs: ListValue, into: int) -> ListValue:
        """Lists of equal length."""
        length = xs.type.lengths[0]
        if into < 1 or (isinstance(length, int) and length % into):
            raise UserError(f"a list of length {length} has no {into} equal parts")
        most = most_of(length)
        inner = length // into if isinstance(length, int) else self.fresh(None if most is None else most // into)
        return self.value("fractal.split", [xs.value], list_of(into, self._resized(xs, inner)), {"into": i64(into)})

    def product(self, xs: ListValue, ys: ListValue) -> tuple[ListValue, ListValue]:
        """All pairs."""
        rows, columns = xs.type.lengths[0], ys.type.lengths[0]
        kinds = [list_of(rows, self._resized(values, columns)) for values in (xs, ys)]
        op = self.op("fractal.product", [xs.value, ys.value], [self.mlir(kind) for kind in kinds])
        return self.symbol(op.results[0], kinds[0]), self.symbol(op.results[1], kinds[1])

    def repeat(self, x: Any, times: Any) -> ListValue:
        """One element again and again."""
        x = self.as_value(x)
        number = self.index_of(times)
        if isinstance(number, int):
            if number < 0:
                raise UserError(f"an element repeated {number} times: none is negative")
            return self.value("fractal.repeat", [x.value], list_of(number, x.type), {"times": i64(number)})
        return self.value("fractal.repeat", [x.value, number], list_of(times.length or self.fresh(), x.type))

    def join(self, lists: Sequence[ListValue]) -> ListValue:
        """One after the other."""
        first = lists[0].type
        for place, xs in enumerate(lists):
            if not alike(xs.type, first):
                raise UserError(f"part {place} is {xs.type}, but part 0 is {first}: joined lists have one type")
        if len(lists) == 1:
            return lists[0]
        counts = [xs.type.lengths[0] for xs in lists]
        known = [n for n in counts if isinstance(n, int)]
        bounds = [most for most in map(most_of, counts) if most is not None]
        most = sum(bounds) if len(bounds) == len(counts) else None
        total = sum(known) if len(known) == len(counts) else self.fresh(most)
        levels = zip(*(xs.type.lengths[1:] for xs in lists), strict=True)
        inner = [_either(*level) for level in levels]
        return self.value("fractal.join", [xs.value for xs in lists], ListType((total, *inner), first.leaf))

    def listed(self, values: list[Value]) -> ListValue:
        """A list of some values: tensors are stacked, lists are joined as lists of one."""
        first = values[0].type
        for place, x in enumerate(values):
            if not alike(x.type, first):
                raise UserError(f"element {place} is {x.type}, but element 0 is {first}: a list has equal elements")
        if isinstance(first, ListType):
            return self.join([self.repeat(x, 1) for x in values])
        rows = [self.reshape(x, (1, *first.shape)) for x in values]
        return self.from_tensor(self.concat(rows, 0), 1)

    def gather(self, xs: ListValue, places: Any) -> ListValue:
        """Elements at listed places."""
        value, length = self._listed_places(places)
        return self.value("fractal.gather", [xs.value, value], self._resized(xs, length))

    def scatter(self, xs: ListValue, places: Any, elements: ListValue) -> ListValue:
        """A list with the elements at listed places replaced."""
        value, length = self._listed_places(places)
        kind, given = xs.type, elements.type
        if not alike(given, kind):
            raise UserError(f"{given} is not written into {kind}: both have one type")
        if isinstance(given.lengths[0], int) and isinstance(length, int) and given.lengths[0] != length:
            raise UserError(f"{given.lengths[0]} elements for {length} places: each element has one")
        inner = [_either(*level) for level in zip(given.lengths[1:], kind.lengths[1:], strict=True)]
        result = ListType((kind.lengths[0], *inner), kind.leaf)
        return self.value("fractal.scatter", [elements.value, xs.value, value], result)

    def _listed_places(self, places: Any) -> tuple[ir.Value, Size]:
        """Integers of a list or an array as a tensor, and how many they are."""
        indices = places if isinstance(places, TensorValue | ListValue) else self.as_value(np.asarray(places))
        if isinstance(indices, list | np.ndarray):
            indices = self.as_list(indices)
        kind = indices.type
        leaf = kind.leaf if isinstance(kind, ListType) else TensorType(kind.shape[1:], kind.dtype)
        rank = kind.depth if isinstance(kind, ListType) else len(kind.shape)
        if leaf.shape or rank - len(leaf.shape) != 1 or leaf.dtype.name not in ("int32", "int64"):
            raise UserError(f"places are a list of integers (i32 or i64), found {kind}")
        length = kind.lengths[0] if isinstance(kind, ListType) else kind.shape[0]
        value = indices.value
        if isinstance(kind, ListType):
            sizes = [length if isinstance(length, int) else ir.ShapedType.get_dynamic_size()]
            tensor = ir.RankedTensorType.get(sizes, self.emitter.element_type(leaf.dtype))
            value = self.op("fractal.to_tensor", [indices.value], [tensor]).results[0]
        return value, length

    def tensor(self, xs: ListValue) -> TensorValue:
        """Lists of known lengths as one tensor."""
        if not all(isinstance(length, int) for length in xs.type.lengths):
            raise UserError(f"{xs.type} has lengths that are not known: the sizes of a tensor are")
        return self.value("fractal.to_tensor", [xs.value], TensorType((*xs.type.lengths, *xs.leaf_shape), xs.dtype))

    def places(self, xs: ListValue) -> ListValue:
        """The place of each element, i64."""
        length = xs.type.lengths[0]
        if isinstance(length, int):
            return self.from_tensor(self.tensor_of(np.arange(length)), 1)
        word = self.emitter.element_type(I64.dtype)
        kind = ir.RankedTensorType.get([ir.ShapedType.get_dynamic_size()], word)
        made = ir.Operation.create("tensor.generate", [kind], [self.count(xs)], regions=1, loc=self.here())
        block = ir.Block.create_at_start(made.regions[0], [ir.IndexType.get()], [self.here()])
        with ir.InsertionPoint(block):
            number = self.op("arith.index_cast", [block.arguments[0]], [word]).results[0]
            self.op("tensor.yield", [number], [])
        return self.value("fractal.from_tensor", [made.result], ListType((length,), I64))


def _either(*lengths: Size) -> Size:
    """What is known of a level whose lists are of one of several lists."""
    same = len(set(lengths)) == 1 and lengths[0] != RAGGED
    return lengths[0] if same else Own(longest(*lengths))


def _filled(fill: Value | None, wrap: bool) -> tuple[dict[str, ir.Attribute], list[ir.Value]]:
    if fill is not None:
        return {}, [fill.value]
    return ({"wrap": ir.UnitAttr.get()} if wrap else {}), []
