# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scattering for machines with thousands of threads: each element of the result looks for what falls on it.

A loop that writes one update after the other is one thread's work, since two updates may fall on one element. Here
nothing is written twice: an element finds the last update that names it, or reduces all that do, in a fixed order of
its own. More work, by the number of places that indices choose among, and none of it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.frontend.builder.builder import REDUCTIONS, neutral
from tilewright.frontend.builder.dtypes import I64, is_bool, is_complex, promoted
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder

#: Places among which indices choose, at most: one thread's step for an update takes as long as that many comparisons.
_PLACES = 1 << 20
_I32 = np.dtype(np.int32)
_KINDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
#: Of bools, as ONNX has it: or, and.
_OF_BOOLS = {"add": "max", "max": "max", "mul": "min", "min": "min"}


def can_search(data: Tensor, indices: Tensor, first: int, end: int) -> bool:
    """Whether each element had better look for its updates; indices choose along dimensions first to end - 1."""
    if not (data.is_static and indices.is_static) or 0 in (*data.shape, *indices.shape):
        return False
    return not is_complex(data.dtype) and prod(int(n) for n in data.shape[first:end]) <= _PLACES


def by_axis(b: Builder, data: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: str) -> Tensor:
    """ScatterElements: data[.., indices[.., j, ..], ..] = updates[.., j, ..], later updates after earlier ones."""
    extent = data.shape[axis]
    chosen = _checked(b, indices, Tensor.known(extent, I64))
    order = [*(d for d in range(data.rank) if d != axis), axis]
    back = [order.index(d) for d in range(data.rank)]
    rows = data.transpose(order)
    # Rows without updates choose no place.
    room = [*(n - i for n, i in zip(rows.shape[:-1], chosen.transpose(order).shape[:-1], strict=True)), 0]
    chosen = b.pad(chosen.transpose(order), [0] * data.rank, room, -1)
    given = b.pad(updates.transpose(order), [0] * data.rank, room, 0)
    outer, rank = rows.shape[:-1], data.rank
    space = Space([*outer, extent, chosen.shape[-1]], frozenset([rank]))
    search = _Search(b, space, [(chosen, [*range(rank - 1), rank])], rank - 1, rows, range(rank))
    result = search.apply(given, [*range(rank - 1), rank], reduction)
    return result.transpose(back)


