# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sum of products of dequantized bytes, as a product of the bytes themselves and corrections.

With zero points s and t, and scales that do not depend on the reduced loops (Jacob et al., 2018, section 2.3):

    sum (a - s)(b - t) = sum a b  -  s sum b  -  t sum a  +  K s t

Machines multiply unsigned by signed bytes, so one operand is moved by 128 where it must be, and its zero point with it.
All of it is exact in 32 bits; a scale then multiplies once. The sums of weights are computed at compile time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.ir.generics import create, create_fill, create_generic
from tilewright.ir.structure import Access, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.lowbit.byte_moves import replay
from tilewright.plan.lowbit.quantized import Bytes, Dims, Zero, empty, empty_as, extend, number

#: Where products of bytes of any zero point may no longer fit into 32 bits.
MOST_TERMS = (1 << 31) // (255 * 255)


def _with_sign(x: Bytes, unsigned: bool) -> Bytes:
    """The same numbers with bytes of the other signedness: the highest bit is flipped, which adds or subtracts 128."""
    if x.unsigned == unsigned:
        return x
    kind = ir.RankedTensorType(x.tensor.type)
    same = ir.AffineMap.get_identity(kind.rank)
    highest = number(-128, "i8")
    flipped = create_generic(
        [(x.tensor, same)],
        empty_as([(x.tensor, t) for t in range(kind.rank)], "i8"),
        same,
        [False] * kind.rank,
        lambda e: create("arith.xori", [e[0], highest], e[0].type),
    )
    return replace(x, tensor=flipped, unsigned=unsigned, zero=x.zero.moved(128 if unsigned else -128))


def _arith(name: str, x: ir.Value, y: ir.Value) -> ir.Value:
    return create(f"arith.{name}", [x, y], x.type)


def _sum(op: LinalgOp, access: Access, x: Bytes) -> tuple[ir.Value, tuple[int, ...]]:
    """The sums of `x` over the reduced loops, and the loops that they are indexed by."""
    kept = tuple(d for d in op.parallel if d in access.loops)
    loops = [*kept, *sorted(op.reductions)]
    zero = ir.AffineConstantExpr.get(0)
    dims = [ir.AffineDimExpr.get(loops.index(d)) if d in loops else zero for d in range(op.rank)]
    into = ir.AffineMap.get(len(loops), 0, dims)  # type: ignore[arg-type]
    renamed = ir.AffineMap.get(len(loops), 0, [expr.compose(into) for expr in access.map.results])
    written = ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(i) for i in range(len(kept))])
    target = create_fill(number(0, "i32"), _result(op, kept, [(x, access)], "i32"))
    reduces = [d in op.reductions for d in loops]
    reads = [(x.tensor, renamed)]
    if not access.pure:
        # Nothing else tells how large a window is: bytes of 1, of which this is a product.
        taps = [op.extents[d] for d in sorted(op.reductions)]
        along = [ir.AffineDimExpr.get(len(kept) + i) for i in range(len(taps))]
        ones = create_fill(number(1, "i8"), empty(taps, "i8"))
        reads.append((ones, ir.AffineMap.get(len(loops), 0, along)))  # type: ignore[arg-type]

    def step(e: list[ir.Value]) -> ir.Value:
        value = extend(e[0], x.unsigned)
        if len(e) == 3:
            value = _arith("muli", value, extend(e[1], False))
        return _arith("addi", e[-1], value)

    return create_generic(reads, target, written, reduces, step), kept


def _size(loop: int, pairs: Sequence[tuple[Bytes, Access]]) -> tuple[ir.Value, int]:
    """A dimension of the operands that is as long as a loop of the result."""
    return next((x.tensor, access.dims.index(loop)) for x, access in pairs if loop in access.dims)


def takes(op: LinalgOp) -> bool:
    """Whether both operands have plain dimensions, one of them of known size, and each runs over all reduced loops.

    Other loops of the other one, the rows, may have a size that a run brings. One row may be left of a matrix: a
    dimension of size 1, which no loop indexes.
    """
    return any(not op.dynamic & access.loops for access in op.inputs) and is_plain(op)


def is_plain(op: LinalgOp) -> bool:
    """Whether both operands have plain dimensions, and each runs over all reduced loops."""
    return all(access.pure and op.reductions <= access.loops for access in op.inputs)


def takes_windows(op: LinalgOp) -> bool:
    """Whether one operand has plain dimensions and the other one windows, over all reduced loops."""
    plain = [access.pure and None not in access.dims for access in op.inputs]
    return not op.dynamic and any(plain) and all(op.reductions <= access.loops for access in op.inputs)


def emit(op: LinalgOp, operands: Sequence[Bytes], signs: Sequence[bool], result: str, weight: int | None) -> ir.Value:
    """The product, at the current insertion point.

    Args:
        op: the contraction of the dequantized operands.
        operands: what its two inputs stand for.
        signs: for each of them, whether it is taken as unsigned bytes.
        result: `i32`, or `f32` with the scales applied.
        weight: which of them is constant: its own loops become the lanes, since it can be laid out in groups.
    """
    moved = [replay(_with_sign(x, unsigned)) for x, unsigned in zip(operands, signs, strict=True)]
    order = order_of(op, weight)
    return _corrected(op, _product(op, moved, order), order, moved, result)


