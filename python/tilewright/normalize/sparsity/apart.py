# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that keep less than the axes they index: their operands are gathered, their results spread among zeros.

A residual stream holds channels that one product does not read, gates of a mixture hold experts that compute nothing:
others need them, so the tensor keeps them. The reduction can do without where that saves more than it moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.ir.generics import create, create_copy, create_generic, create_zero, dims_of, kinds, maps
from tilewright.mlir import ir
from tilewright.normalize.sparsity.facts import Facts, extent, shape_of
from tilewright.normalize.sparsity.kept import Kept, Place, axis_of, loop_of
from tilewright.passes.weights import create_table

#: Points of a reduction that are worth an element gathered or spread.
_WORTH = 16
#: The part of a loop's indices that must fall away for others to be moved: fewer leave patterns of zeros torn apart.
_PART = 1 / 8
#: Loops that are tried one by one, at most.
_SINGLY = 8
_CONSTANTS = ("arith.constant", "ml_program.global_load_const")


def analysed(block: ir.Block, ops: Sequence[ir.Operation], facts: Facts) -> Kept:
    """What is kept; loops are apart where it pays.

    All are at first. Those that save too little by themselves are tied, together or one by one, as long as that helps:
    what a sum over experts gathers may be what lets the experts before it go.
    """
    tied: frozenset[Place] = frozenset()
    kept = _kept(block, ops, facts, tied)
    while lost := [place for place, op in kept.free.items() if not _pays(kept, place, op)]:
        choices = [tied | set(lost), *(tied | {place} for place in lost if 1 < len(lost) <= _SINGLY)]
        found = [
            (_cost(other, ops), choice, other) for choice in choices for other in [_kept(block, ops, facts, choice)]
        ]
        cost, choice, other = min(found, key=lambda one: one[0])
        if cost > _cost(kept, ops):
            break
        tied, kept = choice, other
    return kept


def _kept(block: ir.Block, ops: Sequence[ir.Operation], facts: Facts, tied: frozenset[Place]) -> Kept:
    kept = Kept(facts, tied)
    own = {value for op in ops for value in op.results}
    for value in (*block.arguments, *(v for op in ops for v in op.operands if v not in own)):
        kept.whole(value)
    for op in ops:
        kept.look_at(op)
    kept.close()
    return kept


def _cost(kept: Kept, ops: Sequence[ir.Operation]) -> int:
    """Points of reductions, and what elements that are moved are worth of them; sizes that a run brings count as 1."""
    total = sum(_price(kept, place, op) for place, op in kept.free.items())
    for op in ops:
        if op.name == "linalg.generic" and any(kinds(op)):
            total += prod(int(kept.of(loop_of(op, loop)).sum()) or 1 for loop in range(len(kinds(op))))
    return total


def _price(kept: Kept, place: Place, op: ir.Operation) -> int:
    """Points that the elements that are moved for a loop are worth; where too few indices fall away, all that do."""
    own, moved = kept.of(place), _moved(kept, place, op)
    if moved and (~own).sum() < _PART * own.size:
        return max(_WORTH * moved, _points(op, place[1]) * own.size)
    return _WORTH * moved


def _pays(kept: Kept, place: Place, op: ir.Operation) -> bool:
    """Whether a loop saves enough by itself; what needs no moving always does."""
    return _points(op, place[1]) * int((~kept.of(place)).sum()) >= _price(kept, place, op)


def _points(op: ir.Operation, loop: int) -> int:
    """Points for each index of a loop."""
    return prod(extent(op, other) or 1 for other in range(len(kinds(op))) if other != loop)


def _moved(kept: Kept, place: Place, op: ir.Operation) -> int:
    """Elements that are gathered and spread."""
    loop, own = place[1], kept.of(place)
    moved = sum(
        prod(int(kept.of(axis_of(value, e)).sum()) or 1 for e in range(len(shape_of(value))) if e != d) * int(own.sum())
        for value, d in _indexed(op, loop)
        if not _is_constant(value) and (kept.of(axis_of(value, d)) != own).any()
    )
    for d in _written(op, loop):
        if (kept.of(axis_of(op.results[0], d)) != own).any():
            moved += prod(
                int(kept.of(axis_of(op.results[0], e)).sum()) or 1 for e in range(len(shape_of(op.results[0])))
            )
    return moved


def _indexed(op: ir.Operation, loop: int) -> list[tuple[ir.Value, int]]:
    """Operands that a reduction's loop indexes, each with the axis."""
    if not kinds(op)[loop]:
        return []
    return [
        (value, d)
        for value, access in zip(op.operands, maps(op), strict=True)
        for d, expr in enumerate(access.results)
        if isinstance(expr, ir.AffineDimExpr) and expr.position == loop
    ]


def _written(op: ir.Operation, loop: int) -> list[int]:
    """The result's axis that a parallel loop indexes."""
    if kinds(op)[loop]:
        return []
    return dims_of(maps(op)[-1], loop)


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.operation.name in _CONSTANTS


