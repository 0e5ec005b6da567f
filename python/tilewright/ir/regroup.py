# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposing copies on both sides of a reshape become one before it.

Blocks of channels that become places (sub-pixel and transposed convolutions) are transposed, their dimensions joined,
and the next convolution asks for channels last again: `transpose(collapse(transpose(x)))`. The dimensions that a
collapse joins move as one, so the later transposition is one of `x`, too, and mostly undoes the earlier one.
"""

from __future__ import annotations

from tilewright.ir.generics import body, create_like, is_copy, kinds, maker, maps, positions, renumber, set_maps, uses
from tilewright.ir.views import consecutive, groups_of, reassociation
from tilewright.mlir import ir


def move_up(reader: ir.Operation, number: int) -> bool:
    """Moves the order in which an elementwise generic reads an input before the collapse that made it.

    Elementwise operations between the two follow. The input is then read in the order of the reader's result; False,
    and nothing is changed, where it already is, or where no transposing copy before a collapse would take up the order.
    """
    order = _order(reader, number)
    if order is None or order == sorted(order) or not _takes(reader.operands[number], reader.block):
        return False
    _permute(reader.operands[number], order)
    own = maps(reader)
    read = positions(own[number])
    own[number] = ir.AffineMap.get(own[number].n_dims, 0, [ir.AffineDimExpr.get(read[d]) for d in order])
    set_maps(reader, own)
    return True


def _order(reader: ir.Operation, number: int) -> list[int] | None:
    """The dimensions of an input in the order of the reader's result; None where they are not the same ones."""
    own = maps(reader)
    if any(kinds(reader)) or not own[number].is_permutation or not own[-1].is_permutation:
        return None
    read = positions(own[number])
    return [read.index(loop) for loop in positions(own[-1])]


def _takes(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value may be made in another order, with no more transposed in all."""
    made = maker(value)
    if made is None or made.block != block or len(list(uses(value))) != 1:
        return False
    if made.name == "tensor.collapse_shape":
        copy = maker(made.operands[0])
        if copy is None or len(list(uses(made.operands[0]))) != 1 or not is_copy(copy):
            return False
        return _order(copy, 0) != sorted(_order(copy, 0) or []) and _starts_empty(copy)
    return _is_pointwise(made) and _carrier(made) is not None


def _is_pointwise(op: ir.Operation) -> bool:
    if op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)) or not _starts_empty(op):
        return False
    return not any(
        len(inner.operation.regions) or inner.operation.name == "linalg.index" for inner in body(op).operations
    )


def _starts_empty(op: ir.Operation) -> bool:
    init = maker(op.operands[len(op.operands) - 1])
    return init is not None and init.name == "tensor.empty" and ir.RankedTensorType(op.results[0].type).has_static_shape


def _carrier(op: ir.Operation) -> int | None:
    """The only input that has all loops, where it is read in order and may be made in another one."""
    whole = [n for n, m in enumerate(maps(op)[:-1]) if m.n_dims == len(m.results)]
    if len(whole) != 1:
        return None
    order = _order(op, whole[0])
    if order is None or order != sorted(order) or not _takes(op.operands[whole[0]], op.block):
        return None
    return whole[0]


def _permute(value: ir.Value, order: list[int]) -> None:
    """Makes a value in another order: its dimension `order[j]` becomes dimension j."""
    made = value.owner.operation
    if made.name == "tensor.collapse_shape":
        groups = groups_of(made.attributes["reassociation"])
        copy = made.operands[0].owner.operation
        _permute_result(copy, [d for t in order for d in groups[t]])
        _drop_plain(copy)
        made.attributes["reassociation"] = reassociation(consecutive(len(groups[t]) for t in order))
        value.set_type(_permuted_type(value, order))
        return
    carrier = _carrier(made)
    assert carrier is not None, "checked by _takes"
    _permute(made.operands[carrier], order)
    _permute_result(made, order)
    own = maps(made)
    own[carrier] = own[-1]
    set_maps(made, own)


def _drop_plain(copy: ir.Operation) -> None:
    """Erases a copy that no longer transposes."""
    order = _order(copy, 0)
    if order is not None and order == sorted(order):
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def _permuted_type(value: ir.Value, order: list[int]) -> ir.RankedTensorType:
    kind = ir.RankedTensorType(value.type)
    return ir.RankedTensorType.get([kind.shape[d] for d in order], kind.element_type)


def _permute_result(op: ir.Operation, order: list[int]) -> None:
    """Lets an elementwise generic write another order; its loops are numbered by the dimensions of the result."""
    result = op.results[0]
    init = op.operands[len(op.operands) - 1].owner.operation
    kind = _permuted_type(result, order)
    with op.location, ir.InsertionPoint(op):
        op.operands[len(op.operands) - 1] = create_like(init, kind)
    result.set_type(kind)
    own = maps(op)
    written = positions(own[-1])
    own[-1] = ir.AffineMap.get(own[-1].n_dims, 0, [ir.AffineDimExpr.get(written[d]) for d in order])
    set_maps(op, own)
    renumber(op)
