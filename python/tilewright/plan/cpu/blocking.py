# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cache blocks of a matrix product: what of its operands a task works on at a time.

The layers are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (ACM TOMS 34(3),
2008, sections 4 and 5): of the two operands of a register tile, one streams through the L1 cache, and the other, which
lies in the L2 cache, is used by every tile of the first. Which of the two lies depends on where they come from:

- Weights that fit into half of the L2 cache lie there; rows stream by, each read once.
- Few rows lie in the L2 cache; weights, packed at compile time, stream by, panel after panel.
- Under many rows some panels of the weights lie there, and so do those of an operand known at run time only, which
  their task copies; rows stream by, prefetched, once for each task.

Where too few rows or panels would lie in the cache with their whole reduction, the reduction is cut into blocks. A
product whose panels and rows overflow the L2 cache loses 10 to 20 % of its speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tilewright.plan.model.tiles import Machine, even

#: Bytes of an element: sizes are those of f32 products.
_ELEMENT = 4
#: Panels of packed weights that meet a block of rows before the next block of the reduction.
_BLOCKED_PANELS = 8
#: Tasks of one core that even out disturbances.
_TASKS_PER_CORE = 8


@dataclass(frozen=True)
class Product:
    """Sizes of one product of a batch, of its register tile, and of the machine."""

    rows: int
    columns: int
    depth: int
    batch: int
    row_tile: int
    lane_tile: int
    machine: Machine

    @property
    def panels(self) -> int:
        """Panels of columns, each as wide as a register tile."""
        return ceil(self.columns / self.lane_tile)

    @property
    def tasks(self) -> int:
        """Tasks that the work is worth: enough for the cores, and none too small."""
        macs = self.rows * self.columns * self.depth
        wanted = ceil(_TASKS_PER_CORE * self.machine.cores / self.batch)
        return max(min(wanted, macs // self.machine.task_macs), 1)


@dataclass(frozen=True)
class Blocks:
    """Rows and columns of a task, steps of the reduction per block, and whether rows are the outer loop."""

    rows: int
    columns: int
    depth: int
    rows_outside: bool


def block_copied(product: Product) -> Blocks:
    """The lane operand is known at run time only: its panels are copied by the task that uses them."""
    return _block_panels(product, product.machine.rate("copy_macs"))


def _block_panels(product: Product, copy: float) -> Blocks:
    """Panels stay in the L2 cache under all rows of a task; to bring an element of them there costs `copy`.

    Of the numbers of panels that fit, and of the parts that rows may be cut into, it takes what keeps all cores busy
    without copying, or reading rows, too often.
    """
    near = product.machine.l2_bytes * 2 // 5  # rows stream through the rest
    width = _ELEMENT * product.lane_tile
    depth = even(product.depth, max(near // width, product.machine.count("sum_steps")), 16)
    fitting = max(min(near // (depth * width), product.panels), 1)
    rows = [
        even(product.rows, ceil(product.rows / parts), product.row_tile)
        for parts in range(1, 4 * product.machine.cores)
    ]
    if depth < product.depth:  # sums wait in memory between two blocks
        rows = [min(size, even(product.rows, near // width, product.row_tile)) for size in rows]
    sizes = [(min(keep * product.lane_tile, product.columns), size) for keep in range(1, fitting + 1) for size in rows]
    columns, best = min(sizes, key=lambda size: _cost(product, *size, copy))
    return Blocks(best, columns, depth, rows_outside=True)


def _cost(product: Product, columns: int, rows: int, copy: float) -> float:
    """Work of one core and of the busiest of all, in multiply-adds, with what copies and reading rows again cost."""
    down, across = divmod(product.rows, rows), divmod(product.columns, columns)
    sizes = [(rows, columns)] * (down[0] * across[0]) + [(rows, across[1])] * (down[0] if across[1] else 0)
    sizes += [(down[1], columns)] * (across[0] if down[1] else 0) + [(down[1], across[1])] * bool(down[1] and across[1])
    read = product.machine.rate("read_macs")
    shares = [0.0] * product.machine.cores
    for tall, wide in sorted(sizes * min(product.batch, product.machine.cores), reverse=True):
        shares[shares.index(min(shares))] += tall * wide + copy * wide + read * tall
    return sum(shares) / product.machine.cores + max(shares)


def block_packed(product: Product) -> Blocks:
    """The lane operand is a weight, packed in panels at compile time."""
    near = product.machine.l2_bytes // 2
    if product.columns * product.depth * _ELEMENT <= near:
        rows = even(product.rows, ceil(product.rows / product.tasks), product.row_tile)
        return Blocks(rows, product.columns, product.depth, rows_outside=True)
    depth = even(product.depth, max(near // (_ELEMENT * product.rows), product.machine.count("sum_steps")), 16)
    if depth < product.depth and product.rows > product.machine.rate("panel_rows"):
        return _block_panels(product, product.machine.rate("fetch_macs"))
    keep = max(product.panels // product.tasks, 1)
    if depth < product.depth:
        few = ceil(2 * product.machine.cores / product.batch)
        keep = even(product.panels, max(min(_BLOCKED_PANELS, product.panels // few), 1))
    else:
        keep = max(min(keep, product.machine.task_macs // (product.rows * product.depth * product.lane_tile)), 1)
    return Blocks(product.rows, min(keep * product.lane_tile, product.columns), depth, rows_outside=False)
