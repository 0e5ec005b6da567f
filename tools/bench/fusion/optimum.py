# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best grouping of a small graph by brute force: Welder's two-step schedule (OSDI 2023, section 4.2) without greed.

A grouping is a partition of the operations into kernels. A kernel is admissible where tiles of its last operations
determine the tiles of all others without computing anything twice, the task's buffers fit half of the L2 cache,
and there are tasks enough to share. Its cost is the bytes that its tasks read from and write to what is outside, by the
analyses of the plan (traffic.py), plus what a launch costs in bytes. All partitions are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from tilewright.ir.structure import LinalgOp, captured
from tilewright.mlir import ir
from tilewright.plan.graph.merging import merge_maps, merge_products
from tilewright.plan.graph.plan_fusion import Graph
from tilewright.plan.model.traffic import Levels, footprint, propagate, region, tensor_bytes

Group = frozenset[LinalgOp]

#: Bytes that move in the time of a launch: 200 ns at the rate of the L3 cache of one core.
LAUNCH = 5600
#: Tasks that a kernel must have, unless its operations are small.
_TASKS, _SMALL = 8, 1 << 14
#: Rows of a task along the innermost loop that tasks are cut by; others are cut into single iterations.
_ROWS = (1, 16, 64)


@dataclass
class Problem:
    """The operations of a block, and what groups of them cost."""

    ops: list[LinalgOp]
    levels: Levels

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self._costs: dict[Group, int | None] = {}

    @cached_property
    def needs(self) -> dict[LinalgOp, set[LinalgOp]]:
        """The operations whose results each one reads, directly or through views."""
        return {op: set().union(*(self._sources(v) for v in [*op.op.operands, *op.tables])) for op in self.ops}

    @cached_property
    def _makers(self) -> dict[ir.Value, LinalgOp]:
        return {op.result: op for op in self.ops}

    def _sources(self, value: ir.Value) -> set[LinalgOp]:
        if (maker := self._makers.get(value)) is not None:
            return {maker}
        if isinstance(value, ir.BlockArgument):
            return set()
        return set().union(*(self._sources(v) for v in [*value.owner.operands, *captured(value.owner)]))

    # --- ours ------------------------------------------------------------------------------------------------------

    def planned(self) -> list[Group]:
        """The plan's grouping."""
        graph = Graph(self.ops, 0, self.levels)
        graph.build()
        merge_maps(graph)
        merge_products(graph)
        return [frozenset(op for nest in task.nests for op in nest.ops) for task in graph.tasks if task.nests]

    # --- cost ------------------------------------------------------------------------------------------------------

    def cost(self, groups: Sequence[Group]) -> int:
        """Bytes of all kernels and launches; a kernel that no tile makes admissible moves each tensor once."""
        costs = [self.group_cost(g) for g in groups]
        return sum(c if c is not None else self._once(g) + LAUNCH for c, g in zip(costs, groups, strict=True))

    def group_cost(self, group: Group) -> int | None:
        """Bytes of one kernel with the best tile; None where no tile makes it admissible."""
        if group not in self._costs:
            self._costs[group] = self._best_tile(group)
        return self._costs[group]

    def _inside(self, group: Group) -> list[LinalgOp]:
        return [op for op in self.ops if op in group]

    def _written(self, group: Group) -> list[ir.Value]:
        members = {op.result for op in group}
        return [op.result for op in self._inside(group) if not op.readers <= members]

    def _once(self, group: Group) -> int:
        made = {op.result for op in group}
        read = {a.value for op in group for a in op.inputs} - made
        return sum(tensor_bytes(v) for v in [*read, *self._written(group)])

    def _best_tile(self, group: Group) -> int | None:
        ops = self._inside(group)
        if any(source in group and not self._meets(op, source) for op in ops for source in self.needs[op]):
            return None  # through a view
        if not self._hangs_together(group):
            return None
        sinks = [op for op in ops if not any(op.result == a.value for o in ops for a in o.inputs)]
        options = [list(self._tiles(sink)) for sink in sinks]
        found = [self._bytes(ops, sinks, tiles) for tiles in product(*options)]
        read = min((b for b in found if b is not None), default=None)
        if read is None:
            return self._once(group) + LAUNCH if len(group) == 1 else None
        return read + sum(tensor_bytes(v) for v in self._written(group)) + LAUNCH

    def _hangs_together(self, group: Group) -> bool:
        """Whether edges connect all operations: what only shares an input is no tile graph."""
        reached, left = set(), [next(iter(group))]
        while left:
            op = left.pop()
            reached.add(op)
            near = {o for o in group if o in self.needs[op] or op in self.needs[o]}
            left += near - reached
        return reached == group

    @staticmethod
    def _meets(op: LinalgOp, source: LinalgOp) -> bool:
        return any(a.value == source.result for a in op.inputs)

    @staticmethod
    def _tiles(op: LinalgOp) -> Iterator[dict[int, int]]:
        """Subsets of the parallel loops that tasks are cut by, the last of them into blocks of rows."""
        loops = op.parallel
        for chosen in product((False, True), repeat=len(loops)):
            cut = [d for d, c in zip(loops, chosen, strict=True) if c]
            for rows in _ROWS if cut else (0,):
                yield {d: min(rows if d == cut[-1] else 1, op.extents[d]) for d in cut}

    def _bytes(self, ops: list[LinalgOp], sinks: list[LinalgOp], tiles: Sequence[dict[int, int]]) -> int | None:
        """Bytes that tasks read, or None where the tiles do not agree, do not fit or leave too few tasks."""
        counts = {prod(-(-s.extents[d] // t) for d, t in tile.items()) for s, tile in zip(sinks, tiles, strict=True)}
        small = all(op.points <= _SMALL for op in ops)
        if len(counts) > 1 or (min(counts) < _TASKS and not small):
            return None
        (count,) = counts
        boxes: dict[LinalgOp, tuple[int, ...]] = {}
        held = 0
        for sink, tile in zip(sinks, tiles, strict=True):
            part = [op for op in ops if op is sink or (op.position < sink.position and self._feeds(op, sink, ops))]
            for op, box in propagate(part, tile).items():
                if boxes.setdefault(op, box) != box:
                    return None
            held += footprint(part, tile)
        if 2 * held > self.levels.l2_bytes or any(prod(box) * count > 1.1 * op.points for op, box in boxes.items()):
            return None
        return self._read(boxes, count)

    def _feeds(self, op: LinalgOp, sink: LinalgOp, ops: list[LinalgOp]) -> bool:
        return op in self.needs[sink] or any(op in self.needs[o] and self._feeds(o, sink, ops) for o in ops)

    @staticmethod
    def _read(boxes: dict[LinalgOp, tuple[int, ...]], count: int) -> int:
        made = {op.result for op in boxes}
        found: dict[ir.Value, int] = {}
        for op, box in boxes.items():
            for access in op.inputs:
                if access.value in made:
                    continue
                whole = tensor_bytes(access.value)
                size = prod(region(access, box)) * whole // max(prod(ir.RankedTensorType(access.value.type).shape), 1)
                found[access.value] = max(found.get(access.value, 0), size * count)
        return sum(found.values())

    # --- the best --------------------------------------------------------------------------------------------------

    def best(self) -> list[Group]:
        """The grouping of least cost, by trying all partitions whose groups hang together."""
        found = min(self._partitions(0, []), key=lambda groups: (self.cost(groups), len(groups)))
        return found

    def _partitions(self, number: int, groups: list[Group]) -> Iterator[list[Group]]:
        if number == len(self.ops):
            if all(len(g) == 1 or self.group_cost(g) is not None for g in groups) and self.is_acyclic(groups):
                yield groups
            return
        op = self.ops[number]
        for at, group in enumerate(groups):
            yield from self._partitions(number + 1, [*groups[:at], group | {op}, *groups[at + 1 :]])
        yield from self._partitions(number + 1, [*groups, frozenset({op})])

    def is_acyclic(self, groups: Sequence[Group]) -> bool:
        """Whether the kernels can run one after the other."""
        of = {op: number for number, group in enumerate(groups) for op in group}
        needs = [{of[s] for op in g for s in self.needs[op]} - {n} for n, g in enumerate(groups)]
        left = set(range(len(groups)))
        while left:
            ready = {n for n in left if not needs[n] & left}
            if not ready:
                return False
            left -= ready
        return True
