# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that take less than a byte each, and products that widen them: what `tile-weight-only-quantization` writes.

The reduced loop of the product is split: blocks that share scales, bytes of a block, elements of a byte. What a step
reads is then indexed by one loop per dimension, as in every other product, and scales stay in registers for a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from tilewright.ir.decodes import Decoding, as_float, computed, extended
from tilewright.ir.generics import (
    body,
    create,
    create_generic,
    create_repeated,
    create_split,
    kinds,
    maker,
    maps,
    positions,
)
from tilewright.ir.split_dims import widened
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir
from tilewright.plan.lowbit.quantized import number


@dataclass(frozen=True)
class Read:
    """A tensor that another one is made of, element by element.

    Attributes:
        value: the tensor.
        dims: for each of its dimensions, the dimension of the other tensor that indexes it, and how many neighbours
            there read the same index; None where all read index 0.
        joined: dimensions of the value that are one of these, where any are several.
    """

    value: ir.Value
    dims: tuple[tuple[int, int] | None, ...]
    joined: tuple[tuple[int, ...], ...] = ()

    def flat(self) -> ir.Value:
        """The tensor with the dimensions of `dims`, at the current insertion point."""
        if not self.joined:
            return self.value
        kind, i64 = ir.RankedTensorType(self.value.type), ir.IntegerType.get_signless(64)
        shape = [prod(kind.shape[t] for t in group) for group in self.joined]
        groups = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, t) for t in g]) for g in self.joined])
        result = ir.RankedTensorType.get(shape, kind.element_type)
        return create("tensor.collapse_shape", [self.value], result, {"reassociation": groups})

    def block(self, dim: int) -> int:
        """How many neighbours along a dimension of the other tensor read the same element; 0 where all do."""
        return next((size for at in self.dims if at is not None for d, size in [at] if d == dim), 0)


@dataclass(frozen=True)
class Small:
    """How a product reads weights as they are stored.

    Attributes:
        made: the operation that dequantizes them.
        decoding: how its body does.
        number: the operand of the product, 0 or 1.
        reads: what `made` reads.
        data: which of these the weights are; the others are scales and zero points.
        bits: of an element.
        dim: of the weights, the one along which elements share bytes and scales.
        loop: of the product, reduced, along `dim`.
        parts: what the loop is split into; one part: it is not.
        inner: along how many of the innermost parts zero points and scales are the same.
    """

    made: ir.Operation
    decoding: Decoding
    number: int
    reads: tuple[Read, ...]
    data: int
    bits: int
    dim: int
    loop: int
    parts: tuple[int, ...]
    inner: int

    @property
    def unsigned(self) -> bool:
        """Whether elements are widened without a sign."""
        return self.decoding.unsigned


def behind(value: ir.Value) -> tuple[ir.Operation | None, list[list[int]]]:
    """What makes a tensor, before dimensions were joined: the operation, and its dimensions behind each of these."""
    op = maker(value)
    if op is None or op.name != "tensor.collapse_shape":
        return op, [[d] for d in range(ir.RankedTensorType(value.type).rank)]
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return maker(op.operands[0]), [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(group)] for group in groups]


def reads_of(made: ir.Operation, groups: Sequence[Sequence[int]]) -> tuple[Read, ...] | None:
    """What an elementwise operation reads, through copies that repeat elements; None where an index is computed.

    Args:
        made: the operation.
        groups: which of its result's dimensions are joined; reads are by the joined ones.
    """
    found = []
    place = {loop: dim for dim, loop in enumerate(positions(maps(made)[-1]))}
    shape = ir.RankedTensorType(made.results[0].type).shape
    for value, read in zip(list(made.operands)[:-1], maps(made), strict=False):
        dims = _dims(read, place)
        joined = None if dims is None else _joined(_origin(Read(value, dims)), groups, shape)
        if joined is None:
            return None
        found.append(joined)
    return tuple(found)


