# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the probes whose waits end (ladder/watched.py): set-up in, observation out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.gpu.far.ladder.diagnosis import wgmma
from bench.gpu.far.ladder.diagnosis.launches import BITS, MOST, WORDS
from bench.gpu.far.ladder.diagnosis.phases import RingObserved
from bench.gpu.far.ladder.diagnosis.tma import POISON, SHARED_BYTES, STEP, TmaObserved
from bench.gpu.far.ladder.setup import LaunchSetup, MbarrierSetup, OperandSetup, TmaSetup, WgmmaSetup
from tilewright.runtime.gpu.gpu_device import Device, Extent

#: bytes behind the dumped shared memory, for mbarriers
BARRIERS = 1024
_NONE = 2**31 - 1


class Memory:
    """Buffers of one launch on a device; freed at the end.

    Args:
        device: a GPU or the emulator.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._held: list[int] = []

    def put(self, data: np.ndarray) -> int:
        """The address of a copy of an array."""
        address = self.device.alloc(data.nbytes)
        self._held.append(address)
        self.device.upload(address, memoryview(np.ascontiguousarray(data).view(np.uint8).ravel()))
        return address

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        """What is at an address, of the shape and type of an array."""
        found = np.empty_like(like)
        self.device.download(address, memoryview(found.view(np.uint8).ravel()))
        return found

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        for address in self._held:
            self.device.free(address)


def start(
    device: Device,
    ptx: str,
    name: str,
    values: Sequence[bytes],
    grid: Extent = (1, 1, 1),
    block: Extent = (128, 1, 1),
    cluster: Extent = (1, 1, 1),
    shared_bytes: int = SHARED_BYTES + BARRIERS,
) -> None:
    """Launch a kernel of a text and wait for it."""
    module = device.load(ptx.encode() + b"\0")
    device.launch(device.function(module, name), grid, block, cluster, shared_bytes, values)
    device.synchronize()


def u64(*values: int) -> list[bytes]:
    """Parameters of 64 bits."""
    return [(value % 2**64).to_bytes(8, "little") for value in values]


def u32(*values: int) -> list[bytes]:
    """Parameters of 32 bits."""
    return [(value % 2**32).to_bytes(4, "little") for value in values]


def box(
    device: Device, ptx: str, setup: TmaSetup, memory: np.ndarray, image: np.ndarray, limit: int = 1 << 22
) -> TmaObserved:
    """Run the probe of one box.

    Args:
        device: where.
        ptx: `watched.box(rank)`.
        setup: what it is given.
        memory: bytes of the tensor's buffer.
        image: bytes of shared memory before.
        limit: polls after which a phase is taken for one that never ends.

    Raises:
        UserError: the driver refuses the descriptor or the launch.
    """
    with Memory(device) as held:
        tensor, before, dump, verdict = map(held.put, (memory, image, np.zeros_like(image), np.zeros(3, np.int32)))
        sizes = (setup.dims, setup.strides, setup.box, setup.swizzle, setup.fill, setup.steps)
        descriptor = device.tensor_map(setup.element, tensor + setup.offset, *sizes)
        numbers = (setup.expected_bytes, setup.smem_offset, setup.arrivals, setup.parity, limit)
        coordinates = (*setup.coordinates, 0, 0, 0, 0)[:5]
        start(device, ptx, "box", [descriptor, *u64(before, dump, verdict), *u32(*numbers, *coordinates)])
        over, excess, missing = held.get(verdict, np.zeros(3, np.int32)).tolist()
        return TmaObserved(held.get(dump, image), bool(over), None if excess == _NONE else excess / STEP, missing)


_SWIZZLE_CODES = {0: 0, 128: 1, 64: 2, 32: 3}


def descriptor(operand: OperandSetup) -> int:
    """The 64 bits of a matrix descriptor, its address from the start of shared memory."""
    fields = (operand.address >> 4 & 0x3FFF) | (operand.leading >> 4 & 0x3FFF) << 16
    fields |= (operand.stride >> 4 & 0x3FFF) << 32 | (operand.base_offset & 7) << 49
    return fields | _SWIZZLE_CODES[operand.swizzle] << 62


def fragments_of_a(a: np.ndarray, dtype: str) -> np.ndarray:
    """A (64, steps * k), whole numbers, as the words (steps, 128, 4) of the threads' registers."""
    words = wgmma.encode(a, dtype)
    per = 4 // words.itemsize
    lanes = np.arange(128)[:, None, None]
    i = np.arange(4)[None, :, None]
    rows = 16 * (lanes // 32) + lanes % 32 // 4 + 8 * (i % 2)
    columns = 4 * per * (i // 2) + lanes % 4 * per + np.arange(per)[None, None, :]
    depth = 8 * per
    steps = [words[rows, step * depth + columns] for step in range(a.shape[1] // depth)]
    return np.stack(steps).view(np.uint32)[..., 0]


def multiply(
    device: Device, ptx: str, setup: WgmmaSetup, image: np.ndarray, registers: np.ndarray | None = None
) -> np.ndarray:
    """Run the probe of wgmma: d (64, n), float32.

    Args:
        device: where.
        ptx: `watched.multiply` for this set-up.
        setup: what it is given.
        image: bytes of shared memory.
        registers: A where it comes from registers, as `fragments_of_a` makes it.
    """
    sums = np.zeros((128, setup.n // 2), np.float32)
    left = np.zeros(4, np.uint32) if registers is None else registers
    a = setup.a or setup.b
    with Memory(device) as held:
        before, dump, place = map(held.put, (image, sums, left))
        matrices = (descriptor(a), descriptor(setup.b), a.advance >> 4, setup.b.advance >> 4)
        values = [*u64(before, dump, place, *matrices), *u32(int(setup.scale_d))]
        start(device, ptx, "multiply", [*values, np.float32(setup.initial).tobytes()])
        return wgmma.matrix_of_d(held.get(dump, sums))


def ring(device: Device, ptx: str, setup: MbarrierSetup, memory: np.ndarray, limit: int = 1 << 22) -> RingObserved:
    """Run the probe of phases.

    Args:
        device: where.
        ptx: `ladder.ring.ring()`.
        setup: what it is given.
        memory: what is loaded, uint8 (rounds, `PITCH`).
        limit: polls after which a phase is taken for one that never ends.
    """
    image = np.full(SHARED_BYTES, POISON, np.uint8)
    numbers = (setup.stages, setup.rounds, setup.full_count, setup.empty_count, setup.tx_bytes, setup.box_bytes)
    with Memory(device) as held:
        before, source, dump = map(held.put, (image, memory, image))
        result, verdict = held.put(np.full_like(memory, POISON)), held.put(np.zeros(6, np.int32))
        values = u64(before, source, result, dump, verdict)
        values += u32(*numbers, setup.full_parity, setup.empty_parity, limit)
        start(device, ptx, "ring", values, block=(96, 1, 1))
        produced, consumed, *left = held.get(verdict, np.zeros(6, np.int32)).tolist()
        full, empty = (
            (None if excess == _NONE else excess / STEP, missing) for excess, missing in (left[:2], left[2:])
        )
        return RingObserved(held.get(result, memory), held.get(dump, image), produced, consumed, full, empty)


def echo(device: Device, ptx: str, setup: LaunchSetup) -> np.ndarray:
    """Run the probe of launches: the records of all CTAs, uint32 (`MOST`, `WORDS`)."""
    none = np.zeros((MOST, WORDS), np.uint32)
    with Memory(device) as held:
        records = held.put(none)
        given = [
            (value % 2**bits).to_bytes(bits // 8, "little") for value, bits in zip(setup.values, BITS, strict=True)
        ]
        values = [*u64(records), *u32(MOST), *given]
        start(device, ptx, "echo", values, setup.grid, setup.block, setup.cluster, setup.shared_bytes)
        return held.get(records, none)
