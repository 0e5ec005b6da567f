# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Few vectors times a matrix that a run brings: its rows stream by, some of them side by side."""

from __future__ import annotations

from math import ceil, prod

from tilewright.ir.structure import Access, LinalgOp, Weights
from tilewright.plan.model.tiles import Machine, Tiling, even

#: Vectors for which the rows of a matrix are read again rather than transposed.
FEW_VECTORS = 4
#: Rows whose sums are near enough while a matrix streams by.
_NEAR_ROWS = 8


def stream_rows(
    op: LinalgOp,
    access: Access | None,
    loops: tuple[int | None, int],
    tiling: Tiling,
    machine: Machine,
    weights: Weights,
) -> None:
    """A vector, or a few, times a matrix that lies as it is: some rows of it at a time, over all columns of a task.

    Sums in registers would walk down a narrow strip, a page of memory per row; a few rows side by side are streams
    that the hardware prefetches. The sums of a task wait in the L1 cache, or in the L2 cache where they are many.
    Where those of all tasks fit there, the tasks of one thread take each block of rows together: longer streams.

    Args:
        op: the product.
        access: the operand with the lanes, if there is one.
        loops: of its rows (None: a vector) and of its lanes.
        tiling: as for other products; changed.
        machine: whose cores share the columns.
        weights: those are packed, and do not stream as they lie.
    """
    row, lane = loops
    if access is None or len(op.reductions) != 1 or weights.only(access.value):
        return
    (depth,) = op.reductions
    streams, page = machine.count("row_streams"), machine.count("page")
    if access.dims[-1] != lane or op.extents[depth] < 2 * streams:
        return
    width = tiling.register[lane]
    least, cores = machine.count("stream_columns"), machine.cores
    if row is not None and op.extents[row] > FEW_VECTORS // 2:
        rows = even(op.extents[row], _NEAR_ROWS)
        tiling.task[row], tiling.register[row] = rows, even(rows, tiling.register[row])
        cores //= ceil(op.extents[row] / rows)
        least = page // 4  # in each row of sums two tasks share a line, and write it in turns
    columns = even(op.extents[lane], max(op.extents[lane] // max(cores, 1), least), width)
    tiling.task[lane] = min(columns, page)  # their sums stay in the L1 cache
    tiling.together = 4 * prod(op.extents[d] for d in op.parallel) <= machine.rate("near_sums")
    tiling.block = [*op.extents]
    tiling.block[depth] = streams
    tiling.unroll = [1] * op.rank
    tiling.unroll[depth] = streams
