# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels take, and which banks of memory they use."""

from __future__ import annotations

import math

import numpy as np

from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Compute, Program, Slot
from tilewright.sim.coremesh.steps import Step


class Kernels:
    """Kernels that differ in cost or in where their operands lie, numbered.

    Each operand is streamed once. What it takes from memory bounds a kernel from below where all its addresses are
    known, as machine code then knows its banks; where not, its cost alone counts.
    """

    def __init__(self, grid: Grid, program: Program, machine: Machine) -> None:
        self.grid, self.machine = grid, machine
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.cycles: list[tuple[int, int, int]] = []  # cycles, bytes read, bytes written
        self.accesses: list[np.ndarray] = []
        self._known: dict[tuple[int, tuple[int, ...], int, int], int] = {}

    @property
    def bank_bytes(self) -> int:
        """Capacity of one bank."""
        return max(self.machine.sram_bytes // self.machine.mesh.sram_banks, 1)

    def numbers(self, step: Step, instruction: Compute, cores: np.ndarray) -> np.ndarray:
        """Number of the kernel that each core runs at a step, int32 [n]."""
        operands = [*((slot, False) for slot in instruction.reads), *((slot, True) for slot in instruction.writes)]
        cycles = math.ceil(self.machine.kernel_cycles(instruction.cost))
        if not operands or any(self.buffers[slot.buffer].address is None for slot, _ in operands):
            return np.full(cores.size, self._number(cycles, (), 0, 0), dtype=np.int32)
        places = np.stack([self._addresses(step, instruction, slot)[cores] for slot, _ in operands], axis=1)
        sizes = [self._bytes(slot) for slot, _ in operands]
        read = sum(size for size, (_, writes) in zip(sizes, operands, strict=True) if not writes)
        rows, which = np.unique(places, axis=0, return_inverse=True)
        found = []
        for row in rows.tolist():
            banks = sum(self._banks(at, size) for at, size in zip(row, sizes, strict=True))
            found.append(self._number(cycles, tuple(np.asarray(banks).tolist()), read, sum(sizes) - read))
        return np.array(found, dtype=np.int32)[which.ravel()]

    def _addresses(self, step: Step, instruction: Compute, slot: Slot) -> np.ndarray:
        base = self.buffers[slot.buffer].address
        assert base is not None
        return base + self.grid.index(slot.index, instruction.cores.order, step.loops) * self._bytes(slot)

    def _bytes(self, slot: Slot) -> int:
        buffer = self.buffers[slot.buffer]
        return int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize

    def _banks(self, address: int, size: int) -> np.ndarray:
        """Accesses to each bank that streaming some bytes takes."""
        edges = np.clip(np.arange(self.machine.mesh.sram_banks + 1) * self.bank_bytes, address, address + size)
        return -(-np.diff(edges) // access_bytes(self.machine))

    def _number(self, cycles: int, banks: tuple[int, ...], read: int, written: int) -> int:
        key = cycles, banks, read, written
        if key not in self._known:
            self._known[key] = len(self.cycles)
            self.cycles.append((cycles, read, written))
            self.accesses.append(np.array(banks or (0,) * self.machine.mesh.sram_banks, dtype=np.int32))
        return self._known[key]


def access_bytes(machine: Machine) -> int:
    """Bytes of one access to a bank: as many as the write port moves in a cycle."""
    return max(machine.mesh.write_bytes_per_cycle, 1)
