# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions that meet at the same points of their results become nests of one task.

Greedy fusion welds an operation to one producer; other products that it reads would stay kernels of their own, whose
results go through memory: the gates of a recurrent cell, the halves of a gated unit. Such a product can run in the
reader's task, on the part of its result that the task needs: each part is needed by one task only, so nothing is
computed twice (Welder, section 3.1: tile propagation along several inputs of a node).
"""

from __future__ import annotations

from math import ceil, prod
from typing import TYPE_CHECKING

from tilewright.ir.structure import Access, Kind, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.graph.nests import MOST_OPS
from tilewright.plan.model.traffic import tensor_bytes

if TYPE_CHECKING:
    from tilewright.plan.graph.nests import Nest, Task
    from tilewright.plan.graph.plan_fusion import Graph


def merge_maps(graph: Graph) -> None:
    """Moves elementwise nests into the nests of their only readers, which they meet in registers.

    Greedy fusion lets a reader of two makers join one of them; the other one, if it is a map over the reader's points,
    is computed there as well. Their own tasks are left without nests.
    """
    readers = _readers(graph)
    for task in graph.tasks:
        if not _is_map(task):
            continue
        nest = _reading_nest(graph, task, readers)
        if nest is None or task.needs >> nest.task.number & 1 or not _may_meet(task, nest.task):
            continue
        rows = _rows_at(task.nests[0], nest, readers)
        if rows is not None and _computed_once(rows, task.nests[0], nest):
            _absorb(graph, task, nest, rows)


def _is_map(task: Task) -> bool:
    return len(task.nests) == 1 and not task.nests[0].reduces and not task.nests[0].gathers and not task.block


def _reading_nest(graph: Graph, task: Task, readers: dict[ir.Value, list[LinalgOp | None]]) -> Nest | None:
    """The one nest of another task that reads what a task makes; None where there are several, or others read it."""
    members = set(task.nests[0].ops)
    outside = {reader for op in members for reader in readers[op.result]} - members
    if not outside or None in outside:
        return None
    nests = {graph.nest_of[reader] for reader in outside if reader is not None}
    return nests.pop() if len(nests) == 1 else None


def _computed_once(rows: dict[int, int], made: Nest, reading: Nest) -> bool:
    """Whether each point of a map is one at which the reader stands, before its reduction or after it."""
    assert made.root is not None and reading.root is not None
    root, met = reading.root, set(rows.values())
    before = root.kind is not Kind.CONTRACTION and met == set(range(root.rank))
    complete = set(rows) == set(made.root.parallel) and len(met) == len(rows)
    return complete and (before or met == set(root.parallel))


def _absorb(graph: Graph, maker: Task, nest: Nest, rows: dict[int, int]) -> None:
    moved = maker.nests.pop()
    for op in moved.ops:
        nest.loops[op] = {own: rows[loop] for own, loop in moved.loops[op].items()}
        graph.nest_of[op] = nest
    nest.ops = sorted([*nest.ops, *moved.ops], key=lambda op: op.position)
    _take_over(graph, maker, nest.task)


def merge_products(graph: Graph, large: int = 0) -> None:
    """Moves products into the tasks of their only readers. Their own tasks are left without nests.

    Args:
        graph: the operations.
        large: multiply-adds from which on a product stays alone, in the tiles that are best for it; 0: none does.
    """
    readers = _readers(graph)
    for task in reversed(graph.tasks):
        if not _is_product(task) or _is_large(task, large):
            continue
        while _merge_makers(graph, task, large, readers):
            pass  # what was moved reads products, too: a state's, and its input's


def _merge_makers(graph: Graph, task: Task, large: int, readers: dict[ir.Value, list[LinalgOp | None]]) -> bool:
    """Moves those products that meet a nest of the task; whether there were any."""
    merged = False
    for maker in _makers(graph, task):
        rows = None if _is_large(maker, large) else _meeting_rows(graph, maker, task, readers)
        if rows is not None:
            _merge(graph, maker, task, rows)
            merged = True
    return merged


def _is_large(task: Task, large: int) -> bool:
    return large > 0 and any(nest.root is not None and nest.root.points >= large for nest in task.nests)


def _is_product(task: Task) -> bool:
    """Whether the last nest of a task is a contraction, and all the others are such that were moved there."""
    if task.block or not task.nests:
        return False  # cut along the rows that it shares with what it reads
    return all(n.root is not None and n.root.kind is Kind.CONTRACTION for n in task.nests)


def merge_gathers(graph: Graph) -> None:
    """Moves what only gathers into the tasks of its readers, each of which needs a part that no other one does.

    A join of slices (`tile-gather-joins`) is an example: a task makes its own rows of it in its fast memory.
    """
    readers = _readers(graph)
    for task in graph.tasks:
        if not _only_gathers(task):
            continue
        op = task.nests[0].ops[0]
        reading = _reading_task(graph, readers[op.result])
        if reading is None or not reading.block or not _may_meet(task, reading, gathers=True):
            continue
        rows = _own_rows(graph, op, readers[op.result], reading)
        if rows is not None and _fits(op, rows, reading, graph.levels.l2_bytes):
            _prepend(graph, task, reading, rows)


def _only_gathers(task: Task) -> bool:
    """Whether a task is one operation that reads nothing at its own points."""
    return task.size == 1 and bool(task.ops[0].gathers) and not task.ops[0].inputs


def _reading_task(graph: Graph, users: list[LinalgOp | None]) -> Task | None:
    """The task that all readers are in; None where there is no such task."""
    tasks = {None if user is None else graph.nest_of[user].task for user in users}
    return tasks.pop() if len(tasks) == 1 else None


def _own_rows(graph: Graph, op: LinalgOp, users: list[LinalgOp | None], task: Task) -> dict[int, int] | None:
    """Loops of a maker as common rows of its readers' task; None where tasks would make parts of it anew.

    A task along a row that what is made has no part in makes it again, unless there is one task only along this row.
    """
    reads = [
        _rows_read(op, access, graph.nest_of[user], user)
        for user in users
        if user is not None
        for access in user.inputs
        if access.value == op.result
    ]
    rows = reads[0] if reads and all(each == reads[0] for each in reads) else None
    if rows is None:
        return None
    last = task.nests[-1]
    assert last.root is not None
    again = [loop for loop, row in last.rows.items() if row not in rows.values()]
    return rows if all(ceil(last.root.extents[d] / _cut(task, last.rows[d])) == 1 for d in again) else None


def _rows_read(op: LinalgOp, access: Access, nest: Nest, user: LinalgOp) -> dict[int, int] | None:
    """Loops of a maker along which a reader's nest reads at its rows; None where it reads by expressions."""
    if not access.pure:
        return None
    pairs = zip(op.output.dims, access.dims, strict=True)
    read = {m: nest.loops[user][r] for m, r in pairs if m is not None and r is not None}
    return {made: nest.rows[loop] for made, loop in read.items() if loop in nest.rows}


