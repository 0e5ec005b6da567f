# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that a core needs for a computation whose loops are cut into blocks: an estimate, from what is known early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import kinds, maps
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.targets.mesh.attributes import Fixed
from tilewright.targets.mesh.bodies.captures import captures
from tilewright.targets.mesh.computations import Product, Reduction, computation, loop_sizes
from tilewright.targets.mesh.cutting.choice import fits_in_parts
from tilewright.targets.mesh.cutting.sizes import sizes_of
from tilewright.targets.mesh.elements.rows import gather, rows_loops
from tilewright.targets.mesh.elements.spread import is_by_rows, table_bytes
from tilewright.targets.mesh.images.windows import Terms, terms
from tilewright.targets.mesh.streaming.blocks import Blocks
from tilewright.targets.mesh.streaming.reduced import combined_loops


class Demand:
    """Counts bytes for a machine.

    Args:
        side: cores along each side of the grid.
        fixed: which values are the same in each call.
    """

    def __init__(self, machine: Machine, side: int, fixed: Fixed) -> None:
        self.machine, self.side, self.fixed = machine, side, fixed
        self.room = machine.sram_bytes - machine.mesh.code_bytes

    def fits(self, op: ir.Operation, blocks: Blocks, share: float) -> bool:
        """Whether cores hold one block of what an op reads and makes in this part of their memories."""
        if self.bytes(op, blocks) > share * self.room:
            return False
        found = computation(op)
        if not isinstance(found, Product):
            return True
        return fits_in_parts(sizes_of(op, found, blocks.cut, self._fixed_beside(op, blocks)), self.side, self.room)

    def told(self, op: ir.Operation, blocks: Blocks) -> str:
        """For a remark."""
        return f"{self.bytes(op, blocks):,} bytes of a core and more, which has {self.room:,}"

    def cuts_weight(self, op: ir.Operation, blocks: Blocks) -> bool:
        """Whether a weight or filter is cut, too: what comes in with each block are all of its elements."""
        fixed = self._fixed_beside(op, blocks)
        is_read = isinstance(computation(op), Product | str)
        return is_read and any(self.fixed(value) and not fixed(value) for value in list(op.operands)[:-1])

    def loops(self, op: ir.Operation) -> list[int]:
        """Loops of the result that can be cut, the outermost first."""
        read = map(terms_of, maps(op)[-1].results)
        return self._open(op, [one[0][0] for one in read if one is not None and len(one) == 1])

    def combined(self, op: ir.Operation) -> list[int]:
        """Loops that can be cut along which an op combines."""
        return self._open(op, combined_loops(op))

    def _open(self, op: ir.Operation, found: Sequence[int | None]) -> list[int]:
        sizes = loop_sizes(op)
        reads = [terms_of(expr) for map_ in maps(op) for expr in map_.results]
        open_ = {loop for one in reads if one is None for loop in range(len(sizes))}
        return [loop for loop in found if loop is not None and sizes[loop] > 1 and loop not in open_]

    def least(self, op: ir.Operation, loop: int) -> int:
        """The smallest block of a loop: as many as there are cores where they split it."""
        return self.side if loop in self._split(op, loop_sizes(op)) else 1

    def dim_of(self, op: ir.Operation, loop: int) -> int | None:
        """The dimension of the result along a loop."""
        wanted = ir.AffineDimExpr.get(loop)
        return next((dim for dim, expr in enumerate(maps(op)[-1].results) if expr == wanted), None)

    def bytes(self, op: ir.Operation, blocks: Blocks) -> int:
        """Bytes of a core for a block of each operand and of the result."""
        found, cut = computation(op), blocks.cut
        split, fixed = self._split(op, cut), self._fixed_beside(op, blocks)
        total = 0
        for number, (value, map_) in enumerate(zip(op.operands, maps(op), strict=True)):
            is_result = number == len(op.operands) - 1
            if isinstance(found, Product | str) and not is_result and fixed(value):
                continue  # weights and filters come in part by part
            reads = [terms_of(expr) for expr in map_.results]
            shape = list(ir.RankedTensorType(value.type).shape)
            counts = [self._extent(one, size, cut, split) for one, size in zip(reads, shape, strict=True)]
            copies = 2 if any(one is not None and len(one) > 1 for one in reads) else 1  # windows with their borders
            copies += is_result and isinstance(found, Product) and bool(found.batch)
            total += copies * prod(counts) * of_mlir(str(ir.RankedTensorType(value.type).element_type)).itemsize
        return total + self._picked(op) + self._points(op, cut, split)

    def _points(self, op: ir.Operation, cut: list[int], split: set[int]) -> int:
        """Bytes of what cores compute of the inputs of a reduction before they combine it."""
        found = computation(op)
        if not isinstance(found, Reduction) or found.plain:
            return 0
        counts = [-(-size // self.side) if loop in split else size for loop, size in enumerate(cut)]
        return prod(counts) * of_mlir(str(ir.RankedTensorType(op.results[0].type).element_type)).itemsize

    def _picked(self, op: ir.Operation) -> int:
        """Bytes of what elements are picked from: a core holds all of it, whatever the blocks, if it can."""
        around = captures(op, loop_sizes(op))
        if isinstance(around, str) or not around.tables or is_by_rows(op, self.side, self.room):
            return 0
        return table_bytes(around, self.side)

    def _fixed_beside(self, op: ir.Operation, blocks: Blocks) -> Callable[[ir.Value], bool]:
        """Which values are the same in each turn of the loops over blocks, too: not a weight that is cut itself."""
        cut = {loop for loop, count in enumerate(blocks.counts) if count > 1}
        open_ = {
            value
            for value, map_ in zip(op.operands, maps(op), strict=True)
            if any(loop in cut for expr in map_.results for loop, _ in terms_of(expr) or [])
        }
        return lambda value: value not in open_ and self.fixed(value)

    def _extent(self, read: Terms | None, size: int, cut: list[int], split: set[int]) -> int:
        """Elements that a core has along a dimension."""
        if read is None:
            return size
        steps = [(loop, abs(factor)) for loop, factor in read if loop is not None]
        extent = min(size, 1 + sum(factor * (cut[loop] - 1) for loop, factor in steps))
        return -(-extent // self.side) if any(loop in split for loop, _ in steps) else extent

    def _split(self, op: ir.Operation, sizes: list[int]) -> set[int]:
        """Loops that cores split among them."""
        found = computation(op)
        if isinstance(found, Product):
            return {loop for loop in (found.rows, found.columns, found.summed) if loop is not None}
        picked = None if isinstance(found, str) else gather(op)
        if picked is not None and is_by_rows(op, self.side, self.room):
            return {loop for loop, axis in enumerate(rows_loops(op, picked)) if axis}
        windows = isinstance(found, str)
        loops = [loop for loop, size in enumerate(sizes) if size > 1 and not (windows and kinds(op)[loop])]
        return set(sorted(loops, key=lambda loop: sizes[loop])[-2:] if windows else loops[-2:])


def terms_of(expr: ir.AffineExpr) -> Terms | None:
    """Loops with factors that an index is the sum of, without its constant; None where it is no such sum."""
    found = terms(expr)
    if found is None or any(factor < 0 for _, factor in found):
        return None
    return [(loop, factor) for loop, factor in found if loop is not None]
