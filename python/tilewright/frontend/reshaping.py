# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes of views: which are free, and the collapse/expand pairs of the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.mlir import ir

from .emit import Emitter
from .tensor import Tensor

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


class Reshaper(Emitter):
    """Adds reshapes to the emitter."""

    def restructure(self, data: np.ndarray | ir.Value, shape: Sequence[int]) -> np.ndarray | ir.Value:
        """The same row-major elements under another shape: at most one collapse and one expand."""
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

    def _collapse(self, data: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> ir.Value:
        kind = ir.RankedTensorType.get(shape, data.type.element_type)
        return self.op("tensor.collapse_shape", [data], kind, {"reassociation": self._groups(groups)})

    def _expand(self, data: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> ir.Value:
        kind = ir.RankedTensorType.get(shape, data.type.element_type)
        attributes = {
            "reassociation": self._groups(groups),
            "static_output_shape": ir.DenseI64ArrayAttr.get(list(shape)),
        }
        return self.op("tensor.expand_shape", [data], kind, attributes)

    def copy(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """The same tensor stored in another order of its dimensions, by a copying generic."""
        raise AssertionError("the builder overrides this")

    def ordered(self, x: Tensor, order: Sequence[int] | None = None) -> Tensor:
        """`x` stored in this order of its logical dimensions (default: row-major); copies only where it must."""
        wanted = tuple(d for d in (range(x.rank) if order is None else order) if x.shape[d] != 1)
        return x if x.stored_order() == wanted else self.copy(x, wanted)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Row-major reshape. Merged dimensions must lie side by side where they are stored, or a copy is made."""
        shape = tuple(shape)
        if x.is_known and (x.size == 0 or x.is_ordered()):
            return Tensor.known(x.numpy().reshape(shape))
        old = [d for d in range(x.rank) if x.shape[d] != 1]
        new = [d for d in range(len(shape)) if shape[d] != 1]
        parts = blocks([x.shape[d] for d in old], [shape[d] for d in new])
        groups = [([old[i] for i in first], [new[j] for j in second]) for first, second in parts]
        order = x.stored_order()
        if not all(_adjacent(first, order) for first, _ in groups):
            x = self.ordered(x)
            order = x.stored_order()
        groups.sort(key=lambda group: order.index(group[0][0]))
        dims = tuple(d for _, second in groups for d in second)
        stored = [shape[d] for d in dims] or [1]
        return Tensor(x.dtype, shape, self.restructure(x.data, stored), dims or (None,))

    def value(self, x: Tensor) -> ir.Value:
        """The SSA value with exactly the logical shape, row-major."""
        x = self.stored(self.ordered(x))
        return self.restructure(x.data, x.shape)


def _adjacent(group: Sequence[int], order: Sequence[int]) -> bool:
    start = order.index(group[0])
    return list(order[start : start + len(group)]) == list(group)
