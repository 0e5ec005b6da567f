# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-plan-mesh` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import TilewrightError
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import maps, walk
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.sim.coremesh_ir.cost import has_doubles
from tilewright.targets.mesh.attributes import (
    ALGORITHM,
    ELEMENT,
    FETCHED,
    LOOPS,
    OUTSIDE,
    SIDE,
    STREAMS,
    Fixed,
    keeps,
    machine_of,
    number,
    texts,
)
from tilewright.targets.mesh.computations import (
    Computation,
    Product,
    computation,
    dims,
    loop_sizes,
)
from tilewright.targets.mesh.control.loops import (
    Carried,
    carried,
    default_axes,
    in_order,
    picked,
    picked_of,
    plan_axes,
    slice_dims,
    write_axes,
)
from tilewright.targets.mesh.control.shared_loops import Shared
from tilewright.targets.mesh.control.single_elements import CONTROL, ELEMENTS, Around, enclosing, single_elements
from tilewright.targets.mesh.cutting.choice import Choice, choose
from tilewright.targets.mesh.cutting.parts import PARTS
from tilewright.targets.mesh.cutting.sizes import sizes_of
from tilewright.targets.mesh.elements.computed_reads import open_reads
from tilewright.targets.mesh.elements.numbers import open_numbers
from tilewright.targets.mesh.elements.rows import ROWS, gather, rows_loops
from tilewright.targets.mesh.elements.spread import (
    fitting,
    is_by_rows,
    left_outside,
    spread,
    table_outgrows,
)
from tilewright.targets.mesh.grid_side import side_of
from tilewright.targets.mesh.images.planner import Images, mark_borders
from tilewright.targets.mesh.moving.reshapes import reshaped_axes
from tilewright.targets.mesh.moving.slice_ops import SLICES, has_known_offsets, sliced_axes
from tilewright.targets.mesh.weights.condensed import ROUND, STANDING
from tilewright.targets.mesh.weights.condensed_choice import (
    Held,
    move_cycles,
    reason_against,
    round_about,
    standing,
    told,
)
from tilewright.targets.mesh.weights.sparse import Weight, open_products, weight_of

Axes = tuple[str, ...]


