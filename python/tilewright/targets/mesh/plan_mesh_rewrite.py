# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-plan-mesh` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import TilewrightError
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import maps, walk
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.targets.mesh.attributes import (
    ALGORITHM,
    LOOPS,
    OUTSIDE,
    SIDE,
    Fixed,
    machine_of,
    number,
    texts,
)
from tilewright.targets.mesh.computations import Elementwise, Product, Reduction, computation, dims, loop_sizes
from tilewright.targets.mesh.cutting.choice import Choice, Sizes, choose
from tilewright.targets.mesh.cutting.parts import PARTS
from tilewright.targets.mesh.moving.reshapes import RESHAPES, reshaped_axes
from tilewright.targets.mesh.moving.slice_ops import SLICES, sliced_axes

Axes = tuple[str, ...]


class _Planner:
    """Decides op by op, in order.

    Attributes:
        axes: how values that the grid makes lie.
    """

    def __init__(self, function: ir.Operation, side: int) -> None:
        self.function, self.machine = function, machine_of(function)
        mesh = self.machine.mesh
        generics = walk(function, "linalg.generic")
        longest = max((size for op in generics for size in loop_sizes(op)), default=1)
        self.side = side or max(1, min(mesh.height, mesh.width, longest))
        self.axes: dict[ir.Value, Axes] = {}
        self.fixed = Fixed()
        self.order = {view.operation: at for at, view in enumerate(function.regions[0].blocks[0].operations)}

    def plan(self) -> None:
        self.function.attributes[SIDE] = number(self.side)
        for op in _walk(self.function):
            try:
                if op.name == "linalg.generic":
                    self._plan(op)
                else:
                    self._follow(op)
            except TilewrightError as error:
                raise located(error, op) from error

    def _follow(self, op: ir.Operation) -> None:
        """How the result of a reshape or a slice lies."""
        made = next((value for value in list(op.operands)[:2] if value in self.axes), None)
        if made is None or op.parent.operation != self.function:
            return
        if op.name in RESHAPES:
            axes = reshaped_axes(op, self.axes[made], self.side)
        else:
            axes = sliced_axes(op, self.axes[made], made == op.operands[0])
        if axes is not None:
            self.axes[op.results[0]] = axes[0 if op.name == SLICES[0] else 1]

    def _plan(self, op: ir.Operation) -> None:
        top = op.parent.operation == self.function
        found = computation(op) if top else "it stands in a loop of the model"
        if top and self.fixed.of(op):
            op.attributes[OUTSIDE] = ir.StringAttr.get("it follows from weights alone")
            return
        if isinstance(found, str):
            op.attributes[OUTSIDE] = ir.StringAttr.get(found)
            remark(op, f"interpreted outside of the grid: {found}")
            return
        loops = self._product(op, found) if isinstance(found, Product) else self._spread(op, found)
        op.attributes[LOOPS] = texts(loops)
        self.axes[op.results[0]] = tuple("" if loop is None else loops[loop] for loop in dims(maps(op)[-1]))

    def _spread(self, op: ir.Operation, found: Elementwise | Reduction) -> list[str]:
        """Axes along loops: as most of what is read lies, else along the last ones."""
        sizes = loop_sizes(op)
        best: dict[int, str] = {}
        for value, map_ in zip(op.operands, maps(op)[:-1], strict=False):
            if value in self.axes:
                pairs = zip(dims(map_), self.axes[value], strict=True)
                known = {loop: axis.partition(" ")[0] for loop, axis in pairs if loop is not None}
                best = known if len(known) > len(best) else best
        loops = [best.get(loop, "") for loop in range(len(sizes))]
        open_ = [loop for loop, size in enumerate(sizes) if loop not in best and size > 1]
        free = [axis for axis in ("x", "y") if axis not in loops]
        if len(free) == 2 and len(open_) == 1:
            free = ["y"]  # a vector, as products expect it
        for loop, axis in zip(reversed(open_), free, strict=False):
            loops[loop] = axis
        return loops

    def _product(self, op: ir.Operation, found: Product) -> list[str]:
        loops = [""] * maps(op)[0].n_dims
        axis = self._axis_of_summed(op, found)
        choice = self._choose(op, found, axis is None)
        algorithm = choice.algorithm
        op.attributes[ALGORITHM] = ir.StringAttr.get(algorithm)
        if choice.parts.count > 1:
            op.attributes[PARTS] = choice.parts.attribute()
        if algorithm == "gemv":
            loops[found.summed] = axis or "y"
            loops[found.columns] = "x" if loops[found.summed] == "y" else "y"
        else:
            assert found.rows is not None
            loops[found.rows], loops[found.columns] = "y", "x"
        return loops

    def _axis_of_summed(self, op: ir.Operation, found: Product) -> str | None:
        """The axis along which the left operand's summed dimension lies, if no other one of its dimensions is split."""
        value = op.operands[found.left]
        if value not in self.axes:
            return "y" if found.rows is None or loop_sizes(op)[found.rows] == 1 else None
        lies = dict(zip(dims(maps(op)[found.left]), self.axes[value], strict=True))
        axis = lies.pop(found.summed)
        return axis.partition(" ")[0] if axis and not any(lies.values()) else None

    def _choose(self, op: ir.Operation, found: Product, row_split: bool) -> Choice:
        sizes, (left, right) = loop_sizes(op), (op.operands[found.left], op.operands[found.right])
        order = dims(maps(op)[found.right])
        kinds = [_dtype(value) for value in (left, op.results[0])]
        made = choose(
            Sizes(
                None if found.rows is None else sizes[found.rows],
                sizes[found.summed],
                sizes[found.columns],
                kinds[0],
                kinds[1],
                order.index(found.columns) < order.index(found.summed),
                (self.fixed(left), self.fixed(right)),
            ),
            self.side,
            self.machine,
            row_split,
            self._beside(op),
        )
        remark(op, f"{_told([sizes[loop] for loop in found.batch])}{made}")
        return made

    def _beside(self, op: ir.Operation) -> int:
        """Bytes that a core holds of values which are made before an op, and read behind it."""
        total = 0
        for value, axes in self.axes.items():
            if any(self.order.get(use.owner.operation, 0) > self.order[op] for use in value.uses):
                shape = ir.RankedTensorType(value.type).shape
                parts = [-(-size // (self.side if axis else 1)) for size, axis in zip(shape, axes, strict=True)]
                total += prod(parts) * _dtype(value).itemsize
        return total


def _walk(function: ir.Operation) -> list[ir.Operation]:
    """What is planned, or follows from that, in order."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name in ("linalg.generic", *RESHAPES, *SLICES):
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _told(batch: Sequence[int]) -> str:
    return f"{' x '.join(map(str, batch))} products, of each: " if batch else ""


def _dtype(value: ir.Value) -> np.dtype:
    return of_mlir(str(ir.RankedTensorType(value.type).element_type))


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions."""
    for function in walk(op, "func.func"):
        _Planner(function, options.side).plan()
