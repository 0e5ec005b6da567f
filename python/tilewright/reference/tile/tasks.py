# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks of a grid: in order where they are independent, taking turns where they talk to each other.

A kernel with barriers, asynchronous copies or copies into another task's buffer has its tasks run as coroutines: one
thread each, of which exactly one runs at a time, from one blocking op to the next. The order is that of the grid, or
random (seeded). When every unfinished task waits for something that no task will do, that is a deadlock: an error
which says what each task waits for.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.machine import Frame, Machine
from tilewright.reference.program import Node, walk
from tilewright.reference.tile.task_ops import check_taken
from tilewright.reference.upstream.memref_ops import flat_root


class _Cancelled(BaseException):
    """Raised inside a task whose siblings have failed."""


@dataclass
class Pending:
    """An asynchronous copy that may happen at any moment up to its await."""

    action: Callable[[], None]
    done: bool = False

    def complete(self) -> None:
        """Do it now, once."""
        if not self.done:
            self.done = True
            self.action()


@dataclass
class Task:
    """One task: its grid coordinates, its buffers, its copies in flight, and what it waits for."""

    coordinates: tuple[int, ...]
    team: Team | None = None
    buffers: dict[int, np.ndarray] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)
    ready: Callable[[], bool] | None = None
    reason: str = ""
    finished: bool = False
    resume: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def wait_until(self, ready: Callable[[], bool], reason: str) -> None:
        """Let other tasks run until ``ready()``.

        Raises:
            InterpreterError: the task runs alone, so that nobody could make it ready.
        """
        if self.team is None:
            if not ready():
                raise InterpreterError(f"task {self.coordinates} waits for {reason}, but it runs alone")
            return
        self.ready, self.reason = ready, reason
        self.team.hand_over(self)

    def issue(self, pending: Pending, choice: random.Random | None) -> Pending:
        """Note an asynchronous copy; with ``choice`` it may complete at once."""
        self.pending.append(pending)
        self.maybe_complete(choice)
        return pending

    def maybe_complete(self, choice: random.Random | None) -> None:
        """Complete some of the copies in flight: a legal moment for them has come."""
        for pending in self.pending if choice else ():
            if choice is not None and choice.random() < 0.5:
                pending.complete()
        self.pending = [pending for pending in self.pending if not pending.done]


class Team:
    """The tasks of one launch that may wait for each other."""

    def __init__(self, coordinates: Sequence[tuple[int, ...]], choice: random.Random | None) -> None:
        self.tasks = {point: Task(point, self) for point in coordinates}
        self._arrived: set[tuple[int, ...]] = set()
        self._generation = 0
        self._choice = choice
        self._baton = threading.Semaphore(0)
        self._error: BaseException | None = None

    def barrier(self, task: Task) -> None:
        """Wait until every task of the team has arrived."""
        now = self._generation
        self._arrived.add(task.coordinates)
        if len(self._arrived) == len(self.tasks):
            self._generation += 1
            self._arrived = set()
        task.wait_until(lambda: self._generation > now, "the other tasks at a barrier")

    def run(self, body: Callable[[Task], None]) -> None:
        """Run ``body`` for all tasks.

        Raises:
            InterpreterError: deadlock; or whatever a task raised.
        """
        threads = [threading.Thread(target=self._thread(task, body), daemon=True) for task in self.tasks.values()]
        for thread in threads:
            thread.start()
        try:
            while self._error is None and (waiting := [t for t in self.tasks.values() if not t.finished]):
                self._turn(waiting)
        finally:
            self._stop(threads)
        if self._error is not None:
            raise self._error

    def _thread(self, task: Task, body: Callable[[Task], None]) -> Callable[[], None]:
        context = contextvars.copy_context()  # NumPy's error state travels with it

        def work() -> None:
            task.resume.acquire()
            try:
                if self._error is None:
                    context.run(body, task)
            except _Cancelled:
                pass
            except BaseException as error:
                self._error = self._error or error
            task.finished = True
            self._baton.release()

        return work

    def _turn(self, waiting: list[Task]) -> None:
        """Let each task that can go on do so once."""
        moved = False
        if self._choice is not None:
            self._choice.shuffle(waiting)
        for task in waiting:
            if self._error is None and (task.ready is None or task.ready()):
                moved, task.ready = True, None
                self._give(task)
        if not moved:
            reasons = "; ".join(f"task {t.coordinates} waits for {t.reason}" for t in waiting[:8])
            self._error = InterpreterError(f"deadlock: {reasons}")

    def _give(self, task: Task) -> None:
        task.resume.release()
        self._baton.acquire()

    def hand_over(self, task: Task) -> None:
        """Give the baton back and sleep until it is this task's turn again."""
        self._baton.release()
        task.resume.acquire()
        if self._error is not None:
            raise _Cancelled

    def _stop(self, threads: list[threading.Thread]) -> None:
        for task in self.tasks.values():
            if not task.finished:
                self._error = self._error or InterpreterError("stopped")
                self._give(task)
        for thread in threads:
            thread.join()