def order_of(op: LinalgOp, weight: int | None) -> list[int]:
    """The loops of the product's result, in order."""
    order = [d for d in op.output.dims if d is not None]
    if weight is None or not order or order[-1] in op.inputs[weight].loops:
        return order
    own = op.inputs[weight].loops - op.inputs[1 - weight].loops
    return [d for d in order if d not in own] + [d for d in order if d in own]


def _result(op: LinalgOp, order: Sequence[int | None], pairs: Sequence[tuple[Bytes, Access]], kind: str) -> ir.Value:
    """tensor.empty with the sizes of these loops of the result."""
    if op.dynamic:
        return empty_as([_size(d, pairs) for d in order if d is not None], kind)
    return empty([op.extents[d] for d in order if d is not None], kind)


def _product(op: LinalgOp, moved: list[Bytes], order: list[int]) -> ir.Value:
    def step(e: list[ir.Value]) -> ir.Value:
        wide = [extend(e[i], moved[i].unsigned) for i in range(2)]
        return _arith("addi", e[2], _arith("muli", *wide))

    pairs = list(zip(moved, op.inputs, strict=True))
    return create_generic(
        [(x.tensor, access.map) for x, access in pairs],
        create_fill(number(0, "i32"), _result(op, order, pairs, "i32")),
        ir.AffineMap.get(op.rank, 0, [ir.AffineDimExpr.get(d) for d in order]),  # type: ignore[arg-type]
        [d in op.reductions for d in range(op.rank)],
        step,
    )


@dataclass
class _Reads:
    """Operands of the elementwise operation behind a product: each value with its loops, and where it comes."""

    place: dict[int, int]
    found: list[tuple[ir.Value, ir.AffineMap]]

    def add(self, value: ir.Value, loops: Sequence[int | None]) -> int:
        first = ir.AffineConstantExpr.get(0)
        dims = [first if d is None else ir.AffineDimExpr.get(self.place[d]) for d in loops]
        self.found.append((value, ir.AffineMap.get(len(self.place), 0, dims)))  # type: ignore[arg-type]
        return len(self.found) - 1

    def add_zero(self, x: Bytes, access: Access) -> int | None:
        if x.zero.tensor is None:
            return None
        return self.add(x.zero.tensor, _loops(access, x.zero.dims))


def _loops(access: Access, dims: Dims) -> list[int | None]:
    return [None if d is None else access.dims[d] for d in dims]


def _corrected(op: LinalgOp, total: ir.Value, order: list[int], moved: list[Bytes], result: str) -> ir.Value:
    """The zero points subtracted, and the scales applied, in one elementwise operation behind the product."""
    place = {loop: at for at, loop in enumerate(op.output.dims) if loop is not None}
    if result == "i32" and not any(x.zero for x in moved) and order == [*place]:
        return total
    rank = len(place)
    same = ir.AffineMap.get_identity(rank)
    reads = _Reads(place, [])
    reads.add(total, order)
    pairs = list(zip(moved, op.inputs, strict=True))
    sums = [
        reads.add(*_sum(op, a, x)) if other.zero else None for (x, a), other in zip(pairs, moved[::-1], strict=True)
    ]
    points = [reads.add_zero(x, access) for x, access in pairs]
    scales: list[int] = []
    for x, access in pairs:
        if x.scale.tensor is not None and result == "f32":
            scales.append(reads.add(x.scale.tensor, _loops(access, x.scale.dims)))
    terms = prod(op.extents[d] for d in op.reductions)
    scale = moved[0].scale.number * moved[1].scale.number

    def step(e: list[ir.Value]) -> ir.Value:
        zeros = [_point(e, x.zero, at) for x, at in zip(moved, points, strict=True)]
        value = _minus(e, sums, zeros, terms)
        return value if result == "i32" else _scaled(e, value, scale, scales)

    return create_generic(reads.found, _result(op, op.output.dims, pairs, result), same, [False] * rank, step)


def _point(e: list[ir.Value], zero: Zero, at: int | None) -> ir.Value | None:
    """A zero point in i32; None where it is 0."""
    if not zero:
        return None
    if at is None:
        return number(_wrapped(zero.number), "i32")
    value = e[at] if str(e[at].type) == "i32" else extend(e[at], zero.unsigned)
    return _arith("addi", value, number(zero.number, "i32")) if zero.number else value


def _minus(e: list[ir.Value], sums: list[int | None], zeros: list[ir.Value | None], terms: int) -> ir.Value:
    """sum a b - t sum a - s (sum b - K t), for zero points s and t, modulo 2^32 as sums of i32 are."""
    value, (first, second) = e[0], zeros
    if second is not None and sums[0] is not None:
        value = _arith("subi", value, _arith("muli", e[sums[0]], second))
    if first is not None and sums[1] is not None:
        other = e[sums[1]]
        if second is not None:
            other = _arith("subi", other, _arith("muli", number(_wrapped(terms), "i32"), second))
        value = _arith("subi", value, _arith("muli", other, first))
    return value


def _scaled(e: list[ir.Value], value: ir.Value, known: float, scales: list[int]) -> ir.Value:
    scale = number(known, "f32")
    for at in scales:
        scale = _arith("mulf", scale, e[at])
    return _arith("mulf", create("arith.sitofp", [value], ir.F32Type.get()), scale)


def _wrapped(value: int) -> int:
    """Modulo 2^32, as sums of i32 are."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
