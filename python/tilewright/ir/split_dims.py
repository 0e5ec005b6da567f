# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors in tiles: what replaces a tensor by one whose dimensions are split, for rewriting passes of phase `plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir.generics import (
    body,
    create,
    create_copy,
    create_fill,
    create_generic,
    create_zero,
    is_zeros,
    kinds,
    maker,
    maps,
    uses,
)
from tilewright.ir.views import create_joined, create_split, joined_shape
from tilewright.mlir import ir

#: What makes the place that an elementwise operation writes its result in: a tensor of its own, or part of another one.
_PLACES = ("tensor.empty", "tensor.extract_slice")
_OFFSETS = ("static_offsets", "static_sizes", "static_strides")


def widened(value: ir.Value, sizes: Mapping[int, int]) -> ir.Value:
    """`value` with zeros behind it up to `sizes` of some of its dimensions, at the current insertion point.

    A tensor that is put into zeros anyway is put into more of them.
    """
    old = list(ir.RankedTensorType(value.type).shape)
    shape = [max(size, sizes.get(t, size)) for t, size in enumerate(old)]
    if shape == old:
        return value
    if _widen_zeros(value, shape):
        return value
    kind = ir.RankedTensorType(value.type).element_type
    zeros = create_fill(create_zero(kind), create("tensor.empty", [], ir.RankedTensorType.get(shape, kind)))
    place = _slice(zeros, old)
    copied = create_copy(value, place)
    segments = ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0])
    attributes = {name: place.owner.attributes[name] for name in _OFFSETS} | {"operandSegmentSizes": segments}
    return create("tensor.insert_slice", [copied, zeros], zeros.type, attributes)


def _widen_zeros(value: ir.Value, shape: list[int]) -> bool:
    """Widens the zeros that a tensor was put into, where nothing else sees them."""
    insert = maker(value)
    if insert is None or insert.name != "tensor.insert_slice" or len(list(uses(value))) != 1:
        return False
    fill = maker(insert.operands[1])
    if fill is None or not is_zeros(fill.results[0]):
        return False
    if any(user != insert and user.name != "tensor.extract_slice" for user, _ in uses(fill.results[0])):
        return False
    empty = maker(fill.operands[1])
    if empty is None or empty.name != "tensor.empty":
        return False
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    with fill.location, ir.InsertionPoint(fill):
        fill.operands[1] = create("tensor.empty", [], kind)
    for result in (fill.results[0], value):
        result.set_type(kind)
    return True


def _slice(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The beginning of a tensor."""
    kind = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    array = ir.DenseI64ArrayAttr.get
    arrays = ([0] * len(shape), list(shape), [1] * len(shape))
    attributes = {name: array(numbers) for name, numbers in zip(_OFFSETS, arrays, strict=True)}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
    return create("tensor.extract_slice", [value], kind, attributes)


def spread(made: ir.Operation, replaced: ir.Operation, groups: list[list[int]]) -> None:
    """Lets `made`, whose dimensions in `groups` are one each of `replaced`'s result, take its place.

    Elementwise operations on it alone run over the new dimensions, too: so they meet the transform in registers.
    """
    while _is_whole(made, replaced, groups):
        readers = list(uses(replaced.results[0]))
        after = readers[0][0] if len(readers) == 1 else None
        if after is None or not _follows(after, replaced):
            break
        made = _spread_one(after, replaced, made, groups)
        old, replaced = replaced, after
        after.operands[readers[0][1]] = after.operands[len(after.operands) - 1]  # it will be replaced, too
        old.erase()
    with replaced.location, ir.InsertionPoint(replaced):
        value = create_joined(made.results[0], groups)
        if not _is_whole(made, replaced, groups):
            value = _slice(value, ir.RankedTensorType(replaced.results[0].type).shape)
            if any(user.name != "linalg.generic" for user, _ in uses(replaced.results[0])):
                value = create_copy(value, create("tensor.empty", [], value.type))  # reshapes take contiguous tensors
    replaced.results[0].replace_all_uses_with(value)
    replaced.erase()


def _is_whole(made: ir.Operation, replaced: ir.Operation, groups: list[list[int]]) -> bool:
    """Whether the tensor in tiles has no points that the replaced one lacks."""
    shape, whole = (ir.RankedTensorType(op.results[0].type).shape for op in (made, replaced))
    return joined_shape(shape, groups) == list(whole)


def _follows(after: ir.Operation, before: ir.Operation) -> bool:
    """Whether an operation is elementwise over the same points as the one before, in the same order."""
    if after.name != "linalg.generic" or len(after.results) != 1 or after.block != before.block:
        return False
    target = maker(after.operands[len(after.operands) - 1])
    own = maps(after)
    rank = ir.RankedTensorType(before.results[0].type).rank
    same = ir.AffineMap.get_identity(rank)
    if any(kinds(after)) or own[-1] != same or target is None or target.name not in _PLACES:
        return False
    if any(v == before.results[0] and m != same for v, m in zip(after.operands, own, strict=True)):
        return False
    return not any(inner.operation.name in ("linalg.index", "tensor.extract") for inner in body(after).operations)


def _spread_one(op: ir.Operation, before: ir.Operation, made: ir.Operation, groups: list[list[int]]) -> ir.Operation:
    """A copy of an elementwise operation over the new dimensions."""
    shape = list(ir.RankedTensorType(made.results[0].type).shape)
    loops = []
    for group in groups:
        expr = ir.AffineDimExpr.get(group[0])
        for d in group[1:]:
            expr = expr * shape[d] + ir.AffineDimExpr.get(d)
        loops.append(expr)
    rank = len(shape)
    same = ir.AffineMap.get_identity(rank)
    reads = []
    for value, read in list(zip(op.operands, maps(op), strict=True))[:-1]:
        own = value == before.results[0]
        exprs = [_replaced(e, loops, rank) for e in read.results]
        reads.append((made.results[0] if own else value, same if own else ir.AffineMap.get(rank, 0, exprs)))
    kind = ir.RankedTensorType(op.results[0].type).element_type

    def compute(elements: list[ir.Value]) -> ir.Value:
        known = dict(zip(body(op).arguments, elements, strict=True))
        for inner in body(op).operations:
            if inner.operation.name == "linalg.yield":
                return known.get(inner.operands[0], inner.operands[0])
            copy = inner.operation.clone()
            for number, value in enumerate(inner.operands):
                copy.operands[number] = known.get(value, value)
            known.update(zip(inner.results, copy.results, strict=True))
        raise AssertionError("a body without its end")

    with op.location, ir.InsertionPoint(op):
        target = _place(op.operands[len(op.operands) - 1], ir.RankedTensorType.get(shape, kind), groups)
        result = maker(create_generic(reads, target, same, [False] * rank, compute))
    assert result is not None
    return result


def _replaced(expr: ir.AffineExpr, loops: Sequence[ir.AffineExpr], rank: int) -> ir.AffineExpr:
    """An index expression over other loops."""
    return expr.compose(ir.AffineMap.get(rank, 0, list(loops)))


def _place(target: ir.Value, kind: ir.RankedTensorType, groups: list[list[int]]) -> ir.Value:
    """Where a result over the new dimensions goes: where it went before."""
    if target.owner.name == "tensor.empty":
        return create("tensor.empty", [], kind)
    return create_split(target, groups, kind.shape)
