# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes of views: which are free, and the collapse/expand pairs of the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import Dim, Size, equal_products, is_static, marked, same_shape, values
from tilewright.frontend.builder.reads import Reads
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.mlir import ir

Block = tuple[list[int], list[int]]


def blocks(old: Sequence[int], new: Sequence[int]) -> list[Block]:
    """Split two shapes of equal size into the finest blocks of equal size: positions in old and in new.

    Trailing ones join the last block; with no other block they make one of their own.
    """
    result: list[Block] = []
    i = j = 0
    while i < len(old) and j < len(new):
        a, b = old[i], new[j]
        first, second = [i], [j]
        while a != b:
            if a < b:
                i += 1
                first.append(i)
                a *= old[i]
            else:
                j += 1
                second.append(j)
                b *= new[j]
        i, j = i + 1, j + 1
        result.append((first, second))
    if result:
        result[-1][0].extend(range(i, len(old)))
        result[-1][1].extend(range(j, len(new)))
    return result


def blocks_of_sizes(old: Sequence[Size], new: Sequence[Size]) -> list[Block] | None:
    """The same for sizes of which some are known at run time only; None where the shapes are not known to fit."""
    result: list[Block] = []
    i = j = 0
    while i < len(old) and j < len(new):
        ends = ((p, q) for p in range(i + 1, len(old) + 1) for q in range(j + 1, len(new) + 1))
        fitting = [(p, q) for p, q in ends if equal_products(old[i:p], new[j:q])]
        if not fitting:
            return None
        p, q = min(fitting, key=sum)
        result.append(([*range(i, p)], [*range(j, q)]))
        i, j = p, q
    if not result or any(_not_one(n) for n in (*old[i:], *new[j:])):
        return None
    result[-1][0].extend(range(i, len(old)))
    result[-1][1].extend(range(j, len(new)))
    return result


def _not_one(n: Size) -> bool:
    return isinstance(n, Dim) or n != 1


