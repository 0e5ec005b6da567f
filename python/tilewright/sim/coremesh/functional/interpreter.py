# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All cores through one program: those at the same step go together, and the one furthest behind goes first."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.channels import channels_of
from tilewright.sim.coremesh.functional import tensors
from tilewright.sim.coremesh.functional.deadlock import deadlock
from tilewright.sim.coremesh.functional.memory import Memory
from tilewright.sim.coremesh.functional.traffic import Traffic
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Compute, Loop, Program, Wait
from tilewright.sim.coremesh.steps import Step, slots_of, unroll


def run(program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a program computes.

    Args:
        inputs: each tensor of `Program.inputs`, of its shape and its buffer's dtype.

    Returns:
        Each tensor of `Program.outputs`, of its shape and its buffer's dtype.

    Raises:
        UserError: the inputs do not fit, or the program breaks a rule: it reads what was never written, touches a slot
            that something on its way reads or writes, sends what nobody receives or the reverse, or its cores wait for
            each other. The message names cores, buffers or routes, and instructions.
    """
    return _Run(program).run(inputs)


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.grid = Grid(program)
        self.steps = unroll(program)
        self.memory = Memory(self.grid, program)
        self.traffic = Traffic(self.memory, channels_of(program, self.grid, self.steps), self.steps)
        self.ready: dict[int, np.ndarray] = {}  # step: cores that come to it next, ascending
        self.order: list[int] = []  # heap of those steps
        self.waiting: dict[int, np.ndarray] = {}  # step, a Wait: cores that wait there
        self.ends = self._last_uses()

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors.load(self.program, self.memory, inputs)
        self._come(0, np.arange(self.grid.cores))
        while self._wake():
            number = heapq.heappop(self.order)
            self._free(min(number, *self.waiting, number))
            cores = self.ready.pop(number)
            if number == len(self.steps):
                continue
            self._step(number, cores)
        if self.waiting or self.traffic.unfinished:
            raise deadlock(self.grid, self.steps, self.waiting, self.traffic)
        return tensors.collect(self.program, self.memory, self.steps)

    def _step(self, number: int, cores: np.ndarray) -> None:
        step = self.steps[number]
        instruction = step.instruction
        if isinstance(instruction, Wait):
            waits = self.traffic.waits(instruction.tokens, cores)
            if waits.any():
                self.waiting[number] = np.union1d(self.waiting.get(number, cores[:0]), cores[waits])
                cores = cores[~waits]
            self.traffic.waited(instruction.tokens, cores)
        else:
            assert not isinstance(instruction, Loop)
            taking = cores[self.grid.mask(instruction.cores, step.loops)[cores]]
            if taking.size and isinstance(instruction, Compute):
                self._compute(step, instruction, taking)
            elif taking.size:
                self.traffic.start(number, taking)
        self._come(number + 1, cores)

    def _come(self, number: int, cores: np.ndarray) -> None:
        if not cores.size:
            return
        if number in self.ready:
            self.ready[number] = np.union1d(self.ready[number], cores)
        else:
            self.ready[number] = cores
            heapq.heappush(self.order, number)

    def _wake(self) -> bool:
        """Let those go on that have waited long enough; whether anyone can."""
        touched = self.traffic.touched
        for number in [at for at in self.waiting if touched.intersection(getattr(self._at(at), "tokens", ()))]:
            cores = self.waiting.pop(number)
            tokens = getattr(self._at(number), "tokens", ())
            waits = self.traffic.waits(tokens, cores)
            if waits.any():
                self.waiting[number] = cores[waits]
            self._come(number, cores[~waits])
        touched.clear()
        return bool(self.order)

    def _at(self, number: int) -> object:
        return self.steps[number].instruction

    def _compute(self, step: Step, instruction: Compute, cores: np.ndarray) -> None:
        order, loops = instruction.cores.order, step.loops
        reads, origins = [], []
        for slot in instruction.reads:
            index = self.memory.slots(slot, order, loops, cores, step)
            tiles = self.memory[slot.buffer]
            tiles.check_written(cores, index, step)
            tiles.check_free("reads", cores, index, step, self.steps)
            reads.append(tiles.read(cores, index))
            origins.append(tiles.origin[cores, index])
        self.memory.origins.check_meeting(step, getattr(instruction.run, "meeting", ()), cores, origins, self.grid)
        writes = [(slot, self.memory.slots(slot, order, loops, cores, step)) for slot in instruction.writes]
        for slot, index in writes:
            self.memory[slot.buffer].check_free("writes", cores, index, step, self.steps)
        results = instruction.run(*reads)
        if not reads:  # the kernel cannot know how many cores there are: it makes one tile for all
            results = tuple(np.broadcast_to(one, (cores.size, *one.shape[1:])) for one in results)
        if len(results) != len(writes):
            raise UserError(f"{step} makes {len(results)} tiles and writes {len(writes)} slots: as many are needed.")
        for (slot, index), result in zip(writes, results, strict=True):
            buffer = self.memory[slot.buffer].buffer
            if result.shape != (cores.size, *buffer.shape) or result.dtype != buffer.dtype:
                raise UserError(
                    f"{step} makes tiles {result.dtype}{list(result.shape[1:])} of {result.shape[:1]} cores; buffer "
                    f"'{slot.buffer}' of {cores.size} cores takes {buffer.dtype}{list(buffer.shape)}."
                )
            self.memory[slot.buffer].write(cores, index, result)

    def _last_uses(self) -> list[tuple[int, str]]:
        """Last step that uses each buffer that is no output, the last of all first."""
        last = {place.slot.buffer: -1 for place in self.program.inputs}
        for number, step in enumerate(self.steps):
            last.update((slot.buffer, number) for slot in slots_of(step.instruction))
        kept = {place.slot.buffer for place in self.program.outputs}
        return sorted(((number, name) for name, number in last.items() if name not in kept), reverse=True)

    def _free(self, lowest: int) -> None:
        """Give back buffers that no core comes to any more, unless something is on its way there."""
        while self.ends and self.ends[-1][0] < lowest and not self.memory[self.ends[-1][1]].busy():
            self.memory[self.ends.pop()[1]].free()
