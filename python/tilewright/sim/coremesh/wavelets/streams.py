# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program as one stream of instructions per core, and flows: what `lib/Sim/CoreMesh/Wavelets` takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.channels import channels_of
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Compute, Loop, Program, Recv, Relay, Send, Slot, Wait
from tilewright.sim.coremesh.steps import Step, incoming, outgoing, unroll
from tilewright.sim.coremesh.wavelets.flows import Flows
from tilewright.sim.coremesh.wavelets.kernels import Kernels

#: As in Wavelets.h.
COMPUTE, BUSY, SEND, RECV, RELAY, WAIT = range(6)
FIELDS = ("op", "token", "in_route", "out_route", "in_flow", "out_flow", "wavelets", "address", "combines", "detail")

#: Instructions of all cores that fit into the memory of a usual machine.
MOST_INSTRUCTIONS = 60_000_000


@dataclass
class Streams:
    """All cores' instructions.

    Attributes:
        steps: of the program.
        step_of: step that each instruction comes from, int32 [n].
        instructions: int32 [n, FIELDS], core by core.
        begin: where each core's begin, int64 [cores + 1].
        tokens: how many there are.
    """

    steps: list[Step]
    step_of: np.ndarray
    instructions: np.ndarray
    begin: np.ndarray
    flows: Flows
    kernels: Kernels
    tokens: int
    grid: Grid


def flatten(program: Program, machine: Machine) -> Streams:
    """A program's streams.

    Raises:
        UserError: a send or receive without a partner, a source outside the grid, too many instructions, or receivers
            of one multicast that listen on several colors.
    """
    grid = Grid(program)
    steps = unroll(program)
    channels = channels_of(program, grid, steps)
    flows = Flows(grid, program, channels, steps)
    build = _Build(program, machine, grid, flows, Kernels(grid, program, machine))
    for number, step in enumerate(steps):
        build.add(number, step)
    return build.streams(steps)


@dataclass
class _Build:
    program: Program
    machine: Machine
    grid: Grid
    flows: Flows
    kernels: Kernels
    rows: list[np.ndarray] = field(default_factory=list)
    places: list[np.ndarray] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    started: dict[str, np.ndarray] = field(default_factory=dict)  # token: cores that have not waited for it
    software: dict[str, np.ndarray] = field(default_factory=dict)  # token: cycles in which each core combines itself
    count: int = 0

    def __post_init__(self) -> None:
        self.routes = {route.name: number for number, route in enumerate(self.program.routes)}
        self.buffers = {buffer.name: buffer for buffer in self.program.buffers}
        bases = np.cumsum([0, *(buffer.slots for buffer in self.program.buffers)])
        self.slot_base = {buffer.name: int(base) for buffer, base in zip(self.program.buffers, bases, strict=False)}

    def add(self, number: int, step: Step) -> None:
        """Append the instructions of a step to the streams of those who take part."""
        instruction = step.instruction
        if isinstance(instruction, Wait):
            self._wait(number, instruction)
            return
        assert not isinstance(instruction, Loop)
        cores = np.flatnonzero(self.grid.mask(instruction.cores, step.loops))
        if isinstance(instruction, Compute):
            self._emit(number, cores, op=COMPUTE, detail=self.kernels.numbers(step, instruction, cores))
        else:
            self._transfer(number, step, instruction, cores)

    def _wait(self, number: int, instruction: Wait) -> None:
        """Who started nothing that made these tokens since the last wait neither waits nor pays."""
        paying, busy = np.zeros(self.grid.cores, dtype=bool), np.zeros(self.grid.cores)
        for token in dict.fromkeys(instruction.tokens):
            waiting = self.started.pop(token, None)
            if waiting is not None:
                self._emit(number, np.flatnonzero(waiting), op=WAIT, token=self._token(token))
                paying |= waiting
                busy += self.software.pop(token, 0.0)
        overheads = self.machine.overheads
        cycles = {"": 0.0, "round": overheads.round, "collective": overheads.collective}[instruction.overhead]
        busy[paying] += cycles
        cores = np.flatnonzero(busy)
        if cores.size:
            self._emit(number, cores, op=BUSY, detail=np.rint(busy[cores]).astype(np.int32))

    def _transfer(self, number: int, step: Step, instruction: Send | Recv | Relay, cores: np.ndarray) -> None:
        slots = self.grid.index(instruction.slot.index, instruction.cores.order, step.loops)[cores]
        fields = {
            "op": {Send: SEND, Recv: RECV, Relay: RELAY}[type(instruction)],
            "token": self._token(instruction.token),
            "wavelets": self._wavelets(instruction.slot),
            "address": self._address(instruction.slot, slots),
        }
        if (name := incoming(instruction)) is not None:
            fields["in_route"], fields["in_flow"] = self.routes[name], self.flows.incoming(name, step, cores)
        if (name := outgoing(instruction)) is not None:
            fields["out_route"], fields["out_flow"] = self.routes[name], self.flows.outgoing(name, step, cores)
        if isinstance(instruction, Recv) and instruction.combine is not None:
            fields["combines"] = self.slot_base[instruction.slot.buffer] + slots
        self.started.setdefault(instruction.token, np.zeros(self.grid.cores, dtype=bool))[cores] = True
        if not isinstance(instruction, Send) and instruction.combine is not None:
            cycles = self.machine.combining_cycles(self.buffers[instruction.slot.buffer])
            self.software.setdefault(instruction.token, np.zeros(self.grid.cores))[cores] += cycles
        self._emit(number, cores, **fields)

    def _wavelets(self, slot: Slot) -> int:
        buffer = self.buffers[slot.buffer]
        size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
        cycles = math.ceil(
            self.machine.message_cycles(size) * Fraction(self.machine.overheads.communication).limit_denominator(10_000)
        )
        return max(cycles, 1)

    def _address(self, slot: Slot, slots: np.ndarray) -> np.ndarray | int:
        buffer = self.buffers[slot.buffer]
        if buffer.address is None:
            return -1
        size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
        return buffer.address + slots * size

    def _token(self, name: str) -> int:
        return self.tokens.setdefault(name, len(self.tokens))

    def _emit(self, number: int, cores: np.ndarray, **fields: np.ndarray | int) -> None:
        self.count += cores.size
        if self.count > MOST_INSTRUCTIONS:
            raise UserError(
                f"Program '{self.program.name}' has more than {MOST_INSTRUCTIONS} instructions, counted on all "
                f"{self.grid.cores} cores: simulate fewer turns of its loops or fewer cores, or use the timing model."
            )
        rows = np.full((cores.size, len(FIELDS)), -1, dtype=np.int32)
        for name, value in fields.items():
            rows[:, FIELDS.index(name)] = value
        self.rows.append(rows)
        self.places.append(cores)
        self.numbers.append(np.full(cores.size, number, dtype=np.int32))

    def streams(self, steps: list[Step]) -> Streams:
        """Sort by core, within a core by step."""
        places = _joined(self.places, np.int64)
        order = np.argsort(places, kind="stable")
        rows = np.concatenate(self.rows)[order] if self.rows else np.empty((0, len(FIELDS)), np.int32)
        begin = np.searchsorted(places[order], np.arange(self.grid.cores + 1)).astype(np.int64)
        step_of = _joined(self.numbers, np.int32)[order]
        return Streams(steps, step_of, rows, begin, self.flows, self.kernels, len(self.tokens), self.grid)


def _joined(parts: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
