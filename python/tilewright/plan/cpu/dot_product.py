# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of small numbers for which processors have instructions: pairs of bf16, fours of bytes.

Such an instruction takes a *group* of neighbours along the reduced dimension, the depth, from both operands at once and
adds their products to one 32-bit accumulator (vdpbf16ps, vpdpbusd). One operand lends a group that all lanes share; the
other one must hold the groups of neighbouring lanes side by side in memory: its layout cuts the depth into blocks of
the group's size, innermost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.ir.generics import is_copy, maker, maps
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights
from tilewright.mlir import ir

if TYPE_CHECKING:
    from tilewright.plan.cpu.products import Roles
    from tilewright.plan.model.tiles import Machine

#: Rows of a matrix unit's register, and groups in each.
_BLOCK = 16
#: Rows that a run-time operand must meet for its copy to pay.
_COPY_ROWS = 64
#: Elements of a group: as many as 32 bits hold.
GROUPS = {"bf16": 2, "i8": 4}
#: The same in words.
NAMES = {"bf16": "bf16", "i8": "bytes"}
#: How sentences about a size end that the plan does not know.
NO_SIZE = "is known at run time only"
_NO_NEIGHBOURS = "neighbours along its sums are no neighbours in memory"
_ACCUMULATORS = {"bf16": "f32", "i8": "i32"}
_WIDENS = {"arith.extf": False, "arith.extsi": False, "arith.extui": True}


@dataclass(frozen=True)
class ProductOperand:
    """An operand of a product: its number, its element type, and whether it is widened without a sign."""

    number: int
    element: str
    unsigned: bool


@dataclass(frozen=True)
class Dot:
    """The depth of a product, a loop, and how many of its elements an instruction takes."""

    depth: int
    group: int
    #: rows, lanes and depth of a matrix unit's registers, where it makes the product
    blocks: tuple[int, int, int] | None = None
    #: whether each task lays out its part of the lanes' operand
    copied: bool = False


def product_operands(op: LinalgOp) -> list[ProductOperand]:
    """The two operands of a sum of products, in the order of the body; none where they are more than elements."""
    if op.kind is not Kind.CONTRACTION or op.unpacks:
        return []
    block = op.op.regions[0].blocks[0]
    total = block.operations[len(block.operations) - 1].operands[0].owner
    for term in total.operands:
        if not isinstance(term, ir.BlockArgument) and term.owner.name in ("arith.mulf", "arith.muli"):
            return [_operand(value) for value in term.owner.operands]
    return []


def _operand(value: ir.Value) -> ProductOperand:
    unsigned = False
    if not isinstance(value, ir.BlockArgument):
        unsigned = _WIDENS.get(value.owner.name, False)
        value = value.owner.operands[0]
    return ProductOperand(ir.BlockArgument(value).arg_number, str(value.type), unsigned)


def small_element(op: LinalgOp) -> str | None:
    """`bf16` or `i8` where both operands are of that type, with the accumulator that its instruction has."""
    found = product_operands(op)
    kinds = {operand.element for operand in found}
    if len(found) != 2 or len(kinds) != 1 or found[0].number == found[1].number:
        return None
    kind = kinds.pop()
    total = str(ir.RankedTensorType(op.result.type).element_type)
    return kind if _ACCUMULATORS.get(kind) == total else None


def dot_of(op: LinalgOp, roles: Roles, machine: Machine, weights: Weights) -> Dot | None:
    """The dot products that a contraction is made of on a machine with such instructions; None for single products."""
    found = find_dot(op, roles, machine, weights)
    return found if isinstance(found, Dot) else None


def find_dot(op: LinalgOp, roles: Roles, machine: Machine, weights: Weights) -> Dot | str:
    """The dot products that a contraction is made of, or why no instruction of the machine makes it, in words."""
    kind = small_element(op)
    if kind is None:
        return "its operands are no small numbers of one type"
    if kind not in machine.dots | machine.matrix:
        return f"this machine has no instruction that multiplies {NAMES[kind]} faster"
    if roles.lane_operand is None:
        return "each channel has a sum of its own (depthwise), so there is nothing to share among lanes"
    tried = (_dot_along(op, roles, depth, machine, weights) for depth in _by_extent(op))
    first = next(tried)
    return first if isinstance(first, Dot) else next((dot for dot in tried if isinstance(dot, Dot)), first)


def _by_extent(op: LinalgOp) -> list[int]:
    """The loops of the sums, the longest first: instructions go along it where they can."""
    return sorted(op.reductions, key=lambda d: -op.extents[d])


