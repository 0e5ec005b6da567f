# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions with constant weights of so few columns that lanes along these would be idle.

The last convolution of a net that makes an image has three channels, a score has one column: of 16 lanes three would be
used. Where the other operand lies along the reduction, lanes run there: each point of the result is a vector of partial
sums, which is summed at the end. The weights are laid out with the reduction innermost, each column apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.ir.structure import Access, Kind, LinalgOp, Weights
from tilewright.plan.cpu.dot_product import small_element
from tilewright.plan.model.tiles import Machine, Tiling, cut, even

#: Columns of which a quarter of a vector's lanes would be used.
_MOST = 4
#: Steps of the reduction that are worth summing the lanes of a vector: about ten instructions.
_LEAST_DEPTH = 64
#: Rows that fill a register tile.
_LEAST_ROWS = 4


@dataclass(frozen=True)
class Columns:
    """The operand that holds the columns, the order of its dimensions, the loops of columns, rows and lanes."""

    operand: int
    order: list[int]
    columns: list[int]
    rows: list[int]
    along: int


def few_columns(op: LinalgOp, weights: Weights) -> Columns | None:
    """The loops of a contraction that has few columns and lies along the reduction; None for all others."""
    if op.kind is not Kind.CONTRACTION or len(op.inputs) != 2 or op.dynamic or small_element(op) is not None:
        return None
    constant = [weights.only(access.value) for access in op.inputs]
    if constant[0] == constant[1]:
        return None
    own, other = (op.inputs[constant.index(fixed)] for fixed in (True, False))
    along = other.dims[-1] if other.dims else None
    if along is None or not _is_along(op, own, other, along):
        return None
    columns = [d for d in op.parallel if d in own.loops]
    rows = [d for d in op.parallel if d in other.loops and op.extents[d] > 1]
    if not rows or any(d in other.loops and op.extents[d] > 1 for d in columns):
        return None  # groups
    few = prod(op.extents[d] for d in columns) <= _MOST
    if not few or prod(op.extents[d] for d in rows) < _LEAST_ROWS:
        return None
    at = own.dims.index(along)
    return Columns(constant.index(True), [*(t for t in range(len(own.dims)) if t != at), at], columns, rows, along)


def _is_along(op: LinalgOp, own: Access, other: Access, along: int) -> bool:
    """Whether both operands can be read by vectors along a loop of the reduction."""
    depth = prod(op.extents[d] for d in op.reductions)
    alone = not any(along in uses for uses in other.uses[:-1]) and own.pure and along in own.dims
    return alone and along in op.reductions and depth >= _LEAST_DEPTH


def tile_columns(op: LinalgOp, found: Columns, machine: Machine) -> Tiling:
    """All columns of some rows, a vector of the reduction at a time; tasks are cut along the rows."""
    register, task = [1] * op.rank, list(op.extents)
    count = prod(op.extents[d] for d in found.columns)
    for d in found.columns:
        register[d] = op.extents[d]
    register[found.along] = min(op.extents[found.along], machine.lanes)
    row = found.rows[-1]
    register[row] = even(op.extents[row], max((machine.registers - count - 2) // count // 2, 1))
    cut(task, register, [d for d in op.parallel if d in found.rows], machine.task_macs)
    batch = [d for d in op.parallel if d not in found.columns]
    return Tiling(task, register, [*batch, *found.columns, *sorted(op.reductions, key=lambda d: d == found.along)])
