# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-distribute` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from typing import Any

from tilewright.core.errors import TilewrightError, UserError
from tilewright.ir.generics import maps, walk
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.targets.mesh.attributes import ALGORITHM, LOOPS, OUTSIDE, SIDE, machine_of
from tilewright.targets.mesh.computations import Product, Reduction, computation
from tilewright.targets.mesh.elementwise import elementwise
from tilewright.targets.mesh.moving.moves import Moves
from tilewright.targets.mesh.moving.reshapes import RESHAPES, reshaped
from tilewright.targets.mesh.moving.slice_ops import SLICES, part
from tilewright.targets.mesh.placement import Placement
from tilewright.targets.mesh.products import product
from tilewright.targets.mesh.reductions import reduction


def _distribute(function: ir.Operation) -> None:
    placement = Placement(ir.IntegerAttr(function.attributes[SIDE]).value, _moves(function))
    old: list[ir.Operation] = []
    for view in list(function.regions[0].blocks[0].operations):
        op = view.operation
        with ir.InsertionPoint(op), op.location:
            try:
                laid = _laid(op, placement)
            except TilewrightError as error:
                raise located(error, op) from error
            if laid is None:
                _collect(op, placement)
            else:
                placement.made(op.results[0], laid)
                old.append(op)
    for op in reversed(old):
        op.erase()


def _moves(function: ir.Operation) -> Moves:
    return Moves(function, None if find_device(function) is None else machine_of(function))


def _laid(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """What an op becomes on the grid; None where it stays outside."""
    if op.name in RESHAPES:
        return reshaped(op, placement)
    if op.name in SLICES:
        return part(op, placement)
    if LOOPS not in op.attributes:
        return None
    loops = [ir.StringAttr(axis).value for axis in ir.ArrayAttr(op.attributes[LOOPS])]
    found = computation(op)
    if isinstance(found, str) or len(loops) != maps(op)[0].n_dims:
        why = found if isinstance(found, str) else f"it has {maps(op)[0].n_dims} loops"
        raise UserError(f"{LOOPS} is {op.attributes[LOOPS]} on an op that it does not fit: {why}; take it away")
    if isinstance(found, Product):
        return product(op, found, ir.StringAttr(op.attributes[ALGORITHM]).value, loops, placement)
    if isinstance(found, Reduction):
        return reduction(op, found, loops, placement)
    return elementwise(op, loops, placement)


def _collect(op: ir.Operation, placement: Placement) -> None:
    """Let an op that stays outside, and what is in it, read tensors that are there."""
    why = ir.StringAttr(op.attributes[OUTSIDE]).value if OUTSIDE in op.attributes else ""
    text = f"{op.name} is interpreted outside{': ' if why else ''}{why}"

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for number, value in enumerate(inner.operands):
            if placement.is_made(value):
                inner.operands[number] = placement.outside(value, text if op.name != "func.return" else "")
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions that have a grid."""
    for function in walk(op, "func.func"):
        if SIDE in function.attributes:
            _distribute(function)