def _cut(task: Task, row: int) -> int:
    """How many of a row one task takes."""
    return task.block if row == max(task.nests[-1].rows.values()) else 1


def _fits(op: LinalgOp, rows: dict[int, int], task: Task, most: int) -> bool:
    """Whether what a task makes stays in its fast memory."""
    points = prod(min(_cut(task, rows[d]), op.extents[d]) if d in rows else op.extents[d] for d in op.parallel)
    return tensor_bytes(op.result) * points // max(op.points, 1) <= most


def _prepend(graph: Graph, maker: Task, task: Task, rows: dict[int, int]) -> None:
    """Makes a nest the first one of another task."""
    innermost = max(task.nests[-1].rows.values())
    for own in task.nests:  # along a row that the maker has no part in there is one task: it is no row any more
        own.rows = {d: row for d, row in own.rows.items() if row in rows.values()}
    if innermost not in rows.values():
        task.block = 1
    nest = maker.nests.pop()
    nest.rows = rows
    nest.task = task
    task.nests.insert(0, nest)
    _take_over(graph, maker, task)


def _readers(graph: Graph) -> dict[ir.Value, list[LinalgOp | None]]:
    """Who reads each result: operations of the graph as inputs, None for anyone else and for views."""
    by_op = {op.op: op for op in graph.ops}
    found: dict[ir.Value, list[LinalgOp | None]] = {}
    for op in graph.ops:
        users = [(by_op.get(use.owner.operation), use.operand_number) for use in op.result.uses]
        found[op.result] = [user if user and number != len(user.op.operands) - 1 else None for user, number in users]
    return found


