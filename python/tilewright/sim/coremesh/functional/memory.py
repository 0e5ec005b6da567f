# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of all cores, buffer by buffer: poisoned until it is written, guarded while something is on its way."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.functional.origins import UNKNOWN, Origins
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Buffer, Program, Slot
from tilewright.sim.coremesh.steps import Step

#: All bits of a float set are a NaN; those of an integer are -1, which is too common.
_FLOAT_POISON, _INTEGER_POISON = 0xFF, 0xA5

#: What an instruction does to a slot.
Access = Literal["reads", "writes", "combines into"]


class Tiles:
    """One buffer of all cores.

    Attributes:
        buffer: what the program says of it.
        data: [cores, slots, *shape], None while nothing was written.
        written: which slots hold something, bool [cores, slots].
        readers, writers, combiners: instructions on their way that read, write, combine (which is a write too), int32
            [cores, slots]; the core has not waited for them yet.
        origin: which block of which input a slot holds as it was, as `Origins` numbers them, int32 [cores, slots].
        tickets, served: combinations into a slot that were started, and that are done, int32 [cores, slots].
    """

    def __init__(self, grid: Grid, buffer: Buffer) -> None:
        if buffer.slots < 1:
            raise UserError(f"Buffer '{buffer.name}' has {buffer.slots} slots: it needs at least one.")
        self.grid, self.buffer = grid, buffer
        self.data: np.ndarray | None = None
        places = (grid.cores, buffer.slots)
        self.written = np.zeros(places, dtype=bool)
        self.origin = np.full(places, UNKNOWN, dtype=np.int32)
        self.readers, self.writers, self.combiners = (np.zeros(places, dtype=np.int32) for _ in range(3))
        self.tickets, self.served = (np.zeros(places, dtype=np.int32) for _ in range(2))
        self._last = {"reads": np.zeros(places, dtype=np.int32), "writes": np.zeros(places, dtype=np.int32)}

    @property
    def nbytes(self) -> int:
        """Bytes of one core, 0 while nothing was written."""
        return 0 if self.data is None else self.data.nbytes // self.grid.cores

    def read(self, cores: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Tiles [n, *shape], not to be written to."""
        assert self.data is not None
        if cores.size == self.grid.cores and (slots == slots[0]).all():
            tiles = self.data[:, slots[0]]
            tiles.flags.writeable = False
            return tiles
        return self.data[cores, slots]

    def write(
        self, cores: np.ndarray, slots: np.ndarray, tiles: np.ndarray, origin: np.ndarray | int = UNKNOWN
    ) -> None:
        """Store tiles [n, *shape], copies of blocks ``origin`` [n] of inputs."""
        if self.data is None:
            self._allocate()
        assert self.data is not None
        if cores.size == self.grid.cores and (slots == slots[0]).all():
            self.data[:, slots[0]] = tiles
        else:
            self.data[cores, slots] = tiles
        self.written[cores, slots] = True
        self.origin[cores, slots] = origin

    def free(self) -> None:
        """Nothing needs the buffer any more."""
        self.data = None
        self.written[:] = False

    def busy(self) -> bool:
        """Whether something is on its way out of it or into it."""
        return bool(self.readers.any() or self.writers.any())

    def begin(self, access: Access, cores: np.ndarray, slots: np.ndarray, step: int) -> None:
        """An instruction that touches slots is on its way."""
        for count in self._counts(access):
            count[cores, slots] += 1
        self._last["reads" if access == "reads" else "writes"][cores, slots] = step

    def end(self, access: Access, cores: np.ndarray, slots: np.ndarray) -> None:
        """Cores have waited for it."""
        for count in self._counts(access):
            count[cores, slots] -= 1

    def _counts(self, access: Access) -> tuple[np.ndarray, ...]:
        if access == "reads":
            return (self.readers,)
        return (self.writers, self.combiners) if access == "combines into" else (self.writers,)

    def check_written(self, cores: np.ndarray, slots: np.ndarray, step: Step | str) -> None:
        """Raise UserError if a slot was never written."""
        bad = np.flatnonzero(~self.written[cores, slots])
        if bad.size:
            core, slot = int(cores[bad[0]]), int(slots[bad[0]])
            raise UserError(
                f"{step} on {self.grid.name(core)} reads slot {slot} of buffer '{self.buffer.name}', which was never "
                f"written there ({bad.size} cores do). Write it first, or wait for what is to be received into it."
            )

    def check_free(
        self, access: Access, cores: np.ndarray, slots: np.ndarray, step: Step | str, steps: list[Step]
    ) -> None:
        """Raise UserError if something on its way writes what is now touched, or reads what is now written.

        Combinations into one slot may be on their way together: they take turns.
        """
        writing = self.writers[cores, slots]
        if access == "combines into":
            writing = writing - self.combiners[cores, slots]
        writers = writing > 0
        readers = (self.readers[cores, slots] > 0) & (access != "reads")
        bad = np.flatnonzero(writers | readers)
        if not bad.size:
            return
        core, slot = int(cores[bad[0]]), int(slots[bad[0]])
        other = "writes" if writers[bad[0]] else "reads"
        way = "into" if other == "writes" else "from"
        raise UserError(
            f"Race on {self.grid.name(core)}, slot {slot} of buffer '{self.buffer.name}': {step} {access} it while "
            f"{steps[self._last[other][core, slot]]} is on its way {way} it and the core has not waited for that. "
            "Wait for its token first, or use another slot."
        )

    def _allocate(self) -> None:
        dtype = self.buffer.dtype
        poison = _INTEGER_POISON if dtype.kind in "iub" else _FLOAT_POISON
        shape = (self.grid.cores, self.buffer.slots, *self.buffer.shape)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.data = np.full(size, poison, dtype=np.uint8).view(dtype).reshape(shape)


class Memory:
    """All buffers of a program, by name.

    Attributes:
        origins: what ``origin`` of tiles means.
        peak: the most bytes that a core's live buffers took, in bytes of whole buffers.
    """

    def __init__(self, grid: Grid, program: Program) -> None:
        self.grid = grid
        self.peak = 0
        self.origins = Origins()
        self._tiles = {buffer.name: Tiles(grid, buffer) for buffer in program.buffers}

    def __getitem__(self, name: str) -> Tiles:
        """A buffer; UserError where the program has none of this name."""
        if name not in self._tiles:
            raise UserError(f"Buffer '{name}' is not a buffer of the program, which has {sorted(self._tiles)}.")
        return self._tiles[name]

    def slots(self, slot: Slot, order: str, loops: tuple[int, ...], cores: np.ndarray, step: Step | str) -> np.ndarray:
        """Index of a slot on some cores, int64 [n]; UserError where the buffer has no such slot."""
        found = self.grid.index(slot.index, "ring" if order == "ring" else "linear", loops)[cores]
        count = self[slot.buffer].buffer.slots
        bad = np.flatnonzero((found < 0) | (found >= count))
        if bad.size:
            raise UserError(
                f"{step} on {self.grid.name(int(cores[bad[0]]))} asks for slot {found[bad[0]]} of buffer "
                f"'{slot.buffer}', which has {count}."
            )
        return found

    def note_peak(self) -> None:
        """Remember how much lives now."""
        self.peak = max(self.peak, sum(tiles.nbytes for tiles in self._tiles.values()))
