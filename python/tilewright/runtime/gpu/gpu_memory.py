# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers of a host program: counted pieces of device memory, and strided views into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.dtypes import item_bytes, name_of_mlir
from tilewright.core.errors import UserError
from tilewright.runtime.gpu.gpu_device import CheckingDevice, Device


class Memory:
    """A piece of device memory; given back when no view refers to it.

    Args:
        device: that holds it; None for memory that someone else owns.
        address: of its first byte.
    """

    __slots__ = ("__weakref__", "_device", "address")

    def __init__(self, device: Device | None, address: int) -> None:
        self._device = device
        self.address = address

    @classmethod
    def allocate(cls, device: Device, nbytes: int, name: str = "") -> Memory:
        """Take memory of the device, at least one byte: each piece has an address of its own. Messages name it."""
        address = device.alloc(max(1, nbytes))
        if name and isinstance(device, CheckingDevice):
            device.label(address, name)
        return cls(device, address)

    def __del__(self) -> None:
        """Give the memory back; work that was started before may still use it."""
        if self._device is not None:
            self._device.free(self.address)


def element_bytes(dtype: str) -> int:
    """Return the bytes between neighbours of an element type."""
    return item_bytes(name_of_mlir(dtype))


@dataclass(frozen=True, slots=True)
class View:
    """Elements in device memory.

    Attributes:
        memory: what holds them.
        dtype: element type.
        offset: of the first element from the start of `memory`, in elements.
        sizes: number of elements along each dimension.
        strides: distance of neighbours along each dimension, in elements.
        shift: bytes from the start of `memory` to where `offset` counts from.
    """

    memory: Memory
    dtype: str
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shift: int = 0

    @classmethod
    def contiguous(cls, memory: Memory, dtype: str, sizes: Sequence[int], shift: int = 0) -> View:
        """Return a view in row-major order without gaps."""
        return cls(memory, dtype, 0, tuple(sizes), row_major(sizes), shift)

    @property
    def base(self) -> int:
        """The address that `offset` counts from."""
        return self.memory.address + self.shift

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self.base + self.offset * element_bytes(self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return math.prod(self.sizes) * element_bytes(self.dtype)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        wanted = row_major(self.sizes)
        pairs = zip(self.sizes, self.strides, wanted, strict=True)
        return 0 in self.sizes or all(size == 1 or stride == want for size, stride, want in pairs)

    @property
    def extent(self) -> tuple[int, int]:
        """The address of the first byte, and the bytes up to the last element's end, those of gaps too."""
        if 0 in self.sizes:
            return self.address, 0
        steps = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]
        below, above = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
        size = element_bytes(self.dtype)
        return self.address + below * size, (above - below + 1) * size

    def address_of(self, indices: Sequence[int]) -> int:
        """Return the address of one element.

        Raises:
            UserError: it is outside.
        """
        for axis, (index, size) in enumerate(zip(indices, self.sizes, strict=True)):
            if not 0 <= index < size:
                raise UserError(f"the model reads element {index} of {size} along dimension {axis} of a tensor")
        place = self.offset + sum(i * stride for i, stride in zip(indices, self.strides, strict=True))
        return self.base + place * element_bytes(self.dtype)


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of contiguous elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(sizes)
    for axis in range(len(sizes) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sizes[axis + 1]
    return tuple(strides)