class _Planner:
    """Decides op by op, in order.

    Attributes:
        axes: how values that the grid makes lie.
        depth: how many loops are around.
    """

    def __init__(self, function: ir.Operation, side: int) -> None:
        self.function, self.machine = function, machine_of(function)
        self.side = side or side_of(function, self.machine)
        self.axes: dict[ir.Value, Axes] = {}
        self.fixed, self.depth = Fixed(), 0
        self.images = Images(function, self.side, self.machine, self.fixed, self._beside)
        operations = in_order(function.regions[0].blocks[0])
        self.last = len(operations)
        self.order = {value: at for at, one in enumerate(operations) for value in one.results}
        self.last_reads: dict[ir.Value, int] = {}
        self.sizes: dict[tuple[ir.Value, Axes], int] = {}

    def plan(self) -> None:
        self.function.attributes[SIDE] = number(self.side)
        self._visit(self.function.regions[0].blocks[0])
        for op in walk(self.function, ELEMENT):
            loops = enclosing(op)
            if len(loops) > 1 and not any(self.fixed.of(one) or ALGORITHM in one.attributes for one in loops):
                why = self._single_elements(loops[-1])[1]
                told = (
                    why if isinstance(why, str) and why.startswith("it writes single") else "it writes single elements"
                )
                remark(op, f"interpreted outside of the grid: {told}")

    def _visit(self, block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            try:
                if OUTSIDE in op.attributes:
                    continue
                if op.name == "linalg.generic":
                    self._plan(op, "")
                elif op.name in SLICES and (self.depth or not has_known_offsets(op)):
                    self._slice(op)
                elif op.name in (*RESHAPES, *SLICES):
                    self._follow(op)
                else:
                    self._enter(op)
            except TilewrightError as error:
                raise located(error, op) from error

    def _runs_on_cores(self, op: ir.Operation) -> bool:
        """Whether cores run a loop that writes single elements; plans that."""
        if op.name not in CONTROL or self.depth or self.fixed.of(op):
            return False
        loops, found = self._single_elements(op)
        if isinstance(found, str):
            return False
        op.attributes[ALGORITHM] = ir.StringAttr.get(ELEMENTS)
        op.attributes[LOOPS] = texts(loops)
        on = "its own elements" if any(loops) else "whole tensors"
        remark(op, f"each core runs the loop, which writes single elements, on {on}")
        self._tell_doubles(op)
        shared = Shared(op)
        for value in op.results:
            if isinstance(value.type, ir.RankedTensorType):
                self.axes[value] = shared.axes(value, loops)
        return True

    def _single_elements(self, op: ir.Operation) -> tuple[list[str], Around | str]:
        """The axis along each index of a loop, and what it reads, or why cores cannot run it."""
        shared = Shared(op)
        loops = shared.choose(self.axes, self.side)
        return loops, single_elements(op, self._room(op), partial(shared.axes, loops=loops), self.side)

    def _enter(self, op: ir.Operation) -> None:
        """Loops and branches."""
        if self._runs_on_cores(op):
            return
        found = plan_axes(op)
        if found is None and STREAMS in op.attributes:
            found = [None] * len(carried(op))
        if found is None:
            for inner in walk(op, "linalg.generic"):
                self._plan(inner, "it stands in a loop of the model that carries nothing on the grid")
            return
        made = self._inside(op, found)
        if made != found:  # as they are made, they need not be moved
            again = self._inside(op, made)
            if sum(map(operator.ne, again, made)) > sum(map(operator.ne, made, found)):
                self._inside(op, found)

    def _inside(self, op: ir.Operation, axes: list[Axes | None]) -> list[Axes | None]:
        """Plan what is in a loop whose carried values lie so. Returns how the next ones are made."""
        groups = carried(op)
        write_axes(op, axes)
        for group, lies in zip(groups, axes, strict=True):
            if lies is not None:
                self.axes.update(dict.fromkeys(group.values, lies))
        self.depth += keeps(op)
        for region in op.regions:
            for block in region.blocks:
                self._visit(block)
        self.depth -= keeps(op)
        return [self._next(group, lies) for group, lies in zip(groups, axes, strict=True)]

    def _next(self, group: Carried, lies: Axes | None) -> Axes | None:
        """How the last op that feeds what is carried makes it, if that does not split what `lies` may not."""
        user, number = group.feeds[-1]
        made = self.axes.get(user.operands[number])
        if lies is None or made is None or picked_of(group) & {dim for dim, axis in enumerate(made) if axis}:
            return lies
        return made

    def _follow(self, op: ir.Operation) -> None:
        """How the result of a reshape lies, or of a slice outside of loops."""
        made = next((value for value in list(op.operands)[:2] if value in self.axes), None)
        if made is None:
            return
        if op.name in RESHAPES:
            axes = reshaped_axes(op, self.axes[made], self.side)
        else:
            axes = sliced_axes(op, self.axes[made], made == op.operands[0])
        if axes is not None:
            self.axes[op.results[0]] = axes[0 if op.name == SLICES[0] else 1]

    def _slice(self, op: ir.Operation) -> None:
        """What is cut from a tensor lies as that does."""
        if op.name == "tensor.insert_slice":
            if op.operands[1] in self.axes:
                self.axes[op.results[0]] = self.axes[op.operands[1]]
            return
        axes = self.axes.get(op.operands[0])
        if axes is None and self.depth:
            axes = default_axes(ir.RankedTensorType(op.operands[0].type).shape, picked(op))
        kept = slice_dims(op)
        if axes is not None:
            self.axes[op.results[0]] = tuple(axes[dim] for dim in kept)

    def _plan(self, op: ir.Operation, why: str) -> None:
        found = why or computation(op)
        if not isinstance(found, str | Product):
            found = left_outside(op, found, self.side, self._room) or found
        if self.fixed.of(op):
            op.attributes[OUTSIDE] = ir.StringAttr.get("it follows from weights alone")
            return
        if not why and self._windows(op, found):
            return
        if isinstance(found, str):
            self._leave(op, found)
            return
        if isinstance(found, Product):
            loops = self._product(op, found)
        else:
            loops = self._elements(op)
        self._tell_doubles(op)
        op.attributes[LOOPS] = texts(loops)
        self.axes[op.results[0]] = tuple("" if loop is None else loops[loop] for loop in dims(maps(op)[-1]))

    def _leave(self, op: ir.Operation, why: str) -> None:
        """Leave an op outside; of a gather from a table outside only what it picks passes the edge."""
        picked = gather(op)
        is_large = picked is not None and why == table_outgrows(op, self.side, self._room)
        if picked is not None and is_large and picked.table.value not in self.axes:
            remark(op, f"{FETCHED}: {why}")
            why = FETCHED
        else:
            remark(op, f"interpreted outside of the grid: {why}")
        op.attributes[OUTSIDE] = ir.StringAttr.get(why)

    def _tell_doubles(self, op: ir.Operation) -> None:
        """No slow path goes unsaid."""
        if self.machine.double_cycles and has_doubles(op):
            remark(
                op,
                f"cores of {self.machine.name} have no unit for f64: each operation counts as "
                f"{self.machine.double_cycles:g} cycles of software; f32 has one",
            )

    def _windows(self, op: ir.Operation, other: Computation | str) -> bool:
        """Plan what reads windows, unless it is faster as another computation; whether it was."""
        found = self.images.reads(op)
        if isinstance(found, str):
            return False
        choice = self.images.choose(op, found, self.axes)
        if isinstance(choice, str):
            remark(op, choice)
            return False
        if isinstance(other, Product):
            row_split = self._axis_of_summed(op, other) is None
            made = self._choose(op, other, row_split)
            count = prod(found.sizes[loop] for loop in other.batch)
            if made.cycles[made.algorithm] * count <= choice.cycles or self._weight(op, other, made) is not None:
                return False
        remark(op, f"{choice} simulated")
        op.attributes[ALGORITHM] = ir.StringAttr.get(choice.way)
        if choice.parts.count > 1:
            op.attributes[PARTS] = choice.parts.attribute()
        op.attributes[LOOPS] = texts(list(choice.loops))
        self.axes[op.results[0]] = tuple(choice.loops[loop] for loop in found.out)
        mark_borders(found)
        return True

    def _elements(self, op: ir.Operation) -> list[str]:
        """What cores compute of elements, and of what they pick."""
        found = gather(op)
        if found is None or not is_by_rows(op, self.side, self._room(op)):
            loops = spread(op, self.axes, self.images.wanted)
            return fitting(op, loops, self.side, self.machine.sram_bytes // 4, self._room)
        op.attributes[ALGORITHM] = ir.StringAttr.get(ROWS)
        return rows_loops(op, found)

    def _product(self, op: ir.Operation, found: Product) -> list[str]:
        loops = [""] * maps(op)[0].n_dims
        axis = self._axis_of_summed(op, found)
        choice = self._choose(op, found, axis is None)
        held = self._weight(op, found, choice)
        if held is not None:
            return self._condensed(op, found, *held)
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

    def _weight(self, op: ir.Operation, found: Product, made: Choice) -> tuple[Weight, Held] | None:
        """What the cores hold condensed, and how they multiply by it; None where they hold elements."""
        weight = weight_of(op, found, self.fixed)
        if weight is None:
            return None
        ways = self._ways(op, found, weight)
        kind = ir.RankedTensorType(op.operands[weight.number].type)
        rows, columns = (-(-size // self.side) for size in kind.shape)
        count = rows * columns * _dtype(op.operands[weight.number]).itemsize
        why = reason_against(weight, ways, made.cycles[made.algorithm], count, self.machine)
        remark(op, f"the weight is held dense: {why}" if why else told(weight, ways))
        return None if why else (weight, ways[0])

    def _ways(self, op: ir.Operation, found: Product, weight: Weight) -> list[Held]:
        """To hold a weight condensed, the fastest first, with what brings operands and results where they belong."""
        asked = (op, found, weight, self.side, self.machine, self._room(op))
        ways = [way for way in (standing(*asked), round_about(*asked)) if way is not None]
        value, along = op.operands[1 - weight.number], self._along(op, found, 1 - weight.number)
        is_along = value in self.axes and along is not None
        more = {STANDING: self.depth > 0 or along is None, ROUND: not self.depth and is_along}
        moved = self._moved(op, weight)
        whole = [replace(way, cycles=way.cycles + moved * more[way.algorithm]) for way in ways]
        return sorted(whole, key=lambda way: way.cycles)

    def _moved(self, op: ir.Operation, weight: Weight) -> float:
        """Cycles for bringing an operand, or a result in a loop, to the other axis."""
        if self.depth:
            sizes = loop_sizes(op)
            rows = 1 if weight.rows is None else sizes[weight.rows]
            return move_cycles(rows, sizes[weight.columns], self.side, self.machine)
        count = prod(ir.RankedTensorType(op.results[0].type).shape) * _dtype(op.results[0]).itemsize
        return 2 * count / (self.machine.mesh.offchip_bytes_per_cycle or 1.0)

    def _condensed(self, op: ir.Operation, found: Product, weight: Weight, how: Held) -> list[str]:
        op.attributes[ALGORITHM] = ir.StringAttr.get(how.algorithm)
        loops = [""] * maps(op)[0].n_dims
        if how.algorithm == ROUND:
            assert weight.rows is not None
            loops[weight.rows], loops[weight.columns] = "y", "x"
            return loops
        loops[found.summed] = self._along(op, found, 1 - weight.number) or "y"
        loops[weight.columns] = "x" if loops[found.summed] == "y" else "y"
        return loops

    def _axis_of_summed(self, op: ir.Operation, found: Product) -> str | None:
        """The axis along which the left operand's summed dimension lies, if no other one of its dimensions is split."""
        if op.operands[found.left] not in self.axes:
            return "y" if found.rows is None or loop_sizes(op)[found.rows] == 1 else None
        return self._along(op, found, found.left)

    def _along(self, op: ir.Operation, found: Product, number: int) -> str | None:
        """The axis along which an operand's summed dimension alone lies; None: it does not."""
        value = op.operands[number]
        if value not in self.axes:
            return "y"
        lies = dict(zip(dims(maps(op)[number]), self.axes[value], strict=True))
        axis = lies.pop(found.summed)
        return axis.partition(" ")[0] if axis and not any(lies.values()) else None

    def _choose(self, op: ir.Operation, found: Product, row_split: bool) -> Choice:
        sizes = loop_sizes(op)
        made = choose(
            sizes_of(op, found, sizes, self.fixed),
            self.side,
            self.machine,
            row_split,
            self._beside(op),
            self.depth > 0,
        )
        remark(op, f"{_told([sizes[loop] for loop in found.batch])}{made}")
        return made

    def _room(self, op: ir.Operation) -> int:
        """Bytes of a core that are free for what an op reads and makes."""
        return self.machine.sram_bytes - self.machine.mesh.code_bytes - self._beside(op)

    def _beside(self, op: ir.Operation) -> int:
        """Bytes that a core holds of values which are made before an op, and read behind it."""
        here = self._at(op)
        held = [value for value in self.axes if self._read_last(value) > here]
        return sum(self._bytes(value, self.axes[value]) for value in held)

    def _read_last(self, value: ir.Value) -> int:
        """Where a value is read last; found once, as planning asks for each op anew."""
        if value not in self.last_reads:
            self.last_reads[value] = max((self._at(use.owner.operation) for use in value.uses), default=0)
        return self.last_reads[value]

    def _bytes(self, value: ir.Value, axes: Axes) -> int:
        """Bytes of a core's block; found once for each way to lie."""
        key = (value, axes)
        if key not in self.sizes:
            shape = ir.RankedTensorType(value.type).shape
            parts = [-(-size // (self.side if axis else 1)) for size, axis in zip(shape, axes, strict=True)]
            self.sizes[key] = prod(parts) * _dtype(value).itemsize
        return self.sizes[key]

    def _at(self, op: ir.Operation) -> int:
        """Where an op stands; behind all others what ends a block. By results: an op's hash changes with decisions."""
        return max((self.order.get(value, 0) for value in op.results), default=self.last)


def _told(batch: Sequence[int]) -> str:
    return f"{' x '.join(map(str, batch))} products, of each: " if batch else ""


def _dtype(value: ir.Value) -> np.dtype:
    return of_mlir(str(ir.RankedTensorType(value.type).element_type))


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions."""
    for function in walk(op, "func.func"):
        open_products(function)
        open_numbers(function)
        open_reads(function)
        _Planner(function, options.side).plan()
