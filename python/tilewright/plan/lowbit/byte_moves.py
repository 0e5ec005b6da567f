# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves of elements, done on what they were made from: bytes that stand for them, or narrower floats.

A move commutes with an elementwise operation. Padding does, too, where it puts zeros around: of bytes, these are such
that hold the zero point.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from tilewright.ir.generics import body, create, create_fill, create_generic, is_zeros, kinds, maker, maps
from tilewright.ir.views import RESHAPES, create_joined
from tilewright.mlir import ir
from tilewright.plan.lowbit.quantized import Bytes, Dims, Move, element_name, empty, empty_as, indexed_by, number

_RESHAPES = (*RESHAPES, "tensor.extract_slice")


def splat_of(value: ir.Value) -> float | int | None:
    """The number that all elements of an `arith.constant` are."""
    op = maker(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    element = attribute.get_splat_value()
    return element.value if isinstance(element, ir.IntegerAttr | ir.FloatAttr) else None


def move_of(op: ir.Operation) -> Move | None:
    """What an operation moves its first operand by; None where it does something else."""
    kind = op.results[0].type
    if not isinstance(kind, ir.RankedTensorType):
        return None
    if op.name in _RESHAPES:
        return Move(op) if len(op.operands) == 1 else None
    if op.name == "tensor.insert_slice":
        return Move(op) if len(op.operands) == 2 and kind.has_static_shape and is_zeros(op.operands[1]) else None
    if op.name != "linalg.generic" or len(op.operands) != 2 or any(kinds(op)):
        return None
    block = body(op)
    copies = len(block.operations) == 1 and block.operations[0].operands[0] == block.arguments[0]
    reads = reads_of(op, 0)
    return Move(op, reads) if copies and reads is not None else None


def reads_of(op: ir.Operation, operand: int) -> ir.AffineMap | None:
    """The map by which an elementwise operation reads an operand, by dimensions of its result and by zeros."""
    found = maps(op)
    if found[-1] != ir.AffineMap.get_identity(found[-1].n_dims):
        return None
    return None if dims_of(found[operand]) is None else found[operand]


def dims_of(reads: ir.AffineMap) -> Dims | None:
    """The dimensions of a map that is made of them and of zeros."""
    if not all(isinstance(e, ir.AffineDimExpr) or _is_zero(e) for e in reads.results):
        return None
    return tuple(ir.AffineDimExpr(e).position if isinstance(e, ir.AffineDimExpr) else None for e in reads.results)


def _is_zero(expr: ir.AffineExpr) -> bool:
    return isinstance(expr, ir.AffineConstantExpr) and expr.value == 0


def after(x: Bytes, move: Move) -> Bytes | None:
    """`x` with a move to come; None where scale or zero point would not follow it."""
    dims = indexed_by(x.scale) | indexed_by(x.zero)
    if move.op.name in _RESHAPES and dims:
        return None
    if move.op.name == "tensor.insert_slice" and (indexed_by(x.zero) or not _is_byte(x) or dims & _padded(move.op)):
        return None
    moved = replace(x, moves=(*x.moves, move))
    if move.reads is None:
        return moved
    exprs = [*move.reads.results]
    if not all(isinstance(exprs[d], ir.AffineDimExpr) for d in dims):
        return None

    def moved_to(old: Dims) -> Dims:
        return tuple(None if d is None else ir.AffineDimExpr(exprs[d]).position for d in old)

    scale, zero = (replace(v, dims=moved_to(v.dims)) for v in (x.scale, x.zero))
    return replace(moved, scale=scale, zero=zero)


def _is_byte(x: Bytes) -> bool:
    low = 0 if x.unsigned else -128
    return x.zero.tensor is not None or low <= x.zero.number < low + 256


def _padded(op: ir.Operation) -> set[int]:
    """The dimensions along which an insertion leaves something around."""
    small, large = (ir.RankedTensorType(value.type).shape for value in op.operands)
    if len(small) != len(large):
        return set(range(len(large)))
    return {d for d, (a, b) in enumerate(zip(small, large, strict=True)) if a != b}


def origin_of(value: ir.Value) -> tuple[ir.Value, tuple[Move, ...]]:
    """What the elements of a tensor are, before they are moved; and the moves, the first one first."""
    moves: list[Move] = []
    op = maker(value)
    while op is not None and len(op.results) == 1 and (move := move_of(op)):
        moves.append(move)
        value = op.operands[0]
        op = maker(value)
    return value, tuple(reversed(moves))


def replay(x: Bytes) -> Bytes:
    """The elements where their moves bring them, at the current insertion point."""
    value = x.tensor
    reads: ir.AffineMap | None = None
    for move in x.moves:
        shape = list(ir.RankedTensorType(move.op.results[0].type).shape)
        if move.op.name == "tensor.insert_slice":
            value, reads = _insert(move.op, value, reads, _border(shape, x)), None
            continue
        if move.reads is None:
            if reads is not None:
                value, reads = _copied(value, reads, None), None
            kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
            value = create(move.op.name, [value], kind, {name: move.op.attributes[name] for name in move.op.attributes})
        elif reads is not None:
            composed = [expr.compose(move.reads) for expr in reads.results]
            reads = ir.AffineMap.get(move.reads.n_dims, 0, composed)
        elif not _is_identity(move.reads):
            reads = move.reads
    return replace(x, tensor=value if reads is None else _copied(value, reads, None), moves=())


def _is_identity(reads: ir.AffineMap) -> bool:
    return reads == ir.AffineMap.get_identity(reads.n_dims)


def _copied(value: ir.Value, reads: ir.AffineMap, target: ir.Value | None) -> ir.Value:
    """The elements that `reads` says; into a new tensor where there is no target."""
    if target is None and (view := _view(value, reads)) is not None:
        return view
    if target is None:
        dims = [(e, t) for t, e in enumerate(reads.results) if isinstance(e, ir.AffineDimExpr)]
        places = {ir.AffineDimExpr(e).position: (value, t) for e, t in dims}
        target = empty_as([places[d] for d in range(reads.n_dims)], element_name(value))
    same = ir.AffineMap.get_identity(reads.n_dims)
    return create_generic([(value, reads)], target, same, [False] * reads.n_dims, lambda e: e[0])


def _view(value: ir.Value, reads: ir.AffineMap) -> ir.Value | None:
    """The same elements without dimensions of size 1, where `reads` drops these alone; None where it does more."""
    kind = ir.RankedTensorType(value.type)
    kept = [t for t, e in enumerate(reads.results) if isinstance(e, ir.AffineDimExpr)]
    places = [ir.AffineDimExpr(reads.results[t]).position for t in kept]
    if not kept or places != [*range(reads.n_dims)] or any(kind.shape[t] != 1 for t in {*range(kind.rank)} - {*kept}):
        return None
    starts = [0, *kept[1:], kind.rank]  # what is dropped goes with the dimension before it
    groups = [[*range(first, last)] for first, last in itertools.pairwise(starts)]
    return create_joined(value, groups)


def _border(shape: list[int], x: Bytes) -> ir.Value:
    """A tensor full of zero points."""
    zero, kind = x.zero, element_name(x.tensor)
    if zero.tensor is None:
        return create_fill(number((zero.number + 128) % 256 - 128, kind), empty(shape, kind))
    byte = ir.IntegerType.get_signless(8)

    def step(e: list[ir.Value]) -> ir.Value:
        value = e[0] if str(e[0].type) == "i8" else create("arith.trunci", [e[0]], byte)
        shift = zero.number % 256
        return create("arith.addi", [value, number((shift + 128) % 256 - 128, "i8")], byte) if shift else value

    rank = len(shape)
    scalar = ir.AffineMap.get(rank, 0, [ir.AffineConstantExpr.get(0) for _ in zero.dims])
    same = ir.AffineMap.get_identity(rank)
    return create_generic([(zero.tensor, scalar)], empty(shape, "i8"), same, [False] * rank, step)


def _insert(op: ir.Operation, value: ir.Value, reads: ir.AffineMap | None, border: ir.Value) -> ir.Value:
    """`value` written into its place in the padding, where the copy may leave it."""
    names = ("static_offsets", "static_sizes", "static_strides")
    static = {name: op.attributes[name] for name in names}
    kind = ir.RankedTensorType.get(
        ir.RankedTensorType(op.operands[0].type).shape, ir.RankedTensorType(value.type).element_type
    )
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0])}
    place = create("tensor.extract_slice", [border], kind, {**static, **segments})
    copied = _copied(value, reads or ir.AffineMap.get_identity(kind.rank), place)
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0])}
    return create("tensor.insert_slice", [copied, border], border.type, {**static, **segments})