def talks(kernel: Node) -> bool:
    """True when the tasks of ``kernel`` may wait for or write into each other."""
    return any(
        node.name == "tile.barrier" or (node.name == "tile.copy" and len(node.operands) > 2) for node in walk(kernel)
    )


def clusters(kernel: Node, points: Sequence[tuple[int, ...]], grid: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """Return ``points`` in groups that may wait for each other: clusters, or all of the grid.

    Raises:
        InterpreterError: some of a group's tasks are not among ``points``, so that the others would wait forever.
    """
    sizes = types.integers(kernel.attribute("cluster")) or [int(n) for n in grid]
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for point in points:
        groups.setdefault(tuple(i // n for i, n in zip(point, sizes, strict=True)), []).append(point)
    for corner, group in groups.items():
        whole = math.prod(min(n, g - c * n) for n, g, c in zip(sizes, grid, corner, strict=True))
        if len(group) != whole:
            raise InterpreterError(f"only {len(group)} of the {whole} tasks that wait for each other are run")
    return list(groups.values())


def grid_points(grid: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all coordinates of ``grid``; the first one varies slowest."""
    return list(itertools.product(*(range(int(n)) for n in grid)))


def run_task(machine: Machine, kernel: Node, arguments: Sequence[Any], task: Task) -> None:
    """Run one task, and complete what it has left in flight."""
    ids = [np.int64(i) for i in task.coordinates]
    Frame(machine, task).run(kernel.body, [*arguments, *ids])
    for pending in task.pending:
        pending.complete()


def run_grid(
    machine: Machine,
    kernel: Node,
    arguments: Sequence[Any],
    grid: Sequence[int],
    part: slice = slice(None),
) -> None:
    """Run all tasks of a kernel, or ``part`` of them.

    Raises:
        InterpreterError: the number of arguments or grid bounds is wrong, or the tasks deadlock.
    """
    expected = len(kernel.body.arguments)
    if expected != len(arguments) + len(grid):
        raise InterpreterError(
            f"kernel takes {expected} arguments and grid ids, got {len(arguments)} and {len(grid)} of them"
        )
    points = grid_points(grid)[part]
    if kernel.once("talks", lambda: talks(kernel)):
        for group in clusters(kernel, points, grid):
            Team(group, machine.random).run(lambda task: run_task(machine, kernel, arguments, task))
        return
    for point in points:
        run_task(machine, kernel, arguments, Task(point))
    check_taken(kernel)


def remote_view(task: Task, memory: np.ndarray, coordinates: tuple[int, ...]) -> np.ndarray:
    """Return the memory of another task that corresponds to ``memory`` of this one.

    Raises:
        InterpreterError: ``memory`` is not a buffer that the task allocated, or there is no such task.
    """
    root = flat_root(memory)
    owned = [number for number, buffer in task.buffers.items() if np.shares_memory(buffer, root)]
    if not owned:
        raise InterpreterError("a copy into another task needs a destination made by tile.alloc")
    if task.team is None or coordinates not in task.team.tasks:
        raise InterpreterError(f"task {task.coordinates} reaches no task at {coordinates}: another cluster, or none")
    other = task.team.tasks[coordinates]
    task.wait_until(lambda: owned[0] in other.buffers, f"task {coordinates} to allocate its buffer")
    offset = memory.ctypes.data - task.buffers[owned[0]].ctypes.data
    target = other.buffers[owned[0]]
    return np.ndarray(memory.shape, memory.dtype, target.data, offset, memory.strides)
