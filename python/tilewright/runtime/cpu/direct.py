# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The usual call in few steps: arrays that compiled code takes, and writes, as they are.

A kernel leaves the caches full of its own data: whatever Python touches around it then comes from memory. 11 us of
general checks, warm, cost 60 us between products of 512x512 matrices on two threads. What is not plain goes the
general way (binding.py), which also words the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import Any

import numpy as np

from tilewright.runtime.binding import Slot
from tilewright.runtime.cpu.context import Context

#: Compiled code relies on it for outputs.
_ALIGNMENT = 16
#: Takes arrays that are C-contiguous and writeable only, and no empty ones.
_buffer = c_char.from_buffer


class Direct:
    """Where the arrays of a call lie, if each is exactly what the model takes."""

    def __init__(self, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> None:
        self._wanted = [
            *((slot.dtype, slot.shape, slot.dtype.alignment - 1) for slot in inputs),
            *((slot.dtype, slot.shape, _ALIGNMENT - 1) for slot in outputs),
        ]
        self._sizes = [int(np.prod(shape)) * dtype.itemsize for dtype, shape, _ in self._wanted]
        self._inputs = len(inputs)

    @staticmethod
    def suits(slots: Sequence[Slot]) -> bool:
        """Whether sizes are known and elements lie in memory as the code wants them."""
        return all(slot.is_static and not slot.is_small for slot in slots)

    def addresses(self, inputs: Sequence[Any], outputs: Any) -> list[int] | None:
        """Return the addresses of inputs and outputs; None where one of them needs a look, a copy or an error."""
        if type(outputs) is not list or len(inputs) != self._inputs:
            return None
        arrays = (*inputs, *outputs)
        if len(arrays) != len(self._wanted):
            return None
        found = []
        try:
            for array, (dtype, shape, low) in zip(arrays, self._wanted):  # noqa: B905 (as many, see above)
                if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                    return None
                address = addressof(_buffer(array))
                if address & low:
                    return None
                found.append(address)
        except (TypeError, ValueError):  # read-only, with gaps, empty, or of a type that has no buffer
            return None
        return None if self._overlap(found) else found

    def _overlap(self, addresses: list[int]) -> bool:
        """Whether an output shares memory with an input or another output."""
        sizes = self._sizes
        for number in range(self._inputs, len(addresses)):
            begin = addresses[number]
            end = begin + sizes[number]
            for other in range(number):
                if addresses[other] < end and begin < addresses[other] + sizes[other]:
                    return True
        return False


class OpenDirect:
    """Where the inputs of a call lie, and their sizes, if each is what a model takes that knows sizes from a run only.

    Such a model makes its results itself.
    """

    def __init__(self, inputs: Sequence[Slot]) -> None:
        self._wanted = [
            (slot.dtype, len(slot.shape), [(axis, n) for axis, n in enumerate(slot.shape) if n >= 0]) for slot in inputs
        ]

    @staticmethod
    def suits(inputs: Sequence[Slot], outputs: Sequence[Slot]) -> bool:
        """Whether some result has open sizes, and elements lie in memory as the code wants them."""
        slots = (*inputs, *outputs)
        return not all(slot.is_static for slot in outputs) and not any(slot.is_small for slot in slots)

    def point(self, context: Context, inputs: Sequence[Any]) -> bool:
        """Let a call find its inputs; False where one of them needs a look, a copy or an error."""
        if len(inputs) != len(self._wanted):
            return False
        try:
            for number, (array, (dtype, rank, known)) in enumerate(zip(inputs, self._wanted)):  # noqa: B905 (as many)
                if type(array) is not np.ndarray or array.dtype != dtype:
                    return False
                shape = array.shape
                if len(shape) != rank:
                    return False
                for axis, size in known:
                    if shape[axis] != size:
                        return False
                address = addressof(_buffer(array))
                if address & (dtype.alignment - 1):
                    return False
                context.set_input(number, address, shape)
        except (TypeError, ValueError):  # read-only, with gaps, empty, or of a type that has no buffer
            return False
        return True