class Apart:
    """The operations that gather and spread, planned with the sizes of before and made when tensors have shrunk."""

    def __init__(self, kept: Kept) -> None:
        """Note what differs: the places of a loop's indices among those of an axis, and what else an axis holds."""
        self._gathers: dict[tuple[ir.Operation, int], dict[int, np.ndarray]] = {}
        self._spreads: dict[ir.Operation, dict[int, np.ndarray]] = {}
        self._made: dict[tuple[ir.Value, tuple[tuple[int, bytes], ...]], ir.Value] = {}
        for place, op in kept.free.items():
            self._note_gathers(kept, op, place)
            own = kept.of(place)
            for d in _written(op, place[1]):
                axis = kept.of(axis_of(op.results[0], d))
                if (axis != own).any():
                    self._spreads.setdefault(op, {})[d] = np.where(own, np.cumsum(own) - 1, -1)[axis]

    def _note_gathers(self, kept: Kept, op: ir.Operation, place: Place) -> None:
        own = kept.of(place)
        for number, (value, access) in enumerate(zip(op.operands, maps(op), strict=True)):
            for d, expr in enumerate(access.results if kinds(op)[place[1]] else ()):
                if not isinstance(expr, ir.AffineDimExpr) or expr.position != place[1]:
                    continue
                axis = kept.of(axis_of(value, d))
                if (axis != own).any():
                    at = np.searchsorted(np.flatnonzero(axis), np.flatnonzero(own))
                    self._gathers.setdefault((op, number), {})[d] = at

    def loops(self, op: ir.Operation, kept: Kept) -> list[np.ndarray] | None:
        """The indices that an operation itself makes along each axis of its result; None where it makes all."""
        if op not in self._spreads:
            return None
        found = kept.all_axes(op.results[0])
        for d in self._spreads[op]:
            found[d] = kept.of(loop_of(op, maps(op)[-1].results[d].position))
        return found

    def spread(self) -> None:
        """Insert what spreads results: then all tensors have the sizes of what is kept."""
        for op, axes in self._spreads.items():
            self._spread(op, axes)

    def gather(self) -> None:
        """Insert what gathers operands."""
        for (op, number), places in self._gathers.items():
            op.operands[number] = self._gathered(op.operands[number], places)

    def _gathered(self, value: ir.Value, places: dict[int, np.ndarray]) -> ir.Value:
        key = (value, tuple((d, at.tobytes()) for d, at in places.items()))
        if key not in self._made:
            owner = value.owner
            is_argument = isinstance(value, ir.BlockArgument)
            point = ir.InsertionPoint.at_block_begin(owner) if is_argument else ir.InsertionPoint.after(owner)
            with point, ir.Location.unknown() if is_argument else owner.location:
                tables = {d: _table(one) for d, one in places.items()}
                self._made[key] = gathering(value, tables, {d: len(one) for d, one in places.items()})
        return self._made[key]

    def _spread(self, op: ir.Operation, axes: dict[int, np.ndarray]) -> None:
        """Zeros where the operation makes nothing."""
        uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
        with ir.InsertionPoint.after(op), op.location:
            value = op.results[0]
            for d, at in axes.items():
                value = _spread_along(value, d, at)
        for user, number in uses:
            user.operands[number] = value


def gathering(value: ir.Value, tables: dict[int, ir.Value], sizes: dict[int, int]) -> ir.Value:
    """A generic that reads a tensor at places that tables name, and elsewhere at the loops' own.

    Args:
        value: the tensor.
        tables: of some axes, a tensor of integers with the places.
        sizes: how many places each table has.
    """
    rank = len(shape_of(value))

    def read(elements: list[ir.Value]) -> ir.Value:
        return _read(value, dict(zip(tables, elements, strict=False)))  # the last element is the old one

    reads = [(table, ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d)])) for d, table in tables.items()]
    return create_generic(reads, _empty(value, sizes), ir.AffineMap.get_identity(rank), [False] * rank, read)


def _table(array: np.ndarray) -> ir.Value:
    """Places for a run to read, i32: what @init computes is kept, what it only reads is not."""
    whole = create_table(array.astype(np.int64))
    kind = ir.RankedTensorType.get(ir.RankedTensorType(whole.type).shape, ir.IntegerType.get_signless(32))
    return create_copy(whole, create("tensor.empty", [], kind), "arith.trunci")


def _spread_along(value: ir.Value, d: int, at: np.ndarray) -> ir.Value:
    """The slices of a tensor at some indices of an axis, zeros at the others (`at` < 0)."""
    element, rank = ir.RankedTensorType(value.type).element_type, len(shape_of(value))
    i32 = ir.IntegerType.get_signless(32)

    def read(elements: list[ir.Value]) -> ir.Value:
        zero = create("arith.constant", [], i32, {"value": ir.IntegerAttr.get(i32, 0)})
        is_made = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 5)}  # at least, signed
        chosen = create("arith.cmpi", [elements[0], zero], ir.IntegerType.get_signless(1), is_made)
        place = create("arith.maxsi", [elements[0], zero], i32)
        return create("arith.select", [chosen, _read(value, {d: place}), create_zero(element)], element)

    target = _empty(value, {d: len(at)})
    reads = [(_table(at), ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d)]))]
    return create_generic(reads, target, ir.AffineMap.get_identity(rank), [False] * rank, read)


def _read(value: ir.Value, named: dict[int, ir.Value]) -> ir.Value:
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    places = [
        create("arith.index_cast", [named[d]], index)
        if d in named
        else create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, d)})
        for d in range(len(shape_of(value)))
    ]
    return create("tensor.extract", [value, *places], ir.RankedTensorType(value.type).element_type)


def _empty(value: ir.Value, sizes: dict[int, int]) -> ir.Value:
    """A place for a tensor of other sizes along some axes."""
    index, shape = ir.IndexType.get(), list(shape_of(value))
    for d, size in sizes.items():
        shape[d] = size
    dims = []
    for d, size in enumerate(shape):
        if size < 0:
            at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})
            dims.append(create("tensor.dim", [value, at], index))
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    return create("tensor.empty", dims, kind)
