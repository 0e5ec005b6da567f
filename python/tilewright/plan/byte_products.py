# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sum of products of dequantized bytes, as a product of the bytes themselves and corrections.

With zero points s and t, and scales that do not depend on the reduced loops (Jacob et al., 2018, section 2.3):

    sum (a - s)(b - t) = sum a b  -  s sum b  -  t sum a  +  K s t

Machines multiply unsigned by signed bytes, so one factor is moved by 128 where it must be, and its zero point with it.
All of it is exact in 32 bits; a scale then multiplies once. The sums of weights are computed at compile time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.mlir import ir
from tilewright.normalize.generics import create, create_fill, create_generic
from tilewright.plan.structure import Access, LinalgOp

#: Where products of bytes of any zero point may no longer fit into 32 bits.
MOST_TERMS = (1 << 31) // (255 * 255)


@dataclass(frozen=True)
class Scale:
    """A factor: a number, or a tensor with the dimensions of the bytes that it is indexed by."""

    number: float = 1.0
    tensor: ir.Value | None = None
    dims: tuple[int, ...] = ()


@dataclass(frozen=True)
class Bytes:
    """A tensor of bytes that stands for (byte - zero) * scale."""

    tensor: ir.Value
    unsigned: bool
    zero: int = 0
    scale: Scale = Scale()


def _type(name: str) -> ir.Type:
    return ir.IntegerType.get_signless(int(name[1:])) if name[0] == "i" else ir.F32Type.get()


def number(value: float, kind: str) -> ir.Value:
    """A constant of type `i8`, `i32` or `f32`, at the current insertion point."""
    element = _type(kind)
    attribute = ir.FloatAttr.get(element, value) if kind == "f32" else ir.IntegerAttr.get(element, int(value))
    return create("arith.constant", [], element, {"value": attribute})


def empty(shape: list[int], kind: str) -> ir.Value:
    """tensor.empty of that element type."""
    return create("tensor.empty", [], ir.RankedTensorType.get(shape, _type(kind)))


def _moved(x: Bytes, unsigned: bool) -> Bytes:
    """The same numbers with bytes of the other signedness: the highest bit is turned, which adds or subtracts 128."""
    if x.unsigned == unsigned:
        return x
    kind = ir.RankedTensorType(x.tensor.type)
    same = ir.AffineMap.get_identity(kind.rank)
    turn = number(-128, "i8")
    turned = create_generic(
        [(x.tensor, same)],
        empty(list(kind.shape), "i8"),
        same,
        [False] * kind.rank,
        lambda e: create("arith.xori", [e[0], turn], e[0].type),
    )
    return replace(x, tensor=turned, unsigned=unsigned, zero=x.zero + (128 if unsigned else -128))


def _extend(value: ir.Value, unsigned: bool) -> ir.Value:
    return create("arith.extui" if unsigned else "arith.extsi", [value], _type("i32"))


def _arith(name: str, x: ir.Value, y: ir.Value) -> ir.Value:
    return create(f"arith.{name}", [x, y], x.type)


def _sum(op: LinalgOp, access: Access, x: Bytes) -> tuple[ir.Value, tuple[int, ...]]:
    """The sums of `x` over the reduced loops, and the loops that they are indexed by."""
    kept = tuple(d for d in op.parallel if d in access.loops)
    loops = [*kept, *sorted(op.reductions)]
    renamed = ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(loops.index(d)) for d in access.dims])  # type: ignore[arg-type]
    written = ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(i) for i in range(len(kept))])
    target = create_fill(number(0, "i32"), empty([op.extents[d] for d in kept], "i32"))
    reduces = [d in op.reductions for d in loops]
    total = create_generic(
        [(x.tensor, renamed)],
        target,
        written,
        reduces,
        lambda e: _arith("addi", e[1], _extend(e[0], x.unsigned)),
    )
    return total, kept


def takes(op: LinalgOp) -> bool:
    """Whether both factors have plain dimensions of known size, and each runs over all reduced loops."""
    return not op.dynamic and all(
        access.pure and None not in access.dims and op.reductions <= access.loops and len(access.dims) > 0
        for access in op.inputs
    )


def emit(op: LinalgOp, factors: list[Bytes], unsigned: int, result: str) -> ir.Value:
    """The product, at the current insertion point.

    Args:
        op: the contraction of the dequantized factors.
        factors: what its two inputs stand for.
        unsigned: which of them is taken as unsigned bytes.
        result: `i32`, or `f32` with the scales applied.
    """
    moved = [_moved(x, i == unsigned) for i, x in enumerate(factors)]
    shape = list(ir.RankedTensorType(op.result.type).shape)

    def step(e: list[ir.Value]) -> ir.Value:
        wide = [_extend(e[i], moved[i].unsigned) for i in range(2)]
        return _arith("addi", e[2], _arith("muli", *wide))

    total = create_generic(
        [(x.tensor, access.map) for x, access in zip(moved, op.inputs, strict=True)],
        create_fill(number(0, "i32"), empty(shape, "i32")),
        op.output.map,
        [d in op.reductions for d in range(op.rank)],
        step,
    )
    return _corrected(op, total, moved, result)


def _corrected(op: LinalgOp, total: ir.Value, moved: list[Bytes], result: str) -> ir.Value:
    """The zero points subtracted, and the scales applied, in one elementwise operation behind the product."""
    place = {loop: at for at, loop in enumerate(op.output.dims)}
    rank = len(place)
    same = ir.AffineMap.get_identity(rank)

    def along(loops: tuple[int, ...]) -> ir.AffineMap:
        return ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(place[d]) for d in loops])

    reads = [(total, same)]
    sums: list[tuple[int, int]] = []  # number of the input, and what it is multiplied by
    for x, other, access in zip(moved, moved[::-1], op.inputs, strict=True):
        if other.zero:
            value, loops = _sum(op, access, x)
            sums.append((len(reads), other.zero))
            reads.append((value, along(loops)))
    scales: list[int] = []
    for x, access in zip(moved, op.inputs, strict=True):
        if x.scale.tensor is not None and result == "f32":
            scales.append(len(reads))
            reads.append((x.scale.tensor, along(tuple(access.dims[d] for d in x.scale.dims))))  # type: ignore[misc]
    constant = _wrapped(prod(op.extents[d] for d in op.reductions) * moved[0].zero * moved[1].zero)
    if len(reads) == 1 and not constant and result == "i32":
        return total
    scale = moved[0].scale.number * moved[1].scale.number
    shape = list(ir.RankedTensorType(total.type).shape)

    def step(e: list[ir.Value]) -> ir.Value:
        value = _minus(e, sums, constant)
        return value if result == "i32" else _scaled(e, value, scale, scales)

    return create_generic(reads, empty(shape, result), same, [False] * rank, step)


def _minus(e: list[ir.Value], sums: list[tuple[int, int]], constant: int) -> ir.Value:
    """The total, the sums times the other factor's zero point taken away."""
    value = e[0]
    for at, factor in sums:
        value = _arith("subi", value, _arith("muli", e[at], number(factor, "i32")))
    return _arith("addi", value, number(constant, "i32")) if constant else value


def _scaled(e: list[ir.Value], value: ir.Value, known: float, scales: list[int]) -> ir.Value:
    scale = number(known, "f32")
    for at in scales:
        scale = _arith("mulf", scale, e[at])
    return _arith("mulf", create("arith.sitofp", [value], _type("f32")), scale)


def _wrapped(value: int) -> int:
    """Modulo 2^32, as sums of i32 are."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