def _joined(read: Read, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Read | None:
    """A read by dimensions some of which are joined: by all of these, or by the outermost one, in blocks."""
    group_of = {d: g for g, group in enumerate(groups) for d in group}
    dims: list[tuple[int, int] | None] = []
    joined: list[tuple[int, ...]] = []
    while (t := sum(map(len, joined))) < len(read.dims):
        at = read.dims[t]
        group = [] if at is None else groups[group_of[at[0]]]
        if at is None:
            dims.append(None)
        elif read.dims[t : t + len(group)] == tuple((d, 1) for d in group):
            dims.append((group_of[at[0]], 1))
        elif at[0] == group[0]:
            dims.append((group_of[at[0]], at[1] * prod(shape[d] for d in group[1:])))
            group = []
        else:
            return None
        joined.append(tuple(range(t, t + max(len(group), 1))))
    return Read(read.value, tuple(dims), tuple(joined) if any(len(g) > 1 for g in joined) else ())


def _dims(read: ir.AffineMap, place: dict[int, int]) -> tuple[tuple[int, int] | None, ...] | None:
    """Which dimension of a result, known by its loop, indexes each dimension of an operand, in blocks of what size."""
    found: list[tuple[int, int] | None] = []
    for expr in read.results:
        if isinstance(expr, ir.AffineDimExpr):
            found.append((place[expr.position], 1))
        elif isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
            found.append(None)
        elif isinstance(expr, ir.AffineFloorDivExpr) and isinstance(expr.lhs, ir.AffineDimExpr):
            if not isinstance(expr.rhs, ir.AffineConstantExpr):
                return None
            found.append((place[expr.lhs.position], expr.rhs.value))
        else:
            return None
    return tuple(found)


def _origin(read: Read) -> Read:
    """What a read of repeated elements reads in the end."""
    op = maker(read.value)
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or any(kinds(op)):
        return read
    block = body(op)
    if len(block.operations) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        return read
    inner = _dims(maps(op)[0], {loop: dim for dim, loop in enumerate(positions(maps(op)[-1]))})
    if inner is None:
        return read
    dims: list[tuple[int, int] | None] = []
    for at in inner:
        outer = None if at is None else read.dims[at[0]]
        dims.append(None if at is None or outer is None else (outer[0], outer[1] * at[1]))
    return _origin(Read(op.operands[0], tuple(dims)))


def parts_of(extent: int, block: int, bits: int) -> tuple[int, ...]:
    """What a reduced loop is split into: blocks of scales, bytes, elements of a byte; the last ones may be padded.

    Args:
        extent: of the loop.
        block: how many elements share scales; 0 where all do, 1 where none do.
        bits: of an element, a part of 8.
    """
    shared = block if 1 < block < extent else 0
    each = 8 // bits
    blocks = [ceil(extent / shared)] if shared else []
    if each == 1:
        return (*blocks, shared or extent)
    return (*blocks, ceil((shared or extent) / each), each)


def with_weights(op: LinalgOp, small: Small) -> ir.Operation:
    """The product that widens its weights, in front of `op`: x, the weights, then scales and zero points.

    The two operands keep their numbers. An x whose sums are no whole blocks is put into zeros.
    """
    old, more = op.op, len(small.parts) - 1
    rank = op.rank + more
    loops = [ir.AffineDimExpr.get(d if d <= small.loop else d + more) for d in range(op.rank)]
    split = [ir.AffineDimExpr.get(small.loop + i) for i in range(len(small.parts))]
    access = op.inputs[small.number]
    with old.location, ir.InsertionPoint(old):
        x = _other_operand(op, small, loops, split)
        weights = _weights(op, small, loops, split)
        others = [
            _parameter(read, small, access.dims, loops, split) for n, read in enumerate(small.reads) if n != small.data
        ]
        pairs = [weights, x] if small.number == 0 else [x, weights]
        reads = [(value, ir.AffineMap.get(rank, 0, exprs)) for value, exprs in [*pairs, *others]]
        written = _over(maps(old)[-1], loops, rank)
        reduces = kinds(old)
        reduces[small.loop : small.loop + 1] = [True] * len(split)
        made = create_generic(reads, old.operands[-1], written, reduces, lambda e: _element(op, small, e))
    return made.owner


def _over(read: ir.AffineMap, loops: Sequence[ir.AffineExpr], rank: int) -> ir.AffineMap:
    """A map over other loops."""
    return ir.AffineMap.get(rank, 0, [e.compose(ir.AffineMap.get(rank, 0, list(loops))) for e in read.results])


def _split(value: ir.Value, dim: int, parts: Sequence[int]) -> ir.Value:
    """A tensor with one dimension in parts, zeros behind its end where these are larger."""
    return create_split(widened(value, {dim: prod(parts)}), dim, parts) if len(parts) > 1 else value


def _other_operand(
    op: LinalgOp, small: Small, loops: Sequence[ir.AffineExpr], split: Sequence[ir.AffineExpr]
) -> tuple[ir.Value, list[ir.AffineExpr]]:
    access = op.inputs[1 - small.number]
    value = _split(access.value, access.dims.index(small.loop), small.parts)
    return value, _places(access.dims, small.loop, loops, split)


def _places(
    dims: Sequence[int | None], loop: int, loops: Sequence[ir.AffineExpr], split: Sequence[ir.AffineExpr]
) -> list[ir.AffineExpr]:
    """The index expressions of a tensor whose dimensions are walked by loops, one of which is split."""
    found: list[ir.AffineExpr] = []
    for d in dims:
        found += [ir.AffineConstantExpr.get(0)] if d is None else split if d == loop else [loops[d]]
    return found


def _weights(
    op: LinalgOp, small: Small, loops: Sequence[ir.AffineExpr], split: Sequence[ir.AffineExpr]
) -> tuple[ir.Value, list[ir.AffineExpr]]:
    """The stored weights, several to a byte where they are small enough."""
    read = small.reads[small.data]
    order = [at[0] for at in read.dims if at is not None]
    value = _split(read.flat(), order.index(small.dim), small.parts)
    walked = [op.inputs[small.number].dims[d] for d in order]
    if small.bits == 8:
        return value, _places(walked, small.loop, loops, split)
    last = order.index(small.dim) + len(small.parts) - 1
    return _packed(value, last, small.bits, small.unsigned), _places(walked, small.loop, loops, split[:-1])


def _packed(value: ir.Value, dim: int, bits: int, unsigned: bool) -> ir.Value:
    """Neighbours along a dimension in one byte, the first one in its lowest bits, counted from the least number."""
    kind = ir.RankedTensorType(value.type)
    shape = [size for d, size in enumerate(kind.shape) if d != dim]
    loops = [ir.AffineDimExpr.get(d) for d in range(len(shape))]
    zero_code = 0 if unsigned else 1 << bits - 1

    def read(n: int) -> ir.AffineMap:
        return ir.AffineMap.get(len(shape), 0, [*loops[:dim], ir.AffineConstantExpr.get(n), *loops[dim:]])

    def join(elements: list[ir.Value]) -> ir.Value:
        joined = None
        for n, element in enumerate(elements[:-1]):
            part = create("arith.andi", [element, number((1 << bits) - 1, "i8")], element.type)
            part = create("arith.xori", [part, number(zero_code, "i8")], element.type) if zero_code else part
            if n:
                part = create("arith.shli", [part, number(bits * n, "i8")], element.type)
            joined = part if joined is None else create("arith.ori", [joined, part], element.type)
        assert joined is not None
        return joined

    place = create("tensor.empty", [], ir.RankedTensorType.get(shape, kind.element_type))
    reads = [(value, read(n)) for n in range(kind.shape[dim])]
    return create_generic(reads, place, ir.AffineMap.get_identity(len(shape)), [False] * len(shape), join)


def _parameter(
    read: Read,
    small: Small,
    walked: Sequence[int | None],
    loops: Sequence[ir.AffineExpr],
    split: Sequence[ir.AffineExpr],
) -> tuple[ir.Value, list[ir.AffineExpr]]:
    """A scale or zero point: of an element, of a block, or of more."""
    value, exprs = read.flat(), list[ir.AffineExpr]()
    for at in read.dims:
        loop = None if at is None else walked[at[0]]
        if at is None or loop is None or at[1] >= prod(small.parts) > 1:
            exprs.append(ir.AffineConstantExpr.get(0))
        elif at[0] != small.dim:
            exprs.append(loops[loop])
        elif at[1] > 1:
            exprs.append(split[0])
        else:
            value = _split(value, len(exprs), small.parts)
            exprs += split
    return value, exprs


def _element(op: LinalgOp, small: Small, elements: list[ir.Value]) -> ir.Value:
    """What the product adds up: the steps of what dequantized the weights, then its own."""
    operands, others, total = elements[:2], elements[2:-1], elements[-1]
    own = operands[small.number]
    known = dict(zip(body(small.made).arguments, [*others[: small.data], own, *others[small.data :]], strict=False))
    if is_plain(small.decoding):
        weight = _centred(small, own, known)
    elif small.bits == 8:
        weight = create_repeated(small.made, [*known.values(), own])
    else:
        weight = computed(_known(small, known), _number(small, own))
    operands[small.number] = weight
    return create_repeated(op.op, [*operands, total])


def _taken(byte: ir.Value, small: Small) -> ir.Value:
    """The element of a byte that the innermost loop is at, as i32, counted from the least number."""
    index, i32, loop = ir.IndexType.get(), ir.IntegerType.get_signless(32), small.loop + len(small.parts) - 1
    at = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loop)})
    each = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, small.bits)})
    below = create("arith.index_cast", [create("arith.muli", [at, each], index)], i32)
    down = create("arith.shrui", [create("arith.extui", [byte], i32), below], i32)
    return create("arith.andi", [down, number((1 << small.bits) - 1, "i32")], i32)


