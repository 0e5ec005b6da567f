# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tiling for a GPU: what the code generator carries out, and what a kernel's time is predicted for."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir import decisions
from tilewright.ir.structure import LinalgOp, set_attribute


@dataclass
class GpuTiling:
    """Sizes per loop of a CTA and of a register tile, the depth of a product, and what later passes need.

    Attributes:
        task: what a task covers of each loop; 0: all of it, whatever a run brings.
        register: the register tile, powers of two.
        order: loops, outermost first.
        depth: the reduced loop that a product of tiles takes its depth from.
        warps: that hold the tiles.
        marks: further attributes of the root, in their textual form.
    """

    task: list[int]
    register: list[int]
    order: list[int]
    depth: int | None = None
    warps: int = 4
    marks: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the `#tile.rtile`."""
        task = ", ".join(str(size) if size else "?" for size in self.task)
        mma = ""
        if self.depth is not None:
            sizes = [self.register[d] if d == self.depth else 1 for d in range(len(self.task))]
            mma = f"mma = {sizes}, "
        return f"#tile.rtile<{mma}shared = [{task}], register = {self.register}, order = {self.order}>"

    def write(self, op: LinalgOp) -> None:
        """Leave the decision on the root of a nest."""
        set_attribute(op.op, decisions.RTILE, str(self))
        decisions.PADDED.set(op.op)
        decisions.WARPS.set(op.op, self.warps)
        for name, text in self.marks.items():
            set_attribute(op.op, name, text)
