# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tokens are computed: a byte for each, from a mask; and inputs of one sentence without their batch."""

from __future__ import annotations

from collections.abc import Callable, Set

from tilewright.ir.generics import create, create_fill, create_generic, create_number, maps, set_maps, uses
from tilewright.ir.views import create_joined
from tilewright.mlir import ir

_NE, _EQ = {"cmpi": 1, "cmpf": 13}, {"cmpi": 0, "cmpf": 1}


def create_live(mask: ir.Value, places: Set[int]) -> ir.Value:
    """Bytes [batch, places] at the current insertion point: which tokens are computed.

    Those whose mask is not zero; some places of each sentence; and whole sentences of which no mask is 1: attention
    sees all of what is masked as a whole.
    """
    byte, shape = ir.IntegerType.get_signless(8), list(ir.RankedTensorType(mask.type).shape)
    whole, rows = ir.AffineMap.get_identity(2), ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(0)])
    none = create_fill(create_number(0, byte), create("tensor.empty", [], ir.RankedTensorType.get(shape[:1], byte)))

    def some(elements: list[ir.Value]) -> ir.Value:
        return create("arith.ori", [elements[1], _byte(_compare(elements[0], 1, _EQ))], byte)

    told = create_generic([(mask, whole)], none, rows, [False, True], some)

    def live(elements: list[ir.Value]) -> ir.Value:
        nothing = create("arith.xori", [elements[1], create_number(1, byte)], byte)
        found = create("arith.ori", [_byte(is_not(elements[0], 0)), nothing], byte)
        return create("arith.ori", [found, _byte(_is_among(places))], byte) if places else found

    target = create("tensor.empty", [], ir.RankedTensorType.get(shape, byte))
    return create_generic([(mask, whole), (told, rows)], target, whole, [False, False], live)


def _byte(bit: ir.Value) -> ir.Value:
    return create("arith.extui", [bit], ir.IntegerType.get_signless(8))


def is_not(value: ir.Value, number: int) -> ir.Value:
    """Whether a scalar is another number than this, an i1."""
    return _compare(value, number, _NE)


def _compare(value: ir.Value, number: int, predicates: dict[str, int]) -> ir.Value:
    name = "cmpf" if isinstance(value.type, ir.FloatType) else "cmpi"
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicates[name])
    other = create_number(number, value.type)
    return create(f"arith.{name}", [value, other], ir.IntegerType.get_signless(1), {"predicate": predicate})


def _is_among(places: Set[int]) -> ir.Value:
    """In a body, whether its second index is between the first and the last of these."""
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    at = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, 1)})
    from_first = create("arith.subi", [at, create_number(min(places), index)], index)
    size = create_number(max(places) - min(places) + 1, index)
    ult = ir.IntegerAttr.get(i64, 6)
    return create("arith.cmpi", [from_first, size], ir.IntegerType.get_signless(1), {"predicate": ult})


def without_batch(block: ir.Block, sizes: tuple[int, int]) -> Callable[[], None]:
    """Let operations read inputs [1, places, ...] as [places, ...]; what is returned takes that back.

    A batch of one has no loop: inputs alone have its dimension.
    """
    done: list[tuple[ir.Operation, int, ir.Value, list[ir.AffineMap]]] = []
    views: list[ir.Operation] = []
    for argument in block.arguments if sizes[0] == 1 else ():
        shape = list(argument.type.shape) if isinstance(argument.type, ir.RankedTensorType) else []
        readers = [one for one in uses(argument) if _skips_batch(*one)] if tuple(shape[:2]) == sizes else []
        if not readers:
            continue
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            joined = create_joined(argument, [[0, 1], *([d] for d in range(2, len(shape)))])
        views.append(joined.owner.operation)
        for user, at in readers:
            old = maps(user)
            done.append((user, at, argument, old))
            user.operands[at] = joined
            access = ir.AffineMap.get(old[at].n_dims, 0, list(old[at].results)[1:])
            set_maps(user, [access if n == at else one for n, one in enumerate(old)])

    def back() -> None:
        for user, at, argument, old in reversed(done):
            user.operands[at] = argument
            set_maps(user, old)
        for view in views:
            view.erase()

    return back


def _skips_batch(user: ir.Operation, at: int) -> bool:
    """Whether a generic reads an operand's first dimension at 0."""
    if user.name != "linalg.generic":
        return False
    first = maps(user)[at].results[0]
    return isinstance(first, ir.AffineConstantExpr) and first.value == 0
