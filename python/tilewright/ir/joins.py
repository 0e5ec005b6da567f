# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that are put together of slices: of which places of which tensors each element is a copy.

An element's place is followed through what only moves elements: insertions one behind the other, slices, reshapes,
copies, broadcasts and windows. What is left is a tensor that something computes, and an affine expression for each of
its dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.ir.generics import body, kinds, maker, maps, positions
from tilewright.ir.views import RESHAPES, groups_of
from tilewright.mlir import ir

Exprs = list[ir.AffineExpr]


@dataclass(frozen=True)
class Piece:
    """A part of a join: indices along the axis from `low` up to `high` are copies of `source` at `place`.

    `place` has an expression for each dimension of `source`, over the dimensions of the join.
    """

    low: int
    high: int
    source: ir.Value
    place: tuple[ir.AffineExpr, ...]


@dataclass(frozen=True)
class Join:
    """A tensor that is the pieces one behind the other along what `axis` says of its dimensions."""

    axis: ir.AffineExpr
    pieces: tuple[Piece, ...]


def join_of(value: ir.Value) -> Join | None:
    """What a tensor is put together of; None where it is no join of slices, or sizes are not known.

    A reshape of the join is followed, too: the axis and the places are then in terms of the tensor's own dimensions.
    """
    kind = ir.RankedTensorType(value.type)
    if not kind.has_static_shape or not prod(kind.shape):
        return None
    exprs: Exprs = [ir.AffineDimExpr.get(d) for d in range(kind.rank)]
    while (made := maker(value)) is not None and made.name in RESHAPES:
        exprs = _unreshaped(made, exprs)
        value = made.operands[0]
    parts = _parts(value)
    if parts is None:
        return None
    axis, inserts = parts
    pieces = []
    for low, high, insert in inserts:
        inside = [expr - low if d == axis else expr for d, expr in enumerate(exprs)]
        inside = _kept(insert.operands[0], _ints(insert, "static_sizes"), inside)
        source, place = _followed(insert.operands[0], inside, kind.rank)
        _append(pieces, Piece(low, high, source, tuple(place)))
    return Join(exprs[axis], tuple(pieces))


def _append(pieces: list[Piece], piece: Piece) -> None:
    """Neighbours that go on in the same places are one piece."""
    last = pieces[-1] if pieces else None
    if last is not None and last.source == piece.source and last.place == piece.place:
        pieces[-1] = Piece(last.low, piece.high, last.source, last.place)
    else:
        pieces.append(piece)


def _parts(value: ir.Value) -> tuple[int, list[tuple[int, int, ir.Operation]]] | None:
    """The axis and the insertions that a tensor is made of, in order; None where they do not cover it."""
    shape = list(ir.RankedTensorType(value.type).shape)
    inserts: list[ir.Operation] = []
    while (made := maker(value)) is not None and made.name == "tensor.insert_slice" and len(made.operands) == 2:
        inserts.append(made)
        value = made.operands[1]
    if made is None or made.name != "tensor.empty" or len(inserts) < 2:
        return None
    cut = {d for i in inserts for d, size in enumerate(_ints(i, "static_sizes")) if size != shape[d]}
    whole = all(set(_ints(i, "static_strides")) == {1} for i in inserts)
    if len(cut) != 1 or not whole:
        return None
    axis = cut.pop()
    spans = [(_ints(i, "static_offsets")[axis], _ints(i, "static_sizes")[axis], i) for i in inserts]
    parts = sorted(((low, low + size, i) for low, size, i in spans), key=lambda part: part[0])
    ends = [0, *(high for _, high, _ in parts)]
    covers = all(low == end for (low, _, _), end in zip(parts, ends, strict=False)) and ends[-1] == shape[axis]
    return (axis, parts) if covers else None


def _followed(value: ir.Value, exprs: Exprs, rank: int) -> tuple[ir.Value, Exprs]:
    """Where an element comes from: the tensor that something computes, and the place in it."""
    while (made := maker(value)) is not None:
        if made.name == "tensor.extract_slice" and len(made.operands) == 1:
            offsets, sizes = _ints(made, "static_offsets"), _ints(made, "static_sizes")
            if set(_ints(made, "static_strides")) != {1}:
                break
            exprs = [o + e for o, e in zip(offsets, _spread(value, sizes, exprs), strict=True)]
        elif made.name in RESHAPES:
            if not ir.RankedTensorType(made.operands[0].type).has_static_shape:
                break
            exprs = _unreshaped(made, exprs)
        elif _moves(made):
            read, written = maps(made)
            loops = dict(zip(positions(written), exprs, strict=True))
            by_loop = ir.AffineMap.get(rank, 0, [loops[d] for d in range(read.n_dims)])
            exprs = _simplified([e.compose(by_loop) for e in read.results], rank)
        else:
            break
        value = made.operands[0]
    return value, _simplified(exprs, rank)


def _simplified(exprs: Exprs, rank: int) -> Exprs:
    """Expressions over so many dimensions with sums of constants folded."""
    folded = [ir.AffineExpr.simplify_affine_expr(expr, rank, 0) for expr in exprs]
    return list(ir.AffineMap.get(rank, 0, folded).results)  # of the classes that tell what they are


def _moves(op: ir.Operation) -> bool:
    """Whether each element of a result is one of its only input's."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1 or any(kinds(op)):
        return False
    block = body(op)
    copies = len(block.operations) == 1 and block.operations[0].operands[0] == block.arguments[0]
    return copies and maps(op)[1].is_permutation


def _unreshaped(op: ir.Operation, exprs: Exprs) -> Exprs:
    """Where the elements of a reshaped tensor are in what it is made of."""
    groups = groups_of(op.attributes["reassociation"])
    if op.name == "tensor.expand_shape":
        shape = ir.RankedTensorType(op.results[0].type).shape
        found = []
        for group in groups:
            total: ir.AffineExpr = ir.AffineConstantExpr.get(0)
            for d in group:
                total = total * shape[d] + exprs[d] if shape[d] != 1 else total
            found.append(total)
        return found
    shape = ir.RankedTensorType(op.operands[0].type).shape
    found = [ir.AffineConstantExpr.get(0)] * len(shape)
    for group, expr in zip(groups, exprs, strict=True):
        inner = 1
        large = [d for d in group if shape[d] != 1]
        for d in reversed(large):
            at = expr if inner == 1 else ir.AffineExpr.get_floor_div(expr, inner)
            found[d] = at if d == large[0] else at % shape[d]
            inner *= shape[d]
    return found


def _kept(piece: ir.Value, sizes: list[int], exprs: Exprs) -> Exprs:
    """The places in a part as it was before it got dimensions of 1."""
    shape, kept = list(ir.RankedTensorType(piece.type).shape), []
    for size, expr in zip(sizes, exprs, strict=True):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(expr)
    return kept


def _spread(result: ir.Value, sizes: list[int], exprs: Exprs) -> Exprs:
    """The places in a slice before it lost dimensions of 1."""
    shape, rest = list(ir.RankedTensorType(result.type).shape), list(exprs)
    found = []
    for size in sizes:
        if rest and size == shape[len(shape) - len(rest)]:
            found.append(rest.pop(0))
        else:
            found.append(ir.AffineConstantExpr.get(0))
    return found


def _ints(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))