def _dot_along(op: LinalgOp, roles: Roles, depth: int, machine: Machine, weights: Weights) -> Dot | str:
    """The same for groups of neighbours along one loop of the sums."""
    found = product_operands(op)
    kind, mixed = found[0].element, len({operand.unsigned for operand in found}) == 2
    group = GROUPS[kind]
    if depth in op.dynamic:
        return f"the length of its sums {NO_SIZE}"
    if op.extents[depth] < group:
        return f"an instruction adds {group} neighbours, its sums have {op.extents[depth]}"
    number = roles.lane_operand or 0
    lanes, rows = op.inputs[number], op.inputs[1 - number]
    held = _holds_groups(lanes, depth, group, weights)
    if not held and not _can_be_copied(op, lanes, depth, weights):
        return _why_not_copied(op, lanes, weights)
    if not _lends_groups(rows, depth, weights):
        return _NO_NEIGHBOURS
    blocks = _find_blocks(op, roles, depth, group) if kind in machine.matrix else None
    if isinstance(blocks, tuple):
        return Dot(depth, group, blocks, copied=not held)
    by_vectors = kind in machine.dots and (kind != "i8" or mixed)
    if by_vectors:
        return Dot(depth, group, copied=not held)
    return blocks or "the instruction multiplies bytes with a sign by bytes without one, and both are of one kind"


def _is_transposed(op: LinalgOp) -> bool:
    """Whether all that becomes of a result is a copy with its dimensions in another order."""
    made = [None if value is None else maker(value) for value in op.readers]
    copies = [one for one in made if one is not None and is_copy(one)]
    return bool(copies) and len(copies) == len(made) and all(maps(one)[0] != maps(one)[1] for one in copies)


def _find_blocks(op: LinalgOp, roles: Roles, depth: int, group: int) -> tuple[int, int, int] | str:
    """Rows, lanes and depth of a matrix unit's registers, 16 rows of 64 bytes; or the rule that a product breaks.

    All registers of a kernel have the same sizes, or LLVM spills some: lanes and depth come out even; rows that do not
    are computed twice.
    """
    rows, row, size = op.inputs[1 - (roles.lane_operand or 0)], roles.row, _BLOCK * group
    if row is None:
        return "it has one row, and a matrix unit takes several"
    if _is_transposed(op):
        return "what it makes is stored with rows apart, and blocks are stored row by row"
    if row in op.dynamic:
        return f"its number of rows {NO_SIZE}"
    if op.extents[roles.lane] % _BLOCK:
        return f"its {op.extents[roles.lane]} columns are no multiple of the matrix unit's {_BLOCK}"
    if op.extents[depth] % size:
        return f"its sums of {op.extents[depth]} are no multiple of the matrix unit's {size}"
    if rows.dims[-1] != depth:
        return _NO_NEIGHBOURS
    return min(_BLOCK, op.extents[row]), _BLOCK, size


def fits_matrix(op: LinalgOp, roles: Roles) -> bool:
    """Whether a matrix unit's registers hold whole blocks of a product of bytes."""
    if roles.lane_operand is None:
        return False
    return isinstance(_find_blocks(op, roles, _by_extent(op)[0], GROUPS["i8"]), tuple)


def _can_be_copied(op: LinalgOp, lanes: Access, depth: int, weights: Weights) -> bool:
    """Whether tasks can lay out their part of a run-time operand in groups, and rows make up for it."""
    rows = op.reuse(lanes)
    known = lanes.pure and None not in lanes.dims and not op.dynamic and not weights.only(lanes.value)
    return known and depth in lanes.dims and rows >= _COPY_ROWS and not op.welded


def _why_not_copied(op: LinalgOp, lanes: Access, weights: Weights) -> str:
    """Why tasks cannot lay out their part of the lanes' operand (`_can_be_copied`)."""
    if weights.only(lanes.value):
        return _NO_NEIGHBOURS
    if op.dynamic:
        return f"both operands come with the run, and a size of them {NO_SIZE}"
    if op.reuse(lanes) < _COPY_ROWS:
        return f"both operands come with the run, and {op.reuse(lanes)} rows are too few to lay one of them out anew"
    return "both operands come with the run, and " + (
        "its task has other nests" if op.welded else "one is read in windows"
    )


def _lends_groups(rows: Access, depth: int, weights: Weights) -> bool:
    """Whether neighbours along the depth are, or can be laid out as, neighbours in memory."""
    if rows.dims[-1] == depth:
        return not any(depth in uses for uses in rows.uses[:-1])
    return rows.pure and depth in rows.dims and weights.only(rows.value)


def _holds_groups(lanes: Access, depth: int, group: int, weights: Weights) -> bool:
    """Whether an operand is laid out in groups of the depth, or can be."""
    if lanes.pure:
        return weights.only(lanes.value) and depth in lanes.dims
    last = lanes.map.results[len(lanes.map.results) - 1]
    return str(last) == f"d{depth} mod {group}"
