# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop over sentences: what meets in one runs on its packed tokens, as many as it has."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import create, create_like, create_number, maker, maps
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.lower_dynamic import empty
from tilewright.plan.sparse.padding.meetings import Meeting
from tilewright.plan.sparse.padding.packing import Packing, drop_loop
from tilewright.plan.sparse.padding.tokens import BATCH, PLACE, Tokens


def run_by_sentence(meeting: Meeting, tokens: Tokens, packing: Packing) -> None:
    """Make the loop in front of the last operation, whose results are known packed then."""
    last, index = meeting.ops[-1], ir.IndexType.get()
    lengths = packing.lengths()
    with ir.InsertionPoint(last), last.location:
        inputs = {value: packing.of(value) for value in meeting.inputs}
        made = [_empty(packing.count, value, tokens.lead(value)) for value in meeting.results]
        first, batch, step = (create_number(n, index) for n in (0, tokens.sizes[0], 1))
        loop = ir.Operation.create(
            "scf.for",
            results=[index, *(value.type for value in made)],
            operands=[first, batch, step, first, *made],
            regions=1,
        )
        body = ir.Block.create_at_start(loop.regions[0], [index, index, *(value.type for value in made)])
        number, start, *places = body.arguments
        with ir.InsertionPoint(body):
            held = create("tensor.extract", [lengths, number], ir.IntegerType.get_signless(32))
            # No sentence is longer: buffers of tasks are as large as one.
            longest = create_number(tokens.sizes[1], index)
            length = create("arith.minsi", [create("arith.index_cast", [held], index), longest], index)
            known = {value: _slice(packed, start, length) for value, packed in inputs.items()}
            for op in meeting.ops:
                known[op.results[0]] = _on_sentence(op, meeting, known, length)
            ends = [_insert(known[v], place, start, length) for v, place in zip(meeting.results, places, strict=True)]
            after = create("arith.addi", [start, length], index)
            ir.Operation.create("scf.yield", operands=[after, *ends])
    for value, packed in zip(meeting.results, list(loop.results)[1:], strict=True):
        packing.hold(value, packed)


def _on_sentence(op: ir.Operation, meeting: Meeting, known: dict[ir.Value, ir.Value], length: ir.Value) -> ir.Value:
    """An operation without its loop over sentences, on as many places as one has."""
    result, place = op.results[0], maker(op.operands[len(op.operands) - 1])
    assert place is not None
    shape = [
        ir.ShapedType.get_dynamic_size() if role == PLACE else size
        for size, role in zip(_kind(result).shape, meeting.roles[result], strict=True)
        if role != BATCH
    ]
    kind = ir.RankedTensorType.get(shape, _kind(result).element_type)
    target = create_like(place, kind, [length] * sum(size < 0 for size in shape))
    copy = op.clone()
    for at, value in enumerate([*(known.get(value, value) for value in list(op.operands)[:-1]), target]):
        copy.operands[at] = value
    copy.results[0].set_type(kind)
    loop = meeting.loops[op].sentence
    if loop is not None:
        drop_loop(copy, loop, [[e for e in access.results if e != ir.AffineDimExpr.get(loop)] for access in maps(op)])
    return copy.results[0]


def _kind(value: ir.Value) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def _empty(count: ir.Value, value: ir.Value, lead: int) -> ir.Value:
    """A place for the packed tokens of a value, which has them in its first dimensions."""
    return empty([count, *list(_kind(value).shape)[lead:]], _kind(value).element_type)


def _slice(packed: ir.Value, start: ir.Value, length: ir.Value) -> ir.Value:
    """The tokens of a sentence."""
    return create("tensor.extract_slice", [packed, start, length], packed.type, _part(_kind(packed).shape, 0))


def _insert(part: ir.Value, packed: ir.Value, start: ir.Value, length: ir.Value) -> ir.Value:
    """Packed tokens, those of a sentence among them."""
    return create("tensor.insert_slice", [part, packed, start, length], packed.type, _part(_kind(packed).shape, 1))


def _part(shape: Sequence[int], more: int) -> dict[str, ir.Attribute]:
    """A slice of some first elements; `more` operands stand before the offset."""
    dynamic, rest = ir.ShapedType.get_dynamic_size(), list(shape)[1:]
    offset = ir.ShapedType.get_dynamic_stride_or_offset()
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get([offset, *[0] * len(rest)]),
        "static_sizes": ir.DenseI64ArrayAttr.get([dynamic, *rest]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(shape)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, *[1] * more, 1, 1, 0]),
    }
