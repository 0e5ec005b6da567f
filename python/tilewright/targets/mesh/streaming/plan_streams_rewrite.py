# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-plan-streams` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import is_copy, maker, maps, uses, walk
from tilewright.ir.target_info import options_of
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import OUTSIDE, Fixed, machine_of
from tilewright.targets.mesh.computations import Product, computation, loop_sizes
from tilewright.targets.mesh.grid_side import side_of
from tilewright.targets.mesh.images.plan import Choice
from tilewright.targets.mesh.images.planner import Images
from tilewright.targets.mesh.images.windows import windows
from tilewright.targets.mesh.streaming.blocks import Blocks
from tilewright.targets.mesh.streaming.demand import Demand

#: The part of a core's memory that blocks may take, the first that does: what comes next finds room beside.
_SHARES = (1 / 2, 1)


def _plan(op: ir.Operation, demand: Demand, images: Images) -> None:
    if demand.fixed.of(op) or Blocks.has(op) or not _is_known(op):
        return
    whole = Blocks.whole(loop_sizes(op))
    if demand.fits(op, whole, 1) or _is_planned(op, images):
        _follow(op, whole, demand)
        return
    if _only_moves(op):
        op.attributes[OUTSIDE] = ir.StringAttr.get("it only moves what is cut into blocks outside of the grid")
        return
    found = next((one for share in _SHARES if (one := _smallest(op, whole, demand, share)) is not None), None)
    if found is None:
        return  # the program's own error says what it needs
    found.write(op)


def _tell(op: ir.Operation, demand: Demand) -> None:
    sizes = loop_sizes(op)
    whole = Blocks.whole(sizes)
    why = "as what it reads is" if demand.fits(op, whole, 1) else f"as a whole it takes {demand.told(op, whole)}"
    blocks = Blocks.of(op, sizes)
    weight = "; of its weight all elements come in so, none condensed" if demand.cuts_weight(op, blocks) else ""
    remark(op, f"streams through the grid in {blocks}: {why}{weight}")


def _follow(op: ir.Operation, whole: Blocks, demand: Demand) -> None:
    """Cut what fits where it reads what is cut: each block is on the grid as it is made. Not products: their weights
    would come in for each block.
    """
    if isinstance(computation(op), Product | str):
        return
    open_ = [*demand.loops(op), *demand.combined(op)]
    for value, read in zip(op.operands, maps(op)[:-1], strict=False):
        made = maker(value)
        cut = Blocks.of(made).first() if made is not None and Blocks.has(made) else None
        dim = None if made is None or cut is None else demand.dim_of(made, cut)
        loop = next((loop for loop in open_ if dim is not None and read.results[dim] == _loop(loop)), None)
        if made is not None and cut is not None and loop is not None:
            whole.with_count(loop, Blocks.of(made).counts[cut]).write(op)
            return


def _loop(number: int) -> ir.AffineExpr:
    return ir.AffineDimExpr.get(number)


def _is_known(op: ir.Operation) -> bool:
    """Whether the grid does it, as far as memory does."""
    return not isinstance(computation(op), str) or not isinstance(windows(op), str)


def _is_planned(op: ir.Operation, images: Images) -> bool:
    """Whether windows fit as a whole in some way, as by products in parts: faster than blocks, which pass the edge."""
    found = images.reads(op)
    return not isinstance(found, str) and isinstance(images.choose(op, found, {}), Choice)


def _only_moves(op: ir.Operation) -> bool:
    """Whether a copy makes the inside of a border."""
    return is_copy(op) and all(user.name == "tensor.insert_slice" for user, _ in uses(op.results[0]))


def _smallest(op: ir.Operation, whole: Blocks, demand: Demand, share: float) -> Blocks | None:
    """As few blocks as fit, those of the result cut before what is combined, or behind it where this makes fewer."""
    own, combined = demand.loops(op), demand.combined(op)
    orders = [[*own, *combined], [*combined, *own]] if combined else [own]
    found = [one for loops in orders if (one := _cut(op, whole, demand, share, loops)) is not None]
    return min(found, key=lambda one: prod(one.counts), default=None)


def _cut(op: ir.Operation, whole: Blocks, demand: Demand, share: float, loops: list[int]) -> Blocks | None:
    """As few blocks as fit, of at most two loops that grow smaller in turns, or of one after the other."""
    found, pair = whole, _pair(op, demand)
    while not demand.fits(op, found, share):
        open_ = [loop for loop in loops if found.block(loop) > demand.least(op, loop)]
        if not open_:
            return None
        in_turns = [loop for loop in open_[:2] if loop in pair]
        loop = max(in_turns, key=found.block) if open_[0] in in_turns else open_[0]
        found = found.doubled(loop, demand.least(op, loop))
    return found


def _pair(op: ir.Operation, demand: Demand) -> tuple[int, ...]:
    """The rows and columns of a product of two operands that both stream: each block of one meets all of the other."""
    found = computation(op)
    if not isinstance(found, Product) or found.rows is None or demand.fixed(op.operands[found.right]):
        return ()
    return () if demand.fixed(op.operands[found.left]) else (found.rows, found.columns)


def _align(op: ir.Operation, demand: Demand) -> None:
    """Cut what is read, or what reads a result, alike where it is cut finer: both are then done block by block."""
    own = Blocks.of(op, loop_sizes(op))
    loop = own.first()
    dim = None if loop is None else demand.dim_of(op, loop)
    if loop is None or dim is None:
        return
    counts = [own.counts[loop]]
    for value, read in zip(op.operands, maps(op)[:-1], strict=False):
        made = maker(value)
        if made is not None and Blocks.has(made):
            counts.append(_count(made, read, loop, demand))
    for user, number in uses(op.results[0]):
        if Blocks.has(user) and number < len(user.operands) - 1:
            other = Blocks.of(user, loop_sizes(user))
            first = other.first()
            alike = first is not None and maps(user)[number].results[dim] == _loop(first)
            counts += [other.counts[first]] if first is not None and alike else []
    finest = own.with_count(loop, max(counts))
    if demand.fits(op, finest, 1) and finest.block(loop) >= demand.least(op, loop):
        finest.write(op)


def _count(made: ir.Operation, read: ir.AffineMap, loop: int, demand: Demand) -> int:
    """Into how many blocks the maker of an operand is cut along the dimension that a loop runs over."""
    blocks = Blocks.of(made)
    cut = blocks.first()
    dim = None if cut is None else demand.dim_of(made, cut)
    if cut is None or dim is None or read.results[dim] != _loop(loop):
        return 1
    return blocks.counts[cut]


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions."""
    for function in walk(op, "func.func"):
        machine, fixed = machine_of(function), Fixed()
        if options_of(op).resident or not machine.mesh.offchip_bytes_per_cycle:
            return  # what does not fit is an error
        side = options.side or side_of(function, machine)
        demand, images = Demand(machine, side, fixed), Images(function, side, machine, fixed, lambda _: 0)
        for view in list(function.regions[0].blocks[0].operations):
            if view.operation.name == "linalg.generic":
                _plan(view.operation, demand, images)
        cut = [op for op in walk(function, "linalg.generic") if Blocks.has(op)]
        for op in [*cut, *reversed(cut)]:
            _align(op, demand)
        for op in cut:
            _tell(op, demand)
