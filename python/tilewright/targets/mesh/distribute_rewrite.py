# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-distribute` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from tilewright.core.errors import TilewrightError, UserError
from tilewright.ir.generics import maps, walk
from tilewright.ir.target_info import find_device
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.targets.mesh.attributes import (
    ALGORITHM,
    BORDER,
    CARRIED,
    LOOPS,
    OUTSIDE,
    SIDE,
    WAYS,
    keeps,
    machine_of,
)
from tilewright.targets.mesh.computations import Product, Reduction, computation
from tilewright.targets.mesh.control.loops import Carried, carried, read_axes
from tilewright.targets.mesh.control.on_cores import loops_of, on_cores
from tilewright.targets.mesh.control.shared_loops import Shared
from tilewright.targets.mesh.control.single_elements import ELEMENTS, single_elements
from tilewright.targets.mesh.control.windows import forget_unread, window
from tilewright.targets.mesh.elements.rows import ROWS, gather, picked_rows
from tilewright.targets.mesh.elementwise import elementwise
from tilewright.targets.mesh.images.as_product import as_product
from tilewright.targets.mesh.images.on_grid import in_place
from tilewright.targets.mesh.images.plan import roles_of
from tilewright.targets.mesh.images.windows import windows
from tilewright.targets.mesh.moves import Moves
from tilewright.targets.mesh.moving.reshapes import reshaped
from tilewright.targets.mesh.moving.slice_ops import SLICES, has_known_offsets, part
from tilewright.targets.mesh.placement import Axes, Placement
from tilewright.targets.mesh.products import product
from tilewright.targets.mesh.reductions import reduction
from tilewright.targets.mesh.weights.condensed import ROUND, STANDING, condensed_meshgemm, condensed_product
from tilewright.targets.mesh.weights.sparse import weight_of


def _distribute(function: ir.Operation) -> None:
    placement = Placement(ir.IntegerAttr(function.attributes[SIDE]).value, _moves(function))
    forget_unread(function)
    old: list[ir.Operation] = []
    _visit(function.regions[0].blocks[0], placement, old)
    for op in reversed(old):
        op.erase()


def _visit(block: ir.Block, placement: Placement, old: list[ir.Operation]) -> None:
    """Bring what a block does to the grid, as far as it goes there.

    Args:
        old: takes the ops that nothing reads any more.
    """
    for view in list(block.operations):
        op = view.operation
        if op.name in ("scf.yield", "scf.condition"):
            continue
        if BORDER in op.attributes:
            old.append(op)
            continue
        with ir.InsertionPoint(op), op.location:
            try:
                if _algorithm(op) == ELEMENTS:
                    _run(op, placement)
                    old.append(op)
                    continue
                if CARRIED in op.attributes:
                    _enter(op, placement, old)
                    continue
                laid = None if OUTSIDE in op.attributes else _laid(op, placement)
            except TilewrightError as error:
                raise located(error, op) from error
            if laid is None:
                _collect(op, placement)
            else:
                placement.made(op.results[0], laid)
                old.append(op)


def _run(op: ir.Operation, placement: Placement) -> None:
    """A loop that each core runs."""
    machine = placement.moves.machine
    room = sys.maxsize if machine is None else machine.sram_bytes - machine.mesh.code_bytes
    shared = Shared(op)
    loops = loops_of(op, shared)
    around = single_elements(op, room, partial(shared.axes, loops=loops), placement.side)
    if isinstance(around, str):
        raise UserError(f"{ALGORITHM} is '{ELEMENTS}' on an op that cores cannot run: {around}; take it away")
    on_cores(op, shared, around, loops, placement)


