# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides which operations share a loop nest and which nests share a task.

A *nest* (attribute `tile.nest`) becomes a register group: one loop nest in which values pass in registers. A *task*
(`tile.task`) becomes an outermost group: one kernel, in which nests that run over the same rows follow each other and
pass values through a buffer of the task. These are the levels at which an edge of Welder's tile graph (Shi et al., OSDI
2023, section 4) may be connected: registers, L2, memory. Each operation meets its producers at the innermost level that
its maps allow, unless (connect.py) the traffic says that memory is better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, captured, linalg_ops
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, option, register
from tilewright.plan.attention.online_reduction import is_maximum
from tilewright.plan.graph.connect import task_block
from tilewright.plan.graph.merging import merge_gathers, merge_maps, merge_products
from tilewright.plan.graph.nests import MOST_OPS, SMALL, Nest, Task, read_bases, written_base
from tilewright.plan.model.tiles import chosen_loops
from tilewright.plan.model.traffic import Levels, tensor_bytes

#: Points of a task for each element of the largest tensor that it reads, above which few CTAs take too long.
_COMPARES = 32


class Graph:
    """Builds nests and tasks for one block, greedily in program order."""

    def __init__(self, ops: list[LinalgOp], first_number: int, levels: Levels) -> None:
        self.ops = ops
        self.levels = levels
        self.tasks: list[Task] = []
        self.nest_of: dict[LinalgOp, Nest] = {}
        self.maker: dict[ir.Value, LinalgOp] = {op.result: op for op in ops}
        self.next_number = first_number
        self._sources: dict[ir.Value, int] = {}
        self.block = ops[0].op.operation.block if ops else None
        self.multiplied = self._find_multiplied()

    def build(self) -> None:
        """Put every operation into a nest."""
        for op in self.ops:
            nest = None if self._is_for_reader(op) else self._join_nest(op) or self._join_task(op)
            nest = nest or self._new_task(op)
            self.nest_of[op] = nest
            self._grow_needs(nest.task, op)
            nest.task.reads |= read_bases(op)
            nest.task.writes |= written_base(op)

    def _is_for_reader(self, op: LinalgOp) -> bool:
        """Whether its only reader had better do on a GPU what an operation does: widen what memory holds anyway.

        Dequantized bytes are an example that others multiply as bytes. What a softmax makes is in no memory: its sum
        and its product read it where it is.
        """
        made = [(a, maker) for a in op.inputs if (maker := self.maker.get(a.value)) is not None]
        if not self.levels.chains or op.kind is not Kind.ELEMENTWISE or len(op.readers) != 1 or len(made) != 1:
            return False
        access, maker = made[0]
        held = len(maker.readers) > 1 and None not in op.readers and access.pure
        held = held and not any(is_maximum(member) for member in self.nest_of[maker].task.ops)
        return held and tensor_bytes(op.result) >= 2 * tensor_bytes(access.value) and op.points > SMALL

    def _find_multiplied(self) -> set[LinalgOp]:
        """Products, and what they read of elementwise operations, of what these read, and so on."""
        found = {op for op in self.ops if op.kind is Kind.CONTRACTION}
        waiting = [operand for op in found for operand in op.op.operands]
        while waiting:
            value = waiting.pop()
            maker = self.maker.get(value)
            if maker is None and not isinstance(value, ir.BlockArgument) and value.owner.name.startswith("tensor."):
                waiting += value.owner.operands
            elif maker is not None and maker not in found:
                found.add(maker)
                waiting += maker.op.operands if maker.kind is Kind.ELEMENTWISE else ()
        return found

    # --- dependences -------------------------------------------------------------------------------------------

    def sources(self, value: ir.Value) -> int:
        """Bit set of the tasks that make `value`, directly or through views, slices and loops."""
        if (maker := self.maker.get(value)) is not None:
            return 1 << self.nest_of[maker].task.number if maker in self.nest_of else 0
        if isinstance(value, ir.BlockArgument) or value.owner.operation.block != self.block:
            return 0  # made before this block began
        owner = value.owner
        key = owner.results[0]  # all results of a loop come from one body, which may be long
        known = self._sources.get(key)
        if known is None:
            known = 0
            for operand in [*owner.operands, *captured(owner)]:
                known |= self.sources(operand)
            self._sources[key] = known
        return known

    def _read_tasks(self, op: LinalgOp) -> list[Task]:
        bits = 0
        for operand in [*op.op.operands, *op.tables]:
            bits |= self.sources(operand)
        found = []
        while bits:
            lowest = bits & -bits
            found.append(self.tasks[lowest.bit_length() - 1])
            bits ^= lowest
        return found

    def _grow_needs(self, task: Task, op: LinalgOp) -> None:
        """Keeps `needs` transitively closed now that `task` holds `op`."""
        new = task.needs
        for other in self._read_tasks(op):
            new |= other.needs
        if new == task.needs:
            return
        bit = 1 << task.number
        for other in self.tasks:
            if other.needs & bit:
                other.needs |= new

    def _may_join(self, op: LinalgOp, task: Task) -> bool:
        """Whether `op` may run when `task` does: no assertion stands between, no cycle closes, the task has room."""
        apart = op.epoch != task.nests[0].ops[0].epoch or task.size >= MOST_OPS
        apart |= _is_apart(op, task)
        return not apart and not self._closes_cycle(op, task)

    def _closes_cycle(self, op: LinalgOp, task: Task) -> bool:
        """Would `op` in `task` read a task that itself needs `task`, or `task` through a view?"""
        bit = 1 << task.number
        if written_base(op) & task.reads or read_bases(op) & task.writes:
            return True  # tasks run in any order: none may write into what another one reads
        if any(other is not task and other.needs & bit for other in self._read_tasks(op)):
            return True
        return any(self.sources(v) & bit for v in op.op.operands if v not in self.maker) or any(
            self.sources(v) & bit for v in op.tables
        )

    # --- the same loop nest ------------------------------------------------------------------------------------

    def _join_nest(self, op: LinalgOp) -> Nest | None:
        if op.gathers_lanes:
            return None  # one element at a time: what stands around it keeps its vectors
        candidates = {self.nest_of[m] for a in op.inputs if (m := self.maker.get(a.value)) is not None}
        for nest in sorted(candidates, key=lambda n: -n.number):
            if nest is not nest.task.nests[-1] or not self._may_join(op, nest.task):
                continue
            if any(member.gathers_lanes for member in nest.ops):
                continue
            loops = self._bind(op, nest)
            if loops is None:
                continue
            rows = [d for d, loop in loops.items() if loop in nest.rows and d not in op.reductions]
            if op.reductions and self._starves(op, nest.task, rows):
                continue
            nest.ops.append(op)
            nest.loops[op] = loops
            if op.reductions:
                self._reroot(nest, op)
            return nest
        return None

    def _starves(self, op: LinalgOp, task: Task, rows: Iterable[int]) -> bool:
        """Whether an operation leaves a task of a GPU too few rows in common for all that it compares."""
        few = self.levels.chains and prod(op.extents[d] for d in rows) < self.levels.tasks
        return few and _compares_all(task)

    def _bind(self, op: LinalgOp, nest: Nest) -> dict[int, int] | None:
        """Loops of `op` as loops of `nest`, if every value of the nest that it reads is read at the nest's points."""
        if op.kind is Kind.CONTRACTION or (op.reductions and nest.reduces):
            return None
        loops: dict[int, int] = {}
        earlier: list[tuple[Access, LinalgOp]] = []
        for access in op.inputs:
            maker = self.maker.get(access.value)
            if maker is None or self.nest_of[maker].task is not nest.task:
                continue
            if not access.pure:
                return None
            if self.nest_of[maker] is not nest:
                earlier.append((access, maker))
            elif not self._match(access, maker, nest, loops):
                return None
        wanted = set(range(op.rank))
        values = set(loops.values())
        complete = set(loops) == wanted and len(values) == len(loops)
        domain = set(nest.root.parallel) if nest.root else set()
        if not complete or not (nest.reduces and values <= domain or values == domain):
            return None
        return loops if all(self._same_rows(a, m, nest, loops) for a, m in earlier) else None

    def _same_rows(self, access: Access, maker: LinalgOp, nest: Nest, loops: dict[int, int]) -> bool:
        """Whether what an earlier nest of the task made is read at the rows at which a later one stands."""
        made_in = self.nest_of[maker]
        for made, read in zip(maker.output.dims, access.dims, strict=True):
            if made is None:
                return False
            row = made_in.rows.get(made_in.loops[maker][made])
            if row is not None and (read is None or nest.rows.get(loops[read]) != row):
                return False
        return True

    def _match(self, access: Access, maker: LinalgOp, nest: Nest, loops: dict[int, int]) -> bool:
        for made, read in zip(maker.output.dims, access.dims, strict=True):
            if made is None or read is None:
                return False
            loop = nest.loops[maker][made]
            if loops.setdefault(read, loop) != loop:
                return False
        return True

    def _reroot(self, nest: Nest, root: LinalgOp) -> None:
        """The reduction becomes the root: all loops are renamed to its own."""
        rename = {loop: own for own, loop in nest.loops[root].items()}
        for op, loops in nest.loops.items():
            nest.loops[op] = {own: rename[loop] for own, loop in loops.items()}
        nest.root = root
        rows = {rename[d]: row for d, row in nest.rows.items() if d in rename and rename[d] in root.parallel}
        nest.rows = rows
        self._drop_rows(nest.task, set(rows.values()))

    # --- the same task -----------------------------------------------------------------------------------------

    def _join_task(self, op: LinalgOp) -> Nest | None:
        candidates = {self.nest_of[m].task for a in op.inputs if (m := self.maker.get(a.value)) is not None}
        for task in sorted(candidates, key=lambda t: -t.number):
            if any(n.root is None for n in task.nests):
                continue
            if not any(n.reduces for n in task.nests) and not _expands(op, task):
                continue
            if not self._may_join(op, task):
                continue
            rows = self._common_rows(op, task)
            if rows is None or self._starves(op, task, rows) or not self._pays(op, task, rows):
                continue
            nest = self._new_nest(op, task)
            nest.rows = rows
            self._drop_rows(task, set(rows.values()))
            return nest
        return None

    def _pays(self, op: LinalgOp, task: Task, rows: dict[int, int]) -> bool:
        """Whether one task for both is faster, or as fast, with tasks enough to share."""
        multiplies = op.kind is Kind.CONTRACTION or task.multiplies
        if not rows and (multiplies or any(o.points > SMALL or o.dynamic for o in [*task.ops, op])):
            return False  # one task for all
        if not multiplies:
            return self._keeps_parallelism(op, rows)
        block = task_block(task, op, rows, self.levels, op in self.multiplied)
        if block:
            task.block = block
        return bool(block)

    def _common_rows(self, op: LinalgOp, task: Task) -> dict[int, int] | None:
        """Loops of `op` that run over the rows of the task, as all that it reads of the task says."""
        common: dict[int, int] | None = None
        for access in op.inputs:
            maker = self.maker.get(access.value)
            if maker is None or self.nest_of[maker].task is not task:
                continue
            if not access.pure:
                return None
            nest = self.nest_of[maker]
            rows: dict[int, int] = {}
            for made, read in zip(maker.output.dims, access.dims, strict=True):
                if made is None:
                    return None
                row = nest.rows.get(nest.loops[maker][made])
                if row is not None and read is not None and read not in op.reductions:
                    rows[read] = row
            common = rows if common is None else {d: r for d, r in common.items() if rows.get(d) == r}
        return common

    def _keeps_parallelism(self, op: LinalgOp, rows: dict[int, int]) -> bool:
        """A task per row must leave rows enough to share, unless the whole is small."""
        count = 1
        for d in rows:
            count *= op.extents[d]
        return count >= 16 or op.points <= SMALL

    def _drop_rows(self, task: Task, keep: set[int]) -> None:
        for nest in task.nests:
            nest.rows = {d: r for d, r in nest.rows.items() if r in keep}

    # --- new ones ----------------------------------------------------------------------------------------------

    def _new_task(self, op: LinalgOp) -> Nest:
        task = Task(len(self.tasks), needs=1 << len(self.tasks))
        self.tasks.append(task)
        nest = self._new_nest(op, task)
        chosen = chosen_loops(op)  # cut along these, tasks would repeat all that is computed
        nest.rows = {d: d for d in op.parallel if d not in chosen}
        return nest

    def _new_nest(self, op: LinalgOp, task: Task) -> Nest:
        nest = Nest(self.next_number, task, [op], {op: {d: d for d in range(op.rank)}}, op)
        self.next_number += 1
        task.nests.append(nest)
        return nest