def by_rows(b: Builder, data: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """ScatterND: data[indices[i]] = updates[i], the last dimension of indices naming positions on the first of data."""
    depth = int(indices.shape[-1])
    sizes = [int(n) for n in data.shape]
    extents = sizes[:depth]
    places, inner, count = prod(extents), prod(sizes[depth:]), prod(int(n) for n in indices.shape[:-1])
    if depth == 0:
        row = Tensor.known(np.zeros(count, np.int64))
    else:
        given = _checked(b, b.reshape(indices, [count, depth]), Tensor.known(np.array(extents, np.int64)))
        steps = Tensor.known(np.array([prod(extents[d + 1 :]) for d in range(depth)], np.int64))
        row = b.reduce("sum", b.elementwise(lambda m, i, step: i * step, given, steps), [1], keepdims=False)
    rows, given = b.reshape(data, [places, inner]), b.reshape(updates, [count, inner])
    search = _Search(b, Space([places, inner, count], frozenset([2])), [(row, [2])], 0, rows, [0, 1])
    return b.reshape(search.apply(given, [2, 1], reduction), data.shape)


def _checked(b: Builder, indices: Tensor, extents: Tensor) -> Tensor:
    """Indices from 0 on; the run stops where one lies outside."""
    given = b.cast(indices, I64)
    if not given.is_known:
        given = b.array(given)

    def outside(m, i, extent):
        return m.cast(m.logical_or(i < 0 - extent, i >= extent), _I32)

    wrong = b.reduce("max", b.elementwise(outside, given, extents, dtype=_I32), range(given.rank), keepdims=False)
    b.require(b.item(wrong).eq(0), "an index lies outside of the data")
    return b.elementwise(lambda m, i, extent: m.where(i < 0, i + extent, i), given, extents)


class _Search:
    """What falls on each element of `rows`.

    Args:
        b: the builder.
        space: loops over the elements of `rows`, and the last one over updates.
        chosen: the place that each update names, with the loops that it is indexed by.
        place: the loop over places.
        rows: the data.
        loops: the loops of `rows`.
    """

    def __init__(
        self,
        b: Builder,
        space: Space,
        chosen: Sequence[tuple[Tensor, Sequence[int]]],
        place: int,
        rows: Tensor,
        loops: Sequence[int],
    ) -> None:
        self.b, self.space, self.place, self.rows, self.loops = b, space, place, rows, list(loops)
        ((self.chosen, self.chosen_at),) = chosen

    def apply(self, updates: Tensor, at: Sequence[int], reduction: str) -> Tensor:
        """The data with the updates, which are indexed by the loops `at`."""
        if reduction == "none":
            return self._last(updates, at)
        return self._reduced(updates, at, reduction)

    def _spread(self, x: Tensor, at: Sequence[int]) -> Tensor:
        """A tensor over all loops of the space, with ones where it is not indexed by them."""
        loops = sorted(at)
        x = x.transpose([list(at).index(d) for d in loops])
        return x.unsqueeze([d for d in range(len(self.space.sizes)) if d not in loops])

    def _reduced(self, updates: Tensor, at: Sequence[int], reduction: str) -> Tensor:
        b, update = self.b, len(self.space.sizes) - 1
        logical = is_bool(self.rows.dtype)
        kind = (_OF_BOOLS if logical else _KINDS)[reduction]
        wide = _I32 if logical else promoted(self.rows.dtype)
        rows, updates = b.cast(self.rows, wide), b.cast(updates, wide)
        nothing = Tensor.known(neutral(kind, wide), wide)

        def falling(m, chosen, place, value, nothing):
            return m.where(m.eq(chosen, place), value, nothing)

        pairs = (self._spread(self.chosen, self.chosen_at), self._places(), self._spread(updates, at))
        found = b.reduce(kind, b.elementwise(falling, *pairs, nothing, dtype=wide), [update], keepdims=False)
        body = REDUCTIONS[kind][1]
        joined = b.elementwise(lambda m, old, new: body(m, new, old), rows, found, dtype=wide)
        return b.cast(joined, BOOL if logical else self.rows.dtype)

    def _places(self) -> Tensor:
        size = self.space.sizes[self.place]
        return self._spread(self.b.positions(size), [self.place])

    def _last(self, updates: Tensor, at: Sequence[int]) -> Tensor:
        """The last update of each element; -1 where there is none. Loops that no index knows are not searched."""
        b, update = self.b, len(self.space.sizes) - 1
        numbers = self._spread(b.positions(self.space.sizes[update]), [update])
        none = Tensor.known(-1, I64)

        def falling(m, chosen, place, number, none):
            return m.where(m.eq(chosen, place), number, none)

        pairs = (self._spread(self.chosen, self.chosen_at), self._places(), numbers, none)
        last = b.reduce("max", b.elementwise(falling, *pairs, dtype=I64), [update], keepdims=False)
        given = b.array(updates)
        kept = [d for d in self.loops if last.shape[d] != 1]

        def value(m, last: Scalar, old: Scalar, _: Scalar) -> Scalar:
            number = m.cast(m.maximum(last, 0), INDEX)
            read = [number if d == update else b.counter(space, d) for d in at]
            return m.where(last < 0, old, b.at(given, read))

        space = Space(self.rows.shape)
        inputs = [(last, [d if d in kept else None for d in self.loops]), (self.rows, self.loops)]
        return b.generic(space, inputs, self.loops, self.rows.dtype, value)
