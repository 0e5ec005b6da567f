# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Columns stay across lanes from one sparse product to the next one, through what is done element by element.

A product with few columns leaves them as it has them in registers, [rows, columns], and the next one reads them so:
neither is transposed, and nothing is packed between them (both products of a feed-forward layer).
"""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.ir.generics import create_like, create_transposed, kinds, maker, maps, read_through, set_maps, uses
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.cpu.lanes import is_as_packed
from tilewright.plan.sparse.forms.cpu.rows_in_lanes import plan_rows, reason_for_rows
from tilewright.plan.sparse.forms.form import Product


def turn_between(second: Product, firsts: dict[ir.Operation, Product], device: Device) -> None:
    """Turn what stands between products and another one that reads their results, where all is kept in lanes.

    Transposes are left before and after it, which the kernels of the family take upon them (`lanes.py`).

    Args:
        second: a product that is not lowered yet.
        firsts: the other ones, by operation.
        device: the machine.
    """
    if second.left or reason_for_rows(second, device) or not is_as_packed(plan_rows(second, device)):
        return
    between = _between(second)
    if between is None:
        return
    chain, makers = between
    if not makers or not all(one in firsts and _takes(firsts[one], device) for one in makers):
        return
    for op in makers:
        with ir.InsertionPoint.after(op), op.location:
            turned = create_transposed(op.results[0], [1, 0])
        copy = maker(turned)
        op.results[0].replace_all_uses_except(turned, copy)
    for op in chain:
        _turn(op)
    with ir.InsertionPoint(second.op), second.op.location:
        second.op.operands[0] = create_transposed(second.dense, [1, 0])


def _takes(first: Product, device: Device) -> bool:
    """Whether a product's kernel can leave its result as it has it."""
    return not first.left and first.init is None and reason_for_rows(first, device) is None and first.m > 0


def _between(second: Product) -> tuple[list[ir.Operation], list[ir.Operation]] | None:
    """What stands between products and their reader, which nothing else reads: elementwise operations, products."""
    chain: list[ir.Operation] = []
    makers: list[ir.Operation] = []
    todo = [second.dense]
    while todo:
        made = maker(todo.pop())
        if made is None or made.block != second.op.block:
            return None
        if made in chain or made in makers:
            continue
        if made.name == "sparse_tile.matmul":
            makers.append(made)
        elif _is_elementwise(made):
            chain.append(made)
            todo += [
                value for value, read in zip(list(made.operands)[:-1], maps(made), strict=False) if read == _same()
            ]
        else:
            return None
    inside = [second.op, *chain]
    readers = [one for op in (*chain, *makers) for one in uses(op.results[0])]
    alike = all(user in inside and _reads_alike(user, number, second.op) for user, number in readers)
    return (chain, makers) if chain and alike else None


def _reads_alike(user: ir.Operation, number: int, last: ir.Operation) -> bool:
    """Whether an operand is read element by element, or multiplied; sums start from matrices that are not turned."""
    return number == 0 if user == last else maps(user)[number] == _same()


def _same() -> ir.AffineMap:
    return ir.AffineMap.get_identity(2)


def _is_elementwise(op: ir.Operation) -> bool:
    """Whether it makes a new matrix of known size, element by element."""
    if op.name != "linalg.generic" or any(kinds(op)) or len(op.results) != 1:
        return False
    own = maps(op)
    init = maker(op.operands[len(op.operands) - 1])
    indexed = any(inner.operation.name == "linalg.index" for inner in op.regions[0].blocks[0].operations)
    plain = all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in own for e in m.results)
    return plain and own[-1] == _same() and init is not None and init.name == "tensor.empty" and not indexed


def _turn(op: ir.Operation) -> None:
    """Both loops change places; operands that are matrices of the chain come turned already."""
    kind = ir.RankedTensorType(op.results[0].type)
    turned = ir.RankedTensorType.get([kind.shape[1], kind.shape[0]], kind.element_type)
    swapped = {0: ir.AffineDimExpr.get(1), 1: ir.AffineDimExpr.get(0)}
    own = [read if read == _same() else read_through(read, swapped, 2) for read in maps(op)]
    place = maker(op.operands[len(op.operands) - 1])
    assert place is not None
    with ir.InsertionPoint(op), op.location:
        op.operands[len(op.operands) - 1] = create_like(place, turned)
    set_maps(op, own)
    op.results[0].set_type(turned)
