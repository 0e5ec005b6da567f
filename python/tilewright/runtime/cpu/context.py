# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one running call of a model passes to its code: pointers, the arena, sizes known at run time only."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.runtime.binding import Slot
from tilewright.runtime.cpu import library, memory


class Context:
    """Memory of one running call: the entry's pointer array and its arena.

    For an input or output with sizes known at run time only, the pointer leads to words: data, block, sizes.
    """

    __slots__ = ("_inputs", "_outputs", "arena", "pointers")

    def __init__(
        self, inputs: Sequence[Slot], outputs: Sequence[Slot], constants: Sequence[int], arena_bytes: int
    ) -> None:
        self.arena = memory.allocate(arena_bytes)
        fixed = [*constants, self.arena.ctypes.data]
        count = len(inputs) + len(outputs)
        self.pointers = (ctypes.c_void_p * (count + len(fixed)))(*([None] * count), *fixed)
        self._inputs = _words(inputs)
        self._outputs = _words(outputs)
        for number, words in [*self._inputs.items(), *((len(inputs) + n, w) for n, w in self._outputs.items())]:
            self.pointers[number] = ctypes.addressof(words)

    def set(self, arrays: Sequence[np.ndarray | None]) -> None:
        """Point to the inputs and outputs of a call; None for an output that the call makes."""
        pointers, dynamic = self.pointers, self._inputs
        for i, array in enumerate(arrays):
            if array is None:
                continue
            address = array.__array_interface__["data"][0]
            if i in dynamic:
                dynamic[i][0] = address
                dynamic[i][2:] = array.shape
            else:
                pointers[i] = address

    def set_room(self, number: int, array: np.ndarray) -> None:
        """Say where an output is written that continues an input, and how much room there is."""
        words = self._outputs[number]
        words[0] = array.__array_interface__["data"][0]
        words[2:] = array.shape

    def shape(self, number: int) -> tuple[int, ...]:
        """The sizes that the last call told of such an output."""
        return tuple(self._outputs[number][2:])

    def take(self, number: int, slot: Slot) -> np.ndarray:
        """Return the output that the last call handed over; the array owns the memory."""
        address, block, *shape = self._outputs[number]
        release = library.libtwrt().twrt_release
        count = math.prod(shape) * slot.dtype.itemsize
        if count == 0:
            release(block)
            return np.empty(shape, slot.dtype)
        owner = (ctypes.c_char * count).from_address(address)
        weakref.finalize(owner, release, block).atexit = False
        return np.ndarray(shape, slot.dtype, buffer=owner)


def _words(slots: Sequence[Slot]) -> dict[int, Any]:
    return {
        number: (ctypes.c_int64 * (2 + len(slot.shape)))() for number, slot in enumerate(slots) if not slot.is_static
    }