def _zero_code(small: Small) -> int:
    """The number that stands for zero where several elements share a byte, of weights with a sign."""
    return 0 if small.unsigned or small.bits == 8 else 1 << small.bits - 1


def is_plain(found: Decoding) -> bool:
    """Whether a decoding is `(code - zero) * scale` in f32 of whole numbers: exact in floats but for the last step."""
    whole = found.zero is None or not isinstance(found.zero.type, ir.FloatType)
    return whole and not found.is_float and found.scale is not None and str(found.result) == "f32"


def _known(small: Small, known: dict[ir.Value, ir.Value]) -> Decoding:
    """The decoding with other arguments."""
    zero, scale = ((v and known.get(v, v)) for v in (small.decoding.zero, small.decoding.scale))
    return replace(small.decoding, zero=zero, scale=scale)


def _number(small: Small, own: ir.Value) -> ir.Value:
    """The element of a byte as an i32 that may be below zero."""
    least, wide = _zero_code(small), _taken(own, small)
    return create("arith.subi", [wide, number(least, "i32")], wide.type) if least else wide


def _centred(small: Small, own: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """(q - zero) * scale in floats, which is exact but for the last step, as with the integers before."""
    f32, found = ir.F32Type.get(), _known(small, known)
    assert found.scale is not None
    if small.bits == 8:
        value = as_float(own, f32, small.unsigned)
    else:
        value = as_float(_taken(own, small), f32, False)
    least = float(_zero_code(small))
    shift = number(least, "f32") if least else None
    if found.zero is not None:
        point = as_float(extended(found.zero, found.unsigned), f32, False)
        shift = point if shift is None else create("arith.addf", [point, shift], f32)
    value = value if shift is None else create("arith.subf", [value, shift], f32)
    return create("arith.mulf", [value, as_float(found.scale, f32, False)], f32)
