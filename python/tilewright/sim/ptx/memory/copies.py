# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two ends of bulk copies: ranges and boxes of global memory, chunks of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.tensor_map import TensorMap
from tilewright.sim.ptx.syntax import types

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.memory.global_memory import Allocation
    from tilewright.sim.ptx.sync.step import Step

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]

_NUMBERS = {name: types.NUMPY[name] for name in "u32 s32 u64 s64 b32 b64 f16 bf16 f32 f64".split()}
_OF_ELEMENT = {"i32": "s32", "i64": "s64"}


def _increment(old: np.ndarray, bound: np.ndarray) -> np.ndarray:
    return np.where(old >= bound, 0, old + 1).astype(old.dtype)


def _decrement(old: np.ndarray, bound: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > bound), bound, old - 1).astype(old.dtype)


_REDUCTIONS: dict[str, Combine] = {
    "add": lambda old, new: (old + new).astype(old.dtype),
    "min": np.fmin,
    "max": np.fmax,
    "inc": _increment,
    "dec": _decrement,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduction(operation: str, type_name: str) -> Combine:
    """A reducing copy's function of old and new bytes (uint8 arrays of equal shape) to the result's bytes.

    Raises ValueError for operations and types that copies do not have.
    """
    number = _NUMBERS.get(_OF_ELEMENT.get(type_name, type_name))
    combine = _REDUCTIONS.get(operation)
    if number is None or combine is None:
        raise ValueError(f"no copy reduces by .{operation} of .{type_name}")
    if operation in ("and", "or", "xor", "inc", "dec") and number.kind != "u" and operation in ("inc", "dec"):
        raise ValueError(f".{operation} is for unsigned numbers, not .{type_name}")

    def run(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            out = combine(np.ascontiguousarray(old).view(number), np.ascontiguousarray(new).view(number))
        return np.ascontiguousarray(out).view(np.uint8)

    return run


@dataclass(frozen=True)
class Linear:
    """Bytes that follow each other in global memory."""

    allocation: Allocation
    offset: int
    nbytes: int

    def undefined(self) -> bool:
        """Whether some byte was never written."""
        part = self.allocation.defined[self.offset : self.offset + self.nbytes]
        return not self.allocation.fully_defined and not bool(part.all())

    def traffic(self) -> tuple[int, int]:
        """Bytes of global memory, and sectors of 32 bytes that hold them."""
        return self.nbytes, (self.offset + self.nbytes - 1) // 32 - self.offset // 32 + 1

    def rows(self) -> tuple[np.ndarray, int]:
        """Offsets of rows in the allocation, and the bytes of a row."""
        return np.array([self.offset]), self.nbytes

    def read(self) -> np.ndarray:
        """A copy of the bytes."""
        return self.allocation.data[self.offset : self.offset + self.nbytes].copy()

    def write(self, data: np.ndarray, combine: Combine | None) -> None:
        """Put bytes there, combined with the old ones if a function is given."""
        part = self.allocation.data[self.offset : self.offset + self.nbytes]
        part[:] = data.ravel() if combine is None else combine(part, data.ravel())
        self.allocation.defined[self.offset : self.offset + self.nbytes] = True


@dataclass(frozen=True)
class Tiled:
    """A box of a tensor in global memory; ``allocation`` is None where the whole box is out of bounds."""

    map: TensorMap
    at: tuple[int, ...]
    allocation: Allocation | None
    offset: int

    def undefined(self) -> bool:
        """Whether some byte in bounds was never written."""
        if self.allocation is None or self.allocation.fully_defined:
            return False
        return not bool(self.map.view(self.allocation.defined.view(np.uint8), self.offset, self.at).all())

    def traffic(self) -> tuple[int, int]:
        """Bytes of global memory in bounds, and sectors of 32 bytes that hold them."""
        starts, row = self.rows()
        return row * len(starts), int(((starts + row - 1) // 32 - starts // 32 + 1).sum())

    def rows(self) -> tuple[np.ndarray, int]:
        """Offsets in the allocation of the box's rows in bounds, and the bytes of such a row."""
        if self.allocation is None:
            return np.zeros(0, np.int64), 0
        parts = self.map.clip(self.at)
        starts = np.array([self.offset])
        for (first, past), stride in zip(parts[1:], self.map.strides, strict=True):
            starts = (starts[:, None] + np.arange(past - first) * stride).ravel()
        return starts, (parts[0][1] - parts[0][0]) * self.map.element_bytes

    def read(self) -> np.ndarray:
        """The box's bytes, flat, filled where it is out of bounds."""
        tile = self.map.filled()
        if self.allocation is not None:
            self.map.window(tile, self.at)[...] = self.map.view(self.allocation.data, self.offset, self.at)
        return tile.reshape(-1)

    def write(self, data: np.ndarray, combine: Combine | None) -> None:
        """Put a box there; what is out of bounds is dropped."""
        if self.allocation is None:
            return
        new = self.map.window(data.reshape(self.map.tile_shape()), self.at)
        old = self.map.view(self.allocation.data, self.offset, self.at)
        old[...] = new if combine is None else combine(old, new).reshape(old.shape)
        self.map.view(self.allocation.defined.view(np.uint8), self.offset, self.at)[...] = 1


def linear(step: Step, lane: int, address: int, nbytes: int) -> Linear:
    """A range of global memory, checked."""
    allocation, offset = _find(step, lane, address, nbytes)
    return Linear(allocation, offset, nbytes)


def tiled(step: Step, lane: int, data: bytes, at: Sequence[int], rank: int) -> Tiled:
    """The box at some coordinates of the tensor map in 128 bytes, checked."""
    try:
        found = TensorMap.decode(data)
    except ValueError as error:
        step.fail("misaligned", str(error), step.only(lane))
    if len(found.dims) != rank or len(at) != rank:
        step.fail("misaligned", f"a tensor map of {len(found.dims)} dimensions in a copy of {rank}", step.only(lane))
    span = found.span(at)
    if span is None:
        return Tiled(found, tuple(at), None, 0)
    allocation, offset = _find(step, lane, *span)
    return Tiled(found, tuple(at), allocation, offset)


def _find(step: Step, lane: int, address: int, nbytes: int) -> tuple[Allocation, int]:
    part = step.narrowed(step.only(lane))
    memory = step.machine.memory
    allocation = memory.allocations.get(address >> 40)
    offset = address - allocation.address if allocation else 0
    if allocation is None or offset < 0 or offset + nbytes > allocation.size:
        part.fail("out-of-bounds", f"a copy of {nbytes} bytes at {address:#x}: {memory.describe(address)}")
    return allocation, offset


def read_shared(machine: Machine, chunks: np.ndarray) -> np.ndarray:
    """The bytes of 16-byte chunks (flat positions), flat."""
    return machine.shared.rows(8, 2).take(chunks // 16, axis=0).view(np.uint8).reshape(-1)


def write_shared(machine: Machine, chunks: np.ndarray, data: np.ndarray) -> None:
    """Write 16-byte chunks."""
    machine.shared.rows(8, 2)[chunks // 16] = data.view(np.uint64).reshape(-1, 2)
    machine.shared.mark(chunks, 16)
    machine.progress += 1