def _enter(op: ir.Operation, placement: Placement, old: list[ir.Operation]) -> None:
    """A loop or branch: what it carries stays on the grid from iteration to iteration."""
    groups, axes = carried(op), read_axes(op)
    if len(groups) != len(axes):
        raise UserError(f"{CARRIED} has {len(axes)} entries on an op that carries {len(groups)} values; one for each")
    kept = [(group, lies) for group, lies in zip(groups, axes, strict=True) if lies is not None]
    placement.depth += keeps(op)
    _feed(op, kept, placement)
    for group, lies in kept:
        for value in group.values:
            if isinstance(value, ir.BlockArgument):
                placement.carries(value, lies)
    for region in op.regions:
        for block in region.blocks:
            _visit(block, placement, old)
            end = block.operations[len(block.operations) - 1].operation
            with ir.InsertionPoint(end):
                _feed(end, kept, placement)
    placement.depth -= keeps(op)
    for group, lies in kept:
        for value in group.values:
            if not isinstance(value, ir.BlockArgument):
                placement.carries(value, lies)


def _feed(op: ir.Operation, kept: list[tuple[Carried, Axes]], placement: Placement) -> None:
    """Let an op give to what is carried on the grid values that are there, and to all else those outside."""
    fed = {number: lies for group, lies in kept for user, number in group.feeds if user == op}
    for number, value in enumerate(op.operands):
        if number in fed:
            op.operands[number] = placement.laid(value, fed[number])
        elif placement.is_made(value):
            op.operands[number] = placement.outside(value, f"{op.name} takes it outside")


def _moves(function: ir.Operation) -> Moves:
    return Moves(function, None if find_device(function) is None else machine_of(function))


def _laid(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """What an op becomes on the grid; None where it stays outside."""
    if op.name in RESHAPES:
        return reshaped(op, placement)
    if op.name in SLICES:
        return window(op, placement) if placement.depth or not has_known_offsets(op) else part(op, placement)
    if LOOPS not in op.attributes:
        return None
    loops = [ir.StringAttr(axis).value for axis in ir.ArrayAttr(op.attributes[LOOPS])]
    if _algorithm(op) in WAYS:
        return _windowed(op, loops, placement)
    found = computation(op)
    if isinstance(found, str) or len(loops) != maps(op)[0].n_dims:
        why = found if isinstance(found, str) else f"it has {maps(op)[0].n_dims} loops"
        raise UserError(f"{LOOPS} is {op.attributes[LOOPS]} on an op that it does not fit: {why}; take it away")
    if isinstance(found, Product):
        return _multiplied(op, found, loops, placement)
    if isinstance(found, Reduction):
        return reduction(op, found, loops, placement)
    if _algorithm(op) != ROWS:
        return elementwise(op, loops, placement)
    picked = gather(op)
    if picked is None:
        raise UserError(f"{ALGORITHM} is '{ROWS}' on an op that picks no elements along one dimension; take it away")
    return picked_rows(op, picked, loops, placement)


def _algorithm(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes[ALGORITHM]).value if ALGORITHM in op.attributes else ""


def _windowed(op: ir.Operation, loops: list[str], placement: Placement) -> ir.Value:
    found, how = windows(op), _algorithm(op)
    if not isinstance(found, str) and len(loops) == len(found.sizes):
        if how == "windows":
            return in_place(op, found, loops, placement)
        if roles_of(op, found) is not None:
            return as_product(op, found, loops, placement)
    why = found if isinstance(found, str) else f"it has {len(found.sizes)} loops, and channels or not"
    raise UserError(f"{ALGORITHM} is '{how}' on an op that it does not fit: {why}; take it away")


def _multiplied(op: ir.Operation, found: Product, loops: list[str], placement: Placement) -> ir.Value:
    algorithm = _algorithm(op)
    if algorithm not in (STANDING, ROUND):
        return product(op, found, algorithm, loops, placement)
    weight = weight_of(op, found, placement.fixed)
    if weight is None or (algorithm == ROUND and weight.rows is None):
        what = "no weight has zeros or is of codes" if weight is None else "the other operand is a vector"
        others = "gemv or meshgemm" if weight is None else f"gemv or {STANDING}"
        raise UserError(f"{ALGORITHM} is '{algorithm}' where {what}; use {others}")
    how = condensed_product if algorithm == STANDING else condensed_meshgemm
    return how(op, found, weight, loops, placement)


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
