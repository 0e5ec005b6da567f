# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When each buffer of a program holds something that is still needed: backwards over the program, loops to a fixpoint.

A buffer is live where something may have been put there before and may be used later. Its contents die where all of it
is written anew, by all cores that touch it: buffers of one slot can be tracked that well. A transfer keeps its buffer
alive until the wait for its token, or to the end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tilewright.sim.coremesh.checks.races import accesses
from tilewright.sim.coremesh.program import Buffer, Compute, Cores, Instruction, Loop, Program, Recv, Wait


@dataclass(frozen=True)
class Point:
    """One instruction as it stands in the text of a program.

    Attributes:
        path: index in the body, then in the bodies of loops inside.
    """

    path: tuple[int, ...]
    instruction: Instruction


def buffer_bytes(buffer: Buffer) -> int:
    """Bytes of all slots of a buffer, each slot begins at a multiple of 4."""
    return buffer.slots * slot_bytes(buffer)


def slot_bytes(buffer: Buffer) -> int:
    """Bytes from one slot of a buffer to the next, a multiple of 4."""
    size = buffer.dtype.itemsize
    for length in buffer.shape:
        size *= length
    return -(-size // 4) * 4


def points_of(program: Program) -> list[Point]:
    """All instructions that are ever run but loops, in the order of the text."""
    return list(_points(program.body, ()))


def _points(body, path):
    for number, instruction in enumerate(body):
        if isinstance(instruction, Loop):
            if instruction.count:
                yield from _points(instruction.body, (*path, number))
        else:
            yield Point((*path, number), instruction)


def live_buffers(program: Program) -> list[frozenset[str]]:
    """The buffers that are live at each point of `points_of`, those it touches included."""
    return _Lifetimes(program).run()


class _Lifetimes:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.points = points_of(program)
        self.number = {point.path: number for number, point in enumerate(self.points)}
        self.slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self.live: list[set[str]] = [set() for _ in self.points]
        self.filled: list[set[str]] = [set() for _ in self.points]
        self.touched = self._touched()
        self.ends = self._ends()

    def run(self) -> list[frozenset[str]]:
        self._body(self.program.body, (), {place.slot.buffer for place in self.program.outputs})
        self._forward(self.program.body, (), {place.slot.buffer for place in self.program.inputs})
        self.live = [live & filled for live, filled in zip(self.live, self.filled, strict=True)]
        for number, point in enumerate(self.points):
            if not isinstance(point.instruction, Wait):
                self._flight(number)
        return [frozenset(live) for live in self.live]

    def _forward(self, body: tuple[Instruction, ...], path: tuple[int, ...], before: set[str]) -> set[str]:
        """Walk a body; returns what may be filled after it."""
        for number, instruction in enumerate(body):
            here = (*path, number)
            if isinstance(instruction, Loop):
                after = self._forward(instruction.body, here, set(before)) if instruction.count else before
                before = self._forward(instruction.body, here, after) if instruction.count > 1 else after
                continue
            touched = set()
            if not isinstance(instruction, Wait):
                touched = {slot.buffer for slot, _ in accesses(instruction)}
            before = before | touched
            self.filled[self.number[here]] |= before
        return before

    def _touched(self) -> dict[str, set[Cores]]:
        """By buffer: all that touch it, as conditions on cores."""
        found: dict[str, set[Cores]] = defaultdict(set)
        for place in (*self.program.inputs, *self.program.outputs):
            found[place.slot.buffer].add(Cores())
        for point in self.points:
            if not isinstance(point.instruction, Wait):
                for slot, _ in accesses(point.instruction):
                    found[slot.buffer].add(point.instruction.cores)
        return found

    def _body(self, body: tuple[Instruction, ...], path: tuple[int, ...], after: set[str]) -> set[str]:
        """Walk a body backwards; returns what is live before it."""
        for number in reversed(range(len(body))):
            instruction, here = body[number], (*path, number)
            if isinstance(instruction, Loop):
                after = self._loop(instruction, here, after)
            else:
                after = self._point(instruction, self.number[here], after)
        return after

    def _loop(self, loop: Loop, path: tuple[int, ...], after: set[str]) -> set[str]:
        if not loop.count:
            return after
        before = self._body(loop.body, path, set(after))
        while loop.count > 1:
            again = self._body(loop.body, path, after | before)
            if again <= before:
                break
            before |= again
        return before

    def _point(self, instruction: Instruction, number: int, after: set[str]) -> set[str]:
        if isinstance(instruction, Wait):
            self.live[number] |= after
            return after
        read, written = set(), set()
        for slot, kind in accesses(instruction):
            (written if kind == "write" else read).add(slot.buffer)
        self.live[number] |= after | read | written
        whole = {name for name in written if self.slots[name] == 1 and self.touched[name] == {instruction.cores}}
        if not isinstance(instruction, Compute | Recv):
            whole = set()
        return (after - whole) | read

    def _ends(self) -> dict[str, list[int]]:
        """By token: the points that wait for it."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, point in enumerate(self.points):
            if isinstance(point.instruction, Wait):
                for token in point.instruction.tokens:
                    found[token].append(number)
        return found

    def _flight(self, number: int) -> None:
        """A transfer holds its buffer until the wait: round its loop where that is elsewhere."""
        instruction = self.points[number].instruction
        if isinstance(instruction, Compute):
            return
        buffers = {slot.buffer for slot, _ in accesses(instruction)}
        later = [end for end in self.ends[instruction.token] if end > number]
        around = self._around(number, later[0] if later else None)
        for at in range(*around):
            self.live[at] |= buffers

    def _around(self, start: int, end: int | None) -> tuple[int, int]:
        """The points from a start to an end; all of the outermost loop that only one of both stands in."""
        path = self.points[start].path
        if end is None:
            return (self._first(path[:1]) if len(path) > 1 else start), len(self.points)
        other = self.points[end].path
        common = next((n for n, pair in enumerate(zip(path, other, strict=False)) if pair[0] != pair[1]), 0)
        first = self._first(path[: common + 1]) if len(path) > common + 1 else start
        return first, end + 1

    def _first(self, path: tuple[int, ...]) -> int:
        return next(number for number, point in enumerate(self.points) if point.path[: len(path)] == path)