class Reshaper(Reads):
    """Adds reshapes to the emitter."""

    def restructure(self, data: np.ndarray | ir.Value, shape: Sequence[Size]) -> np.ndarray | ir.Value:
        """The same row-major elements under another shape: at most one collapse and one expand.

        A shape with Dims may differ from the old one by dimensions of size 1 only.
        """
        if not is_static(shape):
            return self._with_units(data, shape)
        if isinstance(data, np.ndarray):
            return data.reshape(shape)
        old = list(data.type.shape)
        if old == list(shape):
            return data
        parts = blocks(old, shape)
        middle = [prod(old[i] for i in first) for first, _ in parts]
        if len(middle) != len(old):
            data = self._collapse(data, [first for first, _ in parts], middle)
        if len(middle) != len(shape):
            data = self._expand(data, [second for _, second in parts], shape)
        return data

    def _groups(self, groups: Sequence[Sequence[int]]) -> ir.Attribute:
        i64 = ir.IntegerType.get_signless(64)
        return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in g]) for g in groups])

    def _collapse(self, data: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[Size]) -> ir.Value:
        kind = ir.RankedTensorType.get(marked(shape), data.type.element_type)
        return self.op("tensor.collapse_shape", [data], kind, {"reassociation": self._groups(groups)})

    def _expand(self, data: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[Size]) -> ir.Value:
        kind = ir.RankedTensorType.get(marked(shape), data.type.element_type)
        attributes = {
            "reassociation": self._groups(groups),
            "static_output_shape": ir.DenseI64ArrayAttr.get(marked(shape)),
        }
        return self.op("tensor.expand_shape", [data, *values(shape)], kind, attributes)

    def _regroup(self, data: ir.Value, old: Sequence[Size], shape: Sequence[Size], parts: Sequence[Block]) -> ir.Value:
        """Data of the sizes `old` under a shape of the same blocks."""
        dims = [[old[i] for i in first] for first, _ in parts]
        middle = [prod(n) if is_static(n) else next(m for m in n if isinstance(m, Dim)) for n in dims]
        if len(middle) != len(old):
            data = self._collapse(data, [first for first, _ in parts], middle)
        if len(middle) != len(shape):
            data = self._expand(data, [second for _, second in parts], shape)
        return self.resized(data, shape)

    def _with_units(self, data: ir.Value, shape: Sequence[Size]) -> ir.Value:
        """Dynamic data under a shape whose dimensions of size 1 are elsewhere."""
        old = list(data.type.shape)
        if old == marked(shape):
            return data
        core = [n for n in shape if n != 1]
        if len(core) != len(old):
            data = self._collapse(data, _beside([n != 1 for n in old]), core)
        return data if len(core) == len(shape) else self._expand(data, _beside([n != 1 for n in shape]), shape)

    def resized(self, data: ir.Value, shape: Sequence[Size]) -> ir.Value:
        """The same tensor under a type that holds more or fewer of its sizes."""
        kind = ir.RankedTensorType.get(marked(shape), data.type.element_type)
        return data if data.type == kind else self.op("tensor.cast", [data], kind)

    def copy(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """The same tensor stored in another order of its dimensions, by a copying generic."""
        raise AssertionError("the builder overrides this")

    def ordered(self, x: Tensor, order: Sequence[int] | None = None) -> Tensor:
        """`x` stored in this order of its logical dimensions (default: row-major); copies only where it must."""
        wanted = tuple(d for d in (range(x.rank) if order is None else order) if x.shape[d] != 1)
        return x if x.stored_order() == wanted else self.copy(x, wanted)

    def reshape(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """Row-major reshape. Merged dimensions must lie side by side where they are stored, or a copy is made."""
        shape = tuple(shape)
        if not (is_static(shape) and is_static(x.shape)):
            return self._reshape_dynamic(x, shape)
        if x.is_known and (x.size == 0 or x.is_ordered()):
            return Tensor.known(x.numpy().reshape(shape))
        if prod(x.shape) != prod(shape):
            raise ValueError(f"{prod(x.shape)} elements do not fit the shape {list(shape)}")
        if 0 in shape:
            return Tensor.known(np.empty(shape, x.dtype))  # no elements: known, whatever made it
        old = [d for d in range(x.rank) if x.shape[d] != 1]
        new = [d for d in range(len(shape)) if shape[d] != 1]
        parts = blocks([x.shape[d] for d in old], [shape[d] for d in new])
        groups = [([old[i] for i in first], [new[j] for j in second]) for first, second in parts]
        x, dims = self._by_blocks(x, groups)
        stored = [shape[d] for d in dims] or [1]
        return Tensor(x.dtype, shape, self.restructure(x.data, stored), dims or (None,))

    def _by_blocks(self, x: Tensor, groups: list[tuple[list[int], list[int]]]) -> tuple[Tensor, tuple[int, ...]]:
        """The tensor with the dimensions of each block side by side, and the new dimensions as they are stored then."""
        order = x.stored_order()
        if not all(_adjacent(first, order) for first, _ in groups):
            x = self.ordered(x)
            order = x.stored_order()
        groups.sort(key=lambda group: order.index(group[0][0]))
        return x, tuple(d for _, second in groups for d in second)

    def _reshape_dynamic(self, x: Tensor, shape: tuple[Size, ...]) -> Tensor:
        """Through one dimension; a run-time check compares the numbers of elements."""
        new = [n for n in shape if n != 1] or [1]
        if same_shape([n for n in x.shape if n != 1] or [1], new):
            return x.with_ones(shape)
        found = self._reshape_blocks(x, shape)
        if found is not None:
            return found
        x = self.stored(self.ordered(x))
        self.require_same(prod(x.shape), prod(shape), "the elements do not fit the new shape")
        if is_static(shape) and 0 in shape:
            return nothing(shape, x.dtype)
        data, old = x.data, [1 if d is None else x.shape[d] for d in x.dims]
        if not old:
            data = self._expand(data, [], [1])
        if len(old) > 1:
            flat = prod(old) if is_static(old) else next(n for n in old if isinstance(n, Dim))
            data = self._collapse(data, [range(len(old))], [flat])
        flat = prod(new) if is_static(new) else next(n for n in new if isinstance(n, Dim))
        data = self.resized(data, [flat])
        data = data if len(new) == 1 else self._expand(data, [range(len(new))], new)
        dims = tuple(d for d, n in enumerate(shape) if n != 1)
        return Tensor(x.dtype, shape, data, dims or (None,))

    def _reshape_blocks(self, x: Tensor, shape: tuple[Size, ...]) -> Tensor | None:
        """Block by block, where the sizes are known to fit: nothing is checked, and views stay views."""
        old = [d for d in range(x.rank) if _not_one(x.shape[d])]
        new = [d for d in range(len(shape)) if _not_one(shape[d])]
        parts = blocks_of_sizes([x.shape[d] for d in old], [shape[d] for d in new])
        if parts is None:
            return None
        groups = [([old[i] for i in first], [new[j] for j in second]) for first, second in parts]
        x, dims = self._by_blocks(x, groups)
        x = self.stored(x)
        have, want = [1 if d is None else x.shape[d] for d in x.dims], [shape[d] for d in dims]
        inner = blocks_of_sizes(have, want)
        if inner is None:
            return None
        return Tensor(x.dtype, shape, self._regroup(x.data, have, want, inner), dims)

    def value(self, x: Tensor) -> ir.Value:
        """The SSA value with exactly the logical shape, row-major."""
        if x.is_static and 0 in x.shape:
            return self.empty(x.shape, x.dtype)
        x = self.stored(self.ordered(x))
        return self.restructure(x.data, x.shape)


def _beside(large: Sequence[bool]) -> list[list[int]]:
    """Groups of one large dimension each: small ones belong to the next large one, the last ones to the last."""
    groups: list[list[int]] = [[]]
    for d, is_large in enumerate(large):
        groups[-1].append(d)
        if is_large:
            groups.append([])
    rest = groups.pop()
    groups[-1] += rest
    return groups


def _adjacent(group: Sequence[int], order: Sequence[int]) -> bool:
    start = order.index(group[0])
    return list(order[start : start + len(group)]) == list(group)
