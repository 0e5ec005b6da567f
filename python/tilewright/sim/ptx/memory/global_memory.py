# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global memory: every allocation has an address slot of its own, so that no stray pointer meets a neighbour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.ptx.syntax.types import WORDS

if TYPE_CHECKING:
    from tilewright.sim.ptx.syntax.tree import Module

#: log2 of the distance of two allocations' addresses
SLOT = 40
#: where an allocation begins within its slot: small negative offsets stay in the slot, so that the message names the
#: right one
MIDDLE = 1 << 39
#: the first slot of global memory; those below are the windows of generic addressing
FIRST = 16
SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW = 1, 2, 3
_ROUND = 256


class Store:
    """Bytes, which of them have been written, and views of both as rows of words."""

    def __init__(self, size: int, defined: bool = False) -> None:
        rounded = max(-(-size // _ROUND) * _ROUND, _ROUND)
        self.size = size
        self.data = np.zeros(rounded, np.uint8)
        self.defined = np.full(rounded, defined, np.bool_)
        self._rows: dict[tuple[int, int], np.ndarray] = {}
        self._marks: dict[int, np.ndarray] = {}

    def rows(self, width: int, count: int) -> np.ndarray:
        """The bytes as (-1, count) unsigned words of `width` bytes; (-1,) for count 1."""
        found = self._rows.get((width, count))
        if found is None:
            found = self.data.view(WORDS[width])
            found = found if count == 1 else found.reshape(-1, count)
            self._rows[width, count] = found
        return found

    def marks(self, nbytes: int) -> np.ndarray:
        """`defined` as (-1,) or (-1, k) words, a row for `nbytes` bytes."""
        found = self._marks.get(nbytes)
        if found is None:
            found = self.defined.view(WORDS[min(nbytes, 8)])
            found = found if nbytes <= 8 else found.reshape(-1, nbytes // 8)
            self._marks[nbytes] = found
        return found

    def undefined(self, offsets: np.ndarray, nbytes: int) -> np.ndarray | None:
        """Which of the accesses touch bytes that were never written; None: none of them."""
        marks = self.marks(nbytes).take(offsets // nbytes, axis=0)
        want = marks.dtype.type(0x0101010101010101 >> (64 - 8 * marks.dtype.itemsize))
        if np.bitwise_and.reduce(marks, axis=None) == want:
            return None
        good = marks == want
        return ~(good if good.ndim == 1 else good.all(axis=1))

    def mark(self, offsets: np.ndarray, nbytes: int) -> None:
        """Note that bytes have been written."""
        marks = self.marks(nbytes)
        marks[offsets // nbytes] = marks.dtype.type(0x0101010101010101 >> (64 - 8 * marks.dtype.itemsize))


class Allocation(Store):
    """One allocation of global memory."""

    def __init__(self, number: int, size: int, name: str, defined: bool = False) -> None:
        super().__init__(size, defined)
        self.address = (number << SLOT) + MIDDLE
        self.name = name
        self.fully_defined = defined
        self.constant = False

    def __str__(self) -> str:
        return f"{self.name} of {self.size} bytes at {self.address:#x}"


class GlobalMemory:
    """The memory of a device."""

    def __init__(self) -> None:
        self.allocations: dict[int, Allocation] = {}
        self.freed: dict[int, str] = {}  # names
        self._next = FIRST
        self.launches = 0  # so far
        self.released: dict[int, dict[int, int]] = {}  # address -> clocks that the running launch released there
        #: by its id: a module (kept, so that no other gets the id), and the addresses of its variables by name
        self.modules: dict[int, tuple[Module, dict[str, int]]] = {}

    def holds(self, module: Module) -> bool:
        """Whether the variables of a module have their places."""
        return id(module) in self.modules

    def alloc(self, size: int, name: str = "", defined: bool = False) -> int:
        """Make an allocation and return its address.

        Args:
            size: bytes.
            name: for messages.
            defined: whether reading it before writing is allowed (the bytes are zeros).
        """
        if size < 0:
            raise UserError(f"an allocation of {size} bytes: the size must not be negative")
        number, self._next = self._next, self._next + 1
        allocation = Allocation(number, size, name or f"allocation {number - FIRST}", defined)
        self.allocations[number] = allocation
        return allocation.address

    def free(self, address: int) -> None:
        """Give an allocation back. Its address is never used again, so that later accesses are noticed."""
        number = address >> SLOT
        found = self.allocations.get(number)
        if found is None or found.address != address:
            raise UserError(f"{address:#x} is not the address of an allocation that is alive")
        self.freed[number] = self.allocations.pop(number).name

    def range(self, address: int, nbytes: int) -> tuple[Allocation, int]:
        """(allocation, offset) of a range that the host names.

        Raises:
            UserError: the range is not within one allocation.
        """
        found = self.allocations.get(address >> SLOT)
        offset = address - found.address if found else 0
        if found is None or offset < 0 or offset + nbytes > found.size:
            raise UserError(f"bytes {address:#x} to {address + nbytes:#x}: {self.describe(address)}")
        return found, offset

    def describe(self, address: int) -> str:
        """Which allocation an address belongs to, for messages."""
        number = address >> SLOT
        found = self.allocations.get(number)
        if found is not None:
            return f"{found}: the offset is {address - found.address}"
        if number in self.freed:
            return f"{self.freed[number]} was freed"
        return "no allocation is there"

    def write(self, address: int, data: bytes | bytearray | memoryview | np.ndarray) -> None:
        """Write bytes from the host."""
        source = np.frombuffer(memoryview(data).cast("B"), np.uint8) if len(memoryview(data)) else np.zeros(0, np.uint8)
        found, offset = self.range(address, source.size)
        found.data[offset : offset + source.size] = source
        found.defined[offset : offset + source.size] = True
        found.fully_defined = found.fully_defined or source.size == found.size

    def read(self, address: int, nbytes: int) -> np.ndarray:
        """A copy of bytes for the host: uint8 (nbytes,)."""
        found, offset = self.range(address, nbytes)
        return found.data[offset : offset + nbytes].copy()