def _compares_all(task: Task) -> bool:
    """Whether a task computes far more than it reads: its own loops are worth many CTAs."""
    made = [op.result for op in task.ops]
    read = [prod(op.extents[d] for d in a.loops) for op in task.ops for a in op.inputs if a.value not in made]
    points = max(op.points for op in task.ops)
    return points > SMALL and points > _COMPARES * max(read, default=points)


def _is_apart(op: LinalgOp, task: Task) -> bool:
    """Whether `tile.apart` keeps an operation out of a task: it says that none joins, or which ones share a task."""
    groups = {str(member.op.attributes[decisions.APART]) for member in task.ops if decisions.APART.on(member.op)}
    own = str(op.op.attributes[decisions.APART]) if decisions.APART.on(op.op) else None
    if own is None or own == "unit":
        return bool(groups)
    return groups != {own}


def _expands(op: LinalgOp, task: Task) -> bool:
    """Whether a product reads what elementwise operations make of far smaller tensors: memory need not hold it."""
    made = {member.result for member in task.ops}
    if op.kind is not Kind.CONTRACTION or not any(chosen_loops(member) for member in task.ops):
        return False
    return all(tensor_bytes(a.value) > 2 * _read_bytes(task) for a in op.inputs if a.value in made)


def _read_bytes(task: Task) -> int:
    """Bytes of the tensors that a task reads."""
    made = {member.result for member in task.ops}
    return sum(tensor_bytes(v) for v in {a.value for member in task.ops for a in member.inputs} - made)


