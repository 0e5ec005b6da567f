# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that a tensor is assembled of, checked before a kernel reads other memory by them.

Parts of weights are left to `sparse_tile.assemble`: @init runs it at compile time, where it is told what is wrong. What
a run brings it looks at itself, in an operation per part, and it ends where a kernel would read or write outside of a
tensor. An entry that is held twice, or out of order, is no danger: products add it as often as it is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.encoded import PARTS
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, create_fill, create_generic, create_zero, maker
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.passes import located
from tilewright.plan.sparse.encoded import is_constant
from tilewright.plan.sparse.forms.indices import number

#: Predicates of arith.cmpi: equal, signed greater, unsigned below.
_EQUAL, _GREATER, _BELOW = 0, 4, 6


def sound_parts(assembled: ir.Operation) -> tuple[ir.Value, ...]:
    """The parts of a `sparse_tile.assemble`, at the current insertion point; what checks them stands before.

    Raises:
        UserError: the tensor's sizes are those of a run.
    """
    result = assembled.results[0]
    if is_constant(result):
        return tuple(
            ir.Operation.create("sparse_tile.parts", results=part_types(result.type), operands=[result]).results
        )
    if not _taken_apart(assembled):
        _check(assembled)
    return tuple(assembled.operands)


def _taken_apart(assembled: ir.Operation) -> bool:
    """Whether the parts are those of a tensor of the same type."""
    first = maker(assembled.operands[0])
    return (
        first is not None
        and first.name == "sparse_tile.parts"
        and list(first.results) == list(assembled.operands)
        and first.operands[0].type == assembled.results[0].type
    )


def _check(assembled: ir.Operation) -> None:
    kind = ir.RankedTensorType(assembled.results[0].type)
    tesa = Tesa.of(kind)
    assert tesa is not None
    if not kind.has_static_shape:
        raise located(UserError("a tensor of open sizes cannot be told from its parts: give its sizes"), assembled)
    place = 0
    for region in tesa.regions:
        held = PARTS[region.pattern.kind]
        parts = list(assembled.operands)[place : place + held]
        if isinstance(region.pattern, NM):
            _require(_below(parts[1], region.pattern.m), f"a position is not below {region.pattern.m}")
        elif isinstance(region.pattern, Mask | Block):
            unit = region.pattern.shape if isinstance(region.pattern, Block) else (1, 1)
            _check_rows(parts, -(-kind.shape[1] // unit[1]))
        place += held + ((1 + bool(region.format.zero_points)) if region.format else 0)


def _check_rows(parts: Sequence[ir.Value], columns: int) -> None:
    """Compressed rows: each column exists, and rows begin one after the other within what there is."""
    data, indices, starts = parts
    i32 = ir.IntegerType.get_signless(32)
    _require(_below(indices, columns), f"an index is not below {columns}")
    count = create("arith.index_cast", [_size(data)], i32)
    given = create("arith.index_cast", [_size(indices)], i32)
    rows = ir.RankedTensorType(starts.type).shape[0] - 1
    first, last = (create("tensor.extract", [starts, number(at)], i32) for at in (0, rows))
    ends = [(first, create_zero(i32)), (last, count), (given, count)]
    for one, other in ends:
        _require(_compare(_EQUAL, one, other), "the starts of rows do not go from 0 to the number of elements")
    if rows > 0:
        _require(_compare(_EQUAL, _falls(starts, rows), create_zero(i32)), "the starts of rows fall")


def _below(part: ir.Value, bound: int) -> ir.Value:
    """Whether all elements are in [0, bound), as i1; those below 0 are large ones without a sign."""
    wide = ir.IntegerType.get_signless(32)
    element = ir.RankedTensorType(part.type).element_type
    rank = ir.RankedTensorType(part.type).rank

    def larger(elements: list[ir.Value]) -> ir.Value:
        value = elements[0] if element == wide else create("arith.extui", [elements[0]], wide)
        return create("arith.maxui", [elements[1], value], wide)

    most = _reduced([(part, ir.AffineMap.get_identity(rank))], rank, larger)
    none = 0 in ir.RankedTensorType(part.type).shape
    return _compare(_BELOW, most, number(max(bound, int(none)), ir.IntegerType.get_signless(32)))


def _falls(starts: ir.Value, rows: int) -> ir.Value:
    """1 where a start is above the next one, else 0."""
    i32 = ir.IntegerType.get_signless(32)
    (d,) = (ir.AffineDimExpr.get(0),)
    identity = ir.AffineMap.get(1, 0, [d])
    halves = [_slice(starts, at, rows) for at in (0, 1)]

    def step(elements: list[ir.Value]) -> ir.Value:
        falls = create("arith.extui", [_compare(_GREATER, elements[0], elements[1])], i32)
        return create("arith.maxui", [elements[2], falls], i32)

    return _reduced([(half, identity) for half in halves], 1, step)


def _slice(value: ir.Value, start: int, size: int) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([start]),
        "static_sizes": ir.DenseI64ArrayAttr.get([size]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return create("tensor.extract_slice", [value], ir.RankedTensorType.get([size], kind.element_type), attributes)


def _reduced(
    reads: list[tuple[ir.Value, ir.AffineMap]], rank: int, step: Callable[[list[ir.Value]], ir.Value]
) -> ir.Value:
    """A number of i32 that begins at 0."""
    wide = ir.IntegerType.get_signless(32)
    zero = create_fill(create_zero(wide), create("tensor.empty", [], ir.RankedTensorType.get([], wide)))
    total = create_generic(reads, zero, ir.AffineMap.get(rank, 0, []), [True] * rank, step)
    return create("tensor.extract", [total], wide)


def _size(value: ir.Value) -> ir.Value:
    size = ir.RankedTensorType(value.type).shape[0]
    return number(size) if size >= 0 else create("tensor.dim", [value, number(0)], ir.IndexType.get())


def _compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    kind = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return create("arith.cmpi", [a, b], ir.IntegerType.get_signless(1), {"predicate": kind})


def _require(condition: ir.Value, text: str) -> None:
    message = ir.StringAttr.get(f"sparse_tile.assemble: the parts do not fit the encoding: {text}")
    ir.Operation.create("cf.assert", operands=[condition], attributes={"msg": message})
