# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tasks store their results beside the computation of the next one (`tile.overlap`)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import decisions
from tilewright.ir.attributes import members_of_nest
from tilewright.ir.structure import LinalgOp
from tilewright.plan.model.mark_host_fallback import NATIVE_MATH
from tilewright.plan.model.tiles import ENOUGH_TASKS, Tiling

#: Tasks that become one; the first of them computes and the last one stores with nothing beside it.
_MOST = 32


def mark_overlap(root: LinalgOp, roots: Sequence[LinalgOp], members: Sequence[LinalgOp], tiling: Tiling) -> None:
    """Marks the last nest of a task where its stores go past the caches and an earlier nest computes functions.

    Such stores leave a core's few buffers at the rate of memory, and the loads of the next task queue behind them:
    beside exponentials both have time.

    Args:
        root: the root of a nest.
        roots: those of all nests of its task, in order.
        members: the operations of the task.
        tiling: the tiles of the nest.
    """
    if len(roots) < 2 or root is not roots[-1] or root.dynamic or not decisions.STREAM.on(root.op):
        return
    nest = members_of_nest(root, members)
    if any(_computes(m) for m in nest):
        return
    if not any(m.points >= root.points and _computes(m) for m in members if m not in nest):
        return
    cut = [d for d in tiling.order if tiling.task[d] < root.extents[d]]
    if not cut or any(root.extents[d] % tiling.task[d] for d in cut):
        return  # the last tasks have loops of their own
    if not any(1 < tiling.register[d] < tiling.task[d] for d in range(root.rank)):
        return  # rows of one step: a processor sees the next one by itself
    tasks = root.extents[cut[-1]] // tiling.task[cut[-1]]
    together = max((n for n in range(1, _MOST + 1) if tasks % n == 0 and tasks // n >= ENOUGH_TASKS), default=1)
    if together > 1:
        decisions.OVERLAP.set(root.op, together)


def _computes(op: LinalgOp) -> bool:
    """Whether an operation applies functions to its elements."""
    return any(inner.name.startswith("math.") and inner.name not in NATIVE_MATH for inner in op.op.regions[0].blocks[0])
