# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one running call of a model passes to its code: pointers, the arena, sizes known at run time only."""

from __future__ import annotations

import ctypes
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
        for number, array in enumerate(arrays):
            if array is not None:
                self.set_input(number, array.__array_interface__["data"][0], array.shape)

    def set_input(self, number: int, address: int, shape: Sequence[int]) -> None:
        """Point to an input, or to an output of known sizes, behind all inputs."""
        words = self._inputs.get(number)
        if words is None:
            self.pointers[number] = address
        else:
            words[0] = address
            words[2:] = shape

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
        if not all(shape):
            library.libtwrt().twrt_release(block)
            return np.empty(shape, slot.dtype)
        dtype = slot.dtype
        if dtype.isbuiltin != 1:  # its name says nothing to others: bytes, shown as what they are
            return np.asarray(_Handed(block, address, (*shape, dtype.itemsize), "|u1")).view(dtype).reshape(shape)
        return np.asarray(_Handed(block, address, tuple(shape), dtype.str))


class _Handed:
    """Memory that a call handed over, given back with the last array that shows it."""

    __slots__ = ("__array_interface__", "_block", "_release")

    def __init__(self, block: int, address: int, shape: tuple[int, ...], kind: str) -> None:
        self._block, self._release = block, library.libtwrt().twrt_release
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": kind, "version": 3}

    def __del__(self) -> None:
        """Give it back."""
        self._release(self._block)


def _words(slots: Sequence[Slot]) -> dict[int, Any]:
    return {
        number: (ctypes.c_int64 * (2 + len(slot.shape)))() for number, slot in enumerate(slots) if not slot.is_static
    }