def _makers(graph: Graph, task: Task) -> list[Task]:
    """Other tasks that are one contraction and make something that `task` reads, the latest first."""
    makers = {graph.maker.get(a.value) for nest in task.nests for op in nest.ops for a in op.inputs}
    tasks = {graph.nest_of[m].task for m in makers if m is not None}
    found = [t for t in tasks if t is not task and len(t.nests) == 1 and _is_product(t)]
    return sorted(found, key=lambda t: -t.number)


def _meeting_rows(
    graph: Graph, maker: Task, task: Task, readers: dict[ir.Value, list[LinalgOp | None]]
) -> dict[int, int] | None:
    """Loops of the product as loops of the task's last nest, where `maker` may run in `task`; None where it may not."""
    if not _may_meet(maker, task):
        return None
    for nest in task.nests:
        rows = _rows_at(maker.nests[0], nest, readers)
        if rows is not None and _covers(rows, maker.nests[0], nest):
            return rows if nest is task.nests[-1] else {own: nest.rows[other] for own, other in rows.items()}
    return None


def _may_meet(maker: Task, task: Task, gathers: bool = False) -> bool:
    """Whether both may be one task: no assertion between, neither writes what the other one touches, room enough."""
    first, last = maker.nests[0].ops[0], task.nests[-1].ops[0]
    if maker.writes & task.reads or maker.reads & task.writes or maker.writes & task.writes:
        return False
    if task.size + maker.size > MOST_OPS or first.epoch != last.epoch:
        return False
    return gathers or (not maker.nests[0].gathers and not any(nest.gathers for nest in task.nests))


def _rows_at(made: Nest, reading: Nest, readers: dict[ir.Value, list[LinalgOp | None]]) -> dict[int, int] | None:
    """Loops of one nest as loops of the other one, which alone reads it, at equal points; None where it does not."""
    members = set(made.ops)
    rows: dict[int, int] = {}
    for op in made.ops:
        for reader in readers[op.result]:
            if reader in members:
                continue
            if reader is None or reader not in reading.loops:
                return None
            if not _same_points(op, reader, made.loops[op], reading.loops[reader], rows):
                return None
    return rows


def _same_points(
    made: LinalgOp, reader: LinalgOp, own: dict[int, int], others: dict[int, int], rows: dict[int, int]
) -> bool:
    """Whether each point of the reader's nest reads one element, which no other point reads; fills `rows`."""
    for access in reader.inputs:
        if access.value != made.result:
            continue
        for wrote, read in zip(made.output.dims, access.dims, strict=True):
            if wrote is None or read is None or rows.setdefault(own[wrote], others[read]) != others[read]:
                return False
    return True


def _covers(rows: dict[int, int], made: Nest, reading: Nest) -> bool:
    """Whether the rows are all parallel loops of both nests, with equal extents."""
    assert made.root is not None and reading.root is not None
    complete = set(rows) == set(made.root.parallel) and set(rows.values()) == set(reading.root.parallel)
    return complete and all(made.root.extents[m] == reading.root.extents[r] for m, r in rows.items())


def _merge(graph: Graph, maker: Task, task: Task, rows: dict[int, int]) -> None:
    nest, anchor = maker.nests.pop(), task.nests[-1]
    assert anchor.root is not None
    anchor.rows = {d: d for d in anchor.root.parallel}
    nest.rows = rows
    nest.task = task
    task.nests.insert(0, nest)
    _take_over(graph, maker, task)


def _take_over(graph: Graph, maker: Task, task: Task) -> None:
    """What the maker needs, reads and writes becomes the task's, also for those that need it."""
    task.reads |= maker.reads
    task.writes |= maker.writes
    bit = 1 << maker.number
    task.needs |= maker.needs
    for other in graph.tasks:
        if other.needs & bit:
            other.needs |= task.needs