@register
@dataclass(frozen=True)
class PlanFusion(Pass):
    """Decide which operations share a loop nest (`tile.nest`) and a kernel (`tile.task`).

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %e = tensor.empty() : tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>)
        attrs = {tile.nest = 0 : i64, tile.rows = array<i64: 0>, tile.task = 0 : i64} {
    ```
    The root of a nest has `tile.rows`: the loops that all nests of the task share. The last one of a task with a
    contraction and other nests has `tile.block`: how many iterations of the innermost row a task takes. Where the nest
    gathers by computed indices, it has `tile.gathers`: the loops along which these differ. What has `tile.apart` shares
    its task with no reader: its tasks are to run at once. Where that is a number, only what has the same one shares it.
    """

    name: ClassVar[str] = "tile-plan-fusion"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    task_bytes: int = device_option(1048576, facts.task_bytes, "bytes of a task's tiles: L2, a GPU's shared memory")
    last_bytes: int = device_option(33554432, facts.last_bytes, "bytes of the largest cache")
    task_rate: float = device_option(246.0, facts.task_rate, "bytes per nanosecond of a unit, where a task's tiles are")
    last_rate: float = device_option(120.0, facts.last_rate, "the same for the largest cache")
    memory_rate: float = device_option(41.0, facts.memory_rate, "the same for memory")
    blocks: tuple[int, ...] = option((64, 32, 16), "rows that a task with products may take, the best first")
    steps: int = device_option(256, facts.block_steps, "steps of a block, where reductions of a task run in one loop")
    chains: bool = device_option(
        False, facts.is_gpu, "a softmax that can run in one loop with products does, whatever tasks read again"
    )
    large: int = device_option(
        0,
        facts.large_product,
        "multiply-adds from which on products stay tasks of their own; 0: no number is too large",
    )
    tasks: int = device_option(
        8, facts.even_tasks, "tasks that share the machine evenly: products are not fused into fewer"
    )

    def run(self, op: ir.Operation) -> None:
        """Group the operations of each block."""
        weights = Weights()
        levels = Levels(
            self.task_bytes,
            self.last_bytes,
            self.task_rate,
            self.last_rate,
            self.memory_rate,
            tuple(self.blocks),
            self.steps,
            self.chains,
            self.tasks,
        )
        first_task = first_nest = 0
        for block in blocks(op):
            graph = Graph(linalg_ops(block, weights), first_nest, levels)
            graph.build()
            merge_maps(graph)
            merge_products(graph, self.large)
            if not self.chains:  # a GPU's products fetch what they read in tiles, past registers
                merge_gathers(graph)
            for task in graph.tasks:
                for nest in task.nests:
                    for member in nest.ops:
                        decisions.TASK.set(member.op, first_task + task.number)
                        decisions.NEST.set(member.op, nest.number)
                        if member is nest.root:
                            rows = sorted(nest.rows, key=lambda d: nest.rows[d])
                            decisions.ROWS.set(member.op, rows)
                            if task.block and nest is task.nests[-1]:
                                decisions.BLOCK.set(member.op, task.block)
                            if gathers := sorted(nest.gathers):
                                decisions.GATHERS.set(member.op, gathers)
            first_task += len(graph.tasks)
            first_nest = graph.next_number
