# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether an edge of the tile graph meets in the task (L2) or in memory, where contractions are involved.

Welder (OSDI 2023, section 4.2) compares, per edge, the traffic of the levels at which both ends may meet. In one task,
a tensor between both ends is neither written nor read again; what is not cut along the common rows is read again by
every task.
"""

from __future__ import annotations

from math import ceil, prod

from tilewright.ir.generics import kinds, maker
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir
from tilewright.plan.attention.online_reduction import find_chains, is_maximum
from tilewright.plan.graph.nests import SMALL, Task
from tilewright.plan.model.tiles import FEW_TASKS, even
from tilewright.plan.model.traffic import Levels, boundary, footprint, tensor_bytes


def task_block(task: Task, op: LinalgOp, rows: dict[int, int], levels: Levels, multiplied: bool = True) -> int:
    """How many of the innermost common row one task of both takes; 0 where both had better be apart.

    Args:
        task: what the edge starts from.
        op: what it leads to.
        rows: loops of `op` that are common rows of the task, with their numbers.
        levels: the memory that tiles move through.
        multiplied: whether a product reads what follows from `op`. A softmax that none reads writes its rows anyway:
            it had better leave the product before it alone.
    """
    ops = [*task.ops, op]
    loops = sorted(rows, key=lambda d: rows[d])
    welded = _in_registers(task)
    small = all(member.points <= SMALL for member in ops)
    chains = find_chains(ops, growing=True, open_sizes=levels.chains)
    cut = {member: (loop, levels.steps) for chain in chains[:1] for member, loop in chain.loops.items()}
    maxima = [chain for chain in chains if any(is_maximum(a) for a in chain.accumulators)]
    softmax = (levels.chains and multiplied) and any(op in chain.loops or op in chain.after for chain in maxima)
    enough = FEW_TASKS if softmax else levels.tasks
    for block in (*levels.blocks, 1):
        tile = dict.fromkeys(loops, 1) | {loops[-1]: min(even(op.extents[loops[-1]], block, 16), block)}
        tasks = prod(ceil(op.extents[d] / t) for d, t in tile.items())
        if (tasks < enough and not small) or 2 * footprint(ops, tile, welded, cut) > levels.l2_bytes:
            continue
        if block == 1 and (_shares(task, levels) or _repeated(task, op, tile, levels) > 0):
            return 0  # no rows of a batch, of which each has its own: a block of them would share
        saved = _saved(task, op, levels, follows=bool(maxima) and multiplied)
        pays = softmax or saved >= _repeated(task, op, tile, levels)
        return tile[loops[-1]] if pays else 0
    return 0


def _shares(task: Task, levels: Levels) -> bool:
    """Whether a task had several rows up to now: its products are those of a matrix unit, which one row would idle."""
    return levels.chains and task.block > 1


def _saved(task: Task, op: LinalgOp, levels: Levels, follows: bool) -> float:
    """Nanoseconds for what `op` does not read from memory and, where it is the last reader, the task not write.

    Args:
        task: what the edge starts from.
        op: what it leads to.
        levels: the memory that tiles move through.
        follows: whether other readers but products count as the task's, as they will be: exponentials of scores stand
            behind the maximum, and their sum beside the product that reads them.
    """
    members = {member.result for member in task.ops} | {op.result}
    makers = {member.result: member for member in task.ops}
    total = 0.0
    for value in {a.value for a in op.inputs if a.value in makers}:
        time = tensor_bytes(value) / levels.home_rate(tensor_bytes(value))
        readers = makers[value].readers - members
        last = all(follows and reader is not None and _is_row_wise(reader) for reader in readers)
        total += time + (time if last else 0)
    return total


def _is_row_wise(value: ir.Value) -> bool:
    """Whether what makes a tensor is elementwise, or reduces one tensor: no product."""
    made = maker(value)
    return made is not None and made.name == "linalg.generic" and (not any(kinds(made)) or len(made.operands) == 2)


def _in_registers(task: Task) -> set[LinalgOp]:
    """Operations of which only their own nest reads the results."""
    found = set()
    for nest in task.nests:
        own = {member.result for member in nest.ops}
        found |= {member for member in nest.ops if member.readers <= own}
    return found


def _repeated(task: Task, op: LinalgOp, tile: dict[int, int], levels: Levels) -> float:
    """Nanoseconds for what tasks read again that were cut in other ways before: lines of memory, of which few elements
    may be a task's own."""
    ops = [*task.ops, op]
    own = {a.value for a in op.inputs}
    several = len(task.nests) > 1
    before = boundary(task.ops, _cut_before(task)) if several and task.block else {}
    total = 0.0
    for value, reads in boundary(ops, tile).items():
        least = reads.whole
        if several and value not in own:
            # The task was cut along its rows before; what it reads again counts where it is cut finer now.
            least = max(least, before[value].lines if value in before else reads.lines)
        rate = levels.l2_rate if 2 * reads.tile <= levels.l2_bytes else levels.home_rate(reads.whole)
        total += max(reads.lines - least, 0) / rate
    return total


def _cut_before(task: Task) -> dict[int, int]:
    """The tile of the last operation of a task that has a block."""
    last = task.ops[-1]
    nest = next(nest for nest in task.nests if last in nest.loops)
    rows = {own: nest.rows[loop] for own, loop in nest.loops[last].items() if loop in nest.rows}
    order = sorted(rows, key=lambda d: rows[d])
    return dict.fromkeys(order, 1) | ({order[-1]: task.block} if order else {})
