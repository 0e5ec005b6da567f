# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks of a grid that wait for earlier ones: `tile.semaphores` and what is done with them.

Tasks run one by one, in order, so one that would wait here waits for a later one: an error, since a machine that runs
some blocks at a time may then hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node, walk, where
from tilewright.reference.registry import handles


def _counts(node: Node) -> np.ndarray:
    return node.once("counts", lambda: np.zeros(types.shape_of(node.result_type()), np.int32))


def check_taken(kernel: Node) -> None:
    """Check that a launch has left all semaphores of its kernel at zero.

    Raises:
        InterpreterError: something was posted that no task took; the semaphores are zero again.
    """
    for node in kernel.once("semaphores", lambda: [n for n in walk(kernel) if n.name == "tile.semaphores"]):
        counts = _counts(node)
        left = np.flatnonzero(counts)
        if left.size:
            number = int(left[0])
            value, counts[...] = int(counts[number]), 0
            raise InterpreterError(
                f"semaphore {number} is {value} when all tasks are done: what is posted must be taken in the same "
                "launch, or the next one goes on too early",
                location=where(node),
            )


@handles("tile.semaphores")
def semaphores(_frame: Any, node: Node) -> np.ndarray:
    """The kernel's own counts, the same for all of its tasks."""
    return _counts(node)


def _place(node: Node, counts: np.ndarray, index: Any) -> int:
    if not 0 <= int(index) < counts.size:
        raise InterpreterError(f"there is no semaphore {int(index)} of {counts.size}", location=where(node))
    return int(index)


@handles("tile.semaphore_post")
def post(_frame: Any, node: Node, counts: np.ndarray, index: Any) -> None:
    """Count one more."""
    counts[_place(node, counts, index)] += 1


@handles("tile.semaphore_take")
def take(frame: Any, node: Node, counts: np.ndarray, index: Any) -> None:
    """Take what earlier tasks have posted."""
    number, wanted = _place(node, counts, index), int(node.op.attributes["count"].value)
    if counts[number] < wanted:
        task = frame.task.coordinates if frame.task is not None else ()
        found, counts[...] = int(counts[number]), 0
        raise InterpreterError(
            f"task {task} waits until semaphore {number} is {wanted}, and it is {found} when all tasks with smaller "
            "numbers are done: a task may wait for such ones only",
            location=where(node),
        )
    counts[number] -= wanted
