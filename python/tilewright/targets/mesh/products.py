# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on a grid: one collective for each of a batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.ir.generics import create, maps
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops
from tilewright.targets.mesh.computations import Product, dims, loop_sizes
from tilewright.targets.mesh.elementwise import lies
from tilewright.targets.mesh.placement import Placement, laid_type
from tilewright.targets.mesh.slices import extracted, stacked


@dataclass(frozen=True, eq=False)
class _Operand:
    """An operand on the grid.

    Attributes:
        loops: along its dimensions; None where one index is always read.
        always: that index, by dimension.
    """

    value: ir.Value
    loops: tuple[int | None, ...]
    always: dict[int, int]

    def part(self, at: dict[int, int], parts: dict[object, ir.Value], side: int) -> ir.Value:
        """Its slice at indices of batch loops; what was cut once is kept."""
        own = {self.loops.index(loop): index for loop, index in at.items() if loop in self.loops} | self.always
        if not own:
            return self.value
        key = (self.value, tuple(sorted(own.items())))
        if key not in parts:
            parts[key] = extracted(self.value, own, side)
        return parts[key]


def product(op: ir.Operation, found: Product, algorithm: str, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic that multiplies, on the grid.

    Args:
        algorithm: ``gemv``, also for rows one by one; ``meshgemm``; ``gemm_t``.
        loops: the axis along each, as far as the result lies along it.
    """
    out, sizes = [loop for loop in dims(maps(op)[-1]) if loop is not None], loop_sizes(op)
    left, right = _operands(op, found, algorithm, loops, placement)
    batch = [loop for loop in out if loop in found.batch or (algorithm == "gemv" and loop == found.rows)]
    inner = [loop for loop in out if loop not in batch]
    element = ir.RankedTensorType(op.results[0].type).element_type
    tile = ir.RankedTensorType.get([sizes[loop] for loop in inner], element)
    kind = laid_type(tile, tuple(loops[loop] for loop in inner), placement.side)
    kept: dict[object, ir.Value] = {}
    made = []
    for indices in itertools.product(*(range(sizes[loop]) for loop in batch)):
        at = dict(zip(batch, indices, strict=True))
        pair = [operand.part(at, kept, placement.side) for operand in (left, right)]
        made.append(_multiplied(pair, kind, algorithm))
    if not batch:
        return made[0]
    whole = laid_type(op.results[0].type, lies(maps(op)[-1], loops), placement.side)
    return stacked(made, whole, [out.index(loop) for loop in batch])


def _operands(
    op: ir.Operation, found: Product, algorithm: str, loops: Sequence[str], placement: Placement
) -> tuple[_Operand, _Operand]:
    summed, columns, rows = found.summed, found.columns, found.rows
    if algorithm == "gemv":
        axis = loops[summed]
        of_left, of_right = {summed: axis}, {summed: axis, columns: loops[columns]}
        orders = [[summed], [summed, columns]]
    else:
        assert rows is not None
        skew = " skew" if placement.fixed(op.operands[found.right]) and algorithm == "meshgemm" else ""
        of_left = {rows: "y", summed: "x" + (" skew" if placement.fixed(op.operands[found.left]) and skew else "")}
        of_right = {summed: "y" + skew, columns: "x"}
        orders = [[rows, summed], [summed, columns]]
        if algorithm == "gemm_t":
            of_right, orders[1] = {columns: "y", summed: "x"}, [columns, summed]
    numbers = (found.left, found.right)
    made = [
        _operand(op, number, order, axes, placement)
        for number, order, axes in zip(numbers, orders, (of_left, of_right), strict=True)
    ]
    return made[0], made[1]


def _operand(
    op: ir.Operation, number: int, order: Sequence[int], axes: dict[int, str], placement: Placement
) -> _Operand:
    """An operand with two of its loops in this order; transposed outside where it has them in the other one."""
    read = maps(op)[number]
    have = dims(read)
    turn = list(range(len(have)))
    for place, loop in zip(sorted(have.index(loop) for loop in order), order, strict=True):
        turn[place] = have.index(loop)
    wanted = [have[at] for at in turn]
    lie = tuple("" if loop is None else axes.get(loop, "") for loop in wanted)
    always = {place: ir.AffineConstantExpr(read.results[at]).value for place, at in enumerate(turn) if have[at] is None}
    return _Operand(placement.turned(op.operands[number], turn, lie), tuple(wanted), always)


def _multiplied(pair: list[ir.Value], kind: ir.Type, algorithm: str) -> ir.Value:
    if algorithm not in ("gemv", "meshgemm", "gemm_t"):
        raise UserError(f"coremesh.algorithm is '{algorithm}': use gemv, meshgemm or gemm_t")
    if algorithm == "gemm_t":
        return create("coremesh.gemm_t", pair, kind)
    i32 = ir.IntegerType.get_signless(32)
    chosen = ops.Gemm.meshgemm if algorithm == "meshgemm" else ops.Algorithm.chain
    attributes = {"algorithm": ir.IntegerAttr.get(i32, int(chosen))}
    return create("coremesh.gemm" if algorithm == "meshgemm" else "coremesh.gemv", pair, kind, attributes)
