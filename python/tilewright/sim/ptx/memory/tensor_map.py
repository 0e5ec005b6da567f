# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps: what a TMA copy knows of a tensor in global memory, and which bytes one of its boxes covers.

The 128 bytes of NVIDIA's descriptor are not documented; the emulator's device makes its own, which only the emulator's
TMA reads. Everything is innermost dimension first, as ``cuTensorMapEncodeTiled`` has it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.runtime.gpu import tensor_map as rules
from tilewright.sim.ptx.memory.swizzle import swizzle

_MAGIC = b"TWTM"
_LAYOUT = struct.Struct("<4sBBBBQ5Q4Q5H5B")
_ELEMENTS = tuple(rules.ELEMENT_BYTES)
_NAN_BITS = {8: 0x7FFFFFFFFFFFFFFF, 4: 0x7FFFFFFF, 2: 0x7FFF}


@dataclass(frozen=True)
class TensorMap:
    """A tiled tensor map; arguments as in ``Device.tensor_map``.

    Args:
        element: name of the element type (:data:`tilewright.runtime.gpu.tensor_map.ELEMENT_BYTES`).
        address: of the tensor's first element in global memory.
        dims: elements along each dimension, innermost first.
        strides: bytes from one index to the next along dimensions 1 and up.
        box: elements that one copy covers along each dimension.
        swizzle: 0, 32, 64 or 128.
        fill: ``zero`` or ``nan``: what a load puts where the box leaves the tensor.
        steps: of which it moves every so manieth (``elementStrides``); none: all.
    """

    element: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"
    steps: tuple[int, ...] = ()

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return rules.ELEMENT_BYTES[self.element]

    @property
    def moved(self) -> tuple[tuple[int, int], ...]:
        """Along each dimension, how many elements a copy moves, and in which steps."""
        steps = self.steps or (1,) * len(self.box)
        return tuple((-(-size // step), step) for size, step in zip(self.box, steps, strict=True))

    @property
    def row_bytes(self) -> int:
        """Bytes of a box's innermost row."""
        return self.box[0] * self.element_bytes

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy moves; also what it adds to an mbarrier, in bounds or not."""
        return int(np.prod([count for count, _ in self.moved])) * self.element_bytes

    def encode(self) -> bytes:
        """The map as 128 bytes, to be a kernel's parameter. Raises UserError where TMA hardware would not take it."""
        rules.check(self.element, self.address, self.dims, self.strides, self.box, self.swizzle, self.fill, self.steps)
        rank = len(self.dims)
        body = _LAYOUT.pack(
            _MAGIC,
            rank,
            _ELEMENTS.index(self.element),
            rules.SWIZZLES.index(self.swizzle),
            rules.FILLS.index(self.fill),
            self.address,
            *_padded(self.dims, 5),
            *_padded(self.strides, 4),
            *_padded(self.box, 5),
            *_padded(self.steps, 5),
        )
        body = body.ljust(rules.SIZE - 4, b"\0")
        return body + struct.pack("<I", zlib.crc32(body))

    @staticmethod
    def decode(data: bytes) -> TensorMap:
        """The map in 128 bytes that :meth:`encode` made. Raises ValueError for any others."""
        body, (checksum,) = data[:-4], struct.unpack("<I", data[-4:])
        if len(data) != rules.SIZE or not body.startswith(_MAGIC) or zlib.crc32(body) != checksum:
            raise ValueError("these 128 bytes are no tensor map of the emulator's device")
        return _decoded(data)

    def clip(self, at: Sequence[int]) -> list[tuple[int, int]]:
        """For each dimension, which ``(first, past)`` of the elements moved, for a box there, lie in the tensor."""
        parts = []
        for coordinate, (count, step), extent in zip(at, self.moved, self.dims, strict=True):
            first = min(max(0, -(coordinate // step)), count)
            parts.append((first, max(first, min(count, -((coordinate - extent) // step)))))
        return parts

    def span(self, at: Sequence[int]) -> tuple[int, int] | None:
        """First address and number of bytes that hold the box's part in the tensor; None if there is none."""
        parts = self.clip(at)
        if any(first >= past for first, past in parts):
            return None
        strides, steps = (self.element_bytes, *self.strides), [step for _, step in self.moved]
        low = self.address + sum(
            (c + first * step) * s for c, (first, _), s, step in zip(at, parts, strides, steps, strict=True)
        )
        extent = sum(
            (past - first - 1) * s * step for (first, past), s, step in zip(parts, strides, steps, strict=True)
        )
        return low, extent + self.element_bytes

    def view(self, data: np.ndarray, start: int, at: Sequence[int]) -> np.ndarray:
        """The box's part in the tensor as a view of bytes: outermost dimension first, last axis = bytes of a row.

        Args:
            data: flat array of one byte per element (memory, or a flag per byte) that holds the span.
            start: where in ``data`` the span begins.
            at: coordinates of the box, innermost first.
        """
        parts = self.clip(at)
        row = (parts[0][1] - parts[0][0]) * self.element_bytes
        shape = [past - first for first, past in reversed(parts[1:])] + [row]
        strides = [s * step for s, (_, step) in zip(self.strides, self.moved[1:], strict=True)]
        return np.lib.stride_tricks.as_strided(data[start:], shape, [*reversed(strides), 1])

    def window(self, tile: np.ndarray, at: Sequence[int]) -> np.ndarray:
        """The same part within a whole box ``tile`` of shape :meth:`tile_shape` (a view)."""
        parts, size = self.clip(at), self.element_bytes
        rows = tuple(slice(first, past) for first, past in reversed(parts[1:]))
        return tile[(*rows, slice(parts[0][0] * size, parts[0][1] * size))]

    def tile_shape(self) -> tuple[int, ...]:
        """Shape of a box as bytes: outermost dimension first, last axis = bytes of a row."""
        return (*(count for count, _ in reversed(self.moved[1:])), self.row_bytes)

    def filled(self) -> np.ndarray:
        """A box of bytes as a load leaves it where nothing is in bounds."""
        tile = np.zeros(self.tile_shape(), np.uint8)
        if self.fill == "nan":
            size = self.element_bytes
            tile.reshape(-1, size)[:] = np.frombuffer(_NAN_BITS[size].to_bytes(size, "little"), np.uint8)
        return tile

    def chunks(self, address: int) -> np.ndarray:
        """Where the box's 16-byte chunks, in their order, lie in shared memory: addresses, for a box at ``address``."""
        low = address % 1024
        return address - low + _chunk_offsets(low, self.box_bytes // 16, self.swizzle)


def _padded(values: Sequence[int], count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]


@lru_cache(maxsize=1024)
def _decoded(data: bytes) -> TensorMap:
    _, rank, element, mode, fill, address, *rest = _LAYOUT.unpack_from(data)
    dims, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:]
    return TensorMap(
        element=_ELEMENTS[element],
        address=address,
        dims=tuple(dims[:rank]),
        strides=tuple(strides[: rank - 1]),
        box=tuple(box[:rank]),
        swizzle=rules.SWIZZLES[mode],
        fill=rules.FILLS[fill],
        steps=tuple(steps[:rank]) if steps[0] else (),
    )


@lru_cache(maxsize=1024)
def _chunk_offsets(low: int, count: int, mode: int) -> np.ndarray:
    offsets = swizzle(low + 16 * np.arange(count), mode)
    offsets.setflags(write=False)
    return offsets
