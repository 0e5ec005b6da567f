# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that the host of a run keeps: when they move, and that whoever reads them next finds the last ones."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_numbers import HostNumbers

MEMORY = Memory(None, 0)


class Bytes:
    """A device that is an array of bytes, and notes what moves."""

    def __init__(self, nbytes: int = 64) -> None:
        self.data = bytearray(range(nbytes))
        self.moves: list[tuple[str, int, int]] = []
        self.freed: list[int] = []

    def upload(self, address: int, data: memoryview) -> None:
        """Write."""
        self.moves.append(("up", address, data.nbytes))
        self.data[address : address + data.nbytes] = data

    def download(self, address: int, data: memoryview) -> None:
        """Read."""
        self.moves.append(("down", address, data.nbytes))
        data[:] = self.data[address : address + data.nbytes]

    def free(self, address: int) -> None:
        """Note."""
        self.freed.append(address)


@pytest.fixture
def device() -> Bytes:
    return Bytes()


@pytest.fixture
def host(device: Bytes) -> HostNumbers:
    return HostNumbers(device)  # type: ignore[arg-type]


def test_neighbours_are_read_at_once(device: Bytes, host: HostNumbers) -> None:
    assert host.read(16, 4, [8, 12, 20, 28]) == bytes(range(16, 20))
    assert host.read(20, 4) == bytes(range(20, 24))
    assert device.moves == [("down", 8, 16)]
    host.read(28, 4)
    assert device.moves[1:] == [("down", 28, 4)]


def test_what_only_the_host_writes_moves_in_the_end(device: Bytes, host: HostNumbers) -> None:
    for step in range(3):
        host.write(MEMORY, 8, bytes([step] * 4))
        host.write(MEMORY, 4, host.read(8, 4))
        host.give(32, 16)  # a kernel touches other bytes
    assert device.moves == []
    host.finish()
    assert device.moves == [("up", 4, 8)]
    host.finish()
    assert len(device.moves) == 1
    assert device.data[4:12] == bytes([2] * 8)


def test_a_kernel_sees_and_changes_numbers(device: Bytes, host: HostNumbers) -> None:
    host.write(MEMORY, 8, b"abcd")
    host.give_views([3, View.contiguous(MEMORY, "i8", [64])])
    assert device.data[8:12] == b"abcd"
    device.data[8:12] = b"efgh"  # the kernel
    assert host.read(8, 4) == b"efgh"


def test_what_begins_anew_is_not_written(device: Bytes, host: HostNumbers) -> None:
    host.write(MEMORY, 8, b"abcd")
    host.write(MEMORY, 12, b"efgh")
    host.forget(8, 4)
    host.finish()
    assert device.moves == [("up", 12, 4)]
    host.write(MEMORY, 16, b"ijkl")
    host.forget(18, 4)  # a part of it is another one's
    assert device.data[16:20] == b"ijkl"


def test_other_sizes_in_one_place(host: HostNumbers) -> None:
    host.write(MEMORY, 8, b"abcdefgh")
    assert host.read(12, 4) == b"efgh"
    host.write(MEMORY, 12, b"1234")
    assert host.read(8, 8) == b"abcd1234"


def test_copies_of_what_the_host_knows(device: Bytes, host: HostNumbers) -> None:
    source, target = (View.contiguous(MEMORY, "i32", [2], shift) for shift in (8, 24))
    assert not host.copy(target, source)
    host.write(MEMORY, 8, b"abcd")
    assert not host.copy(target, source)
    host.write(MEMORY, 12, b"efgh")
    assert host.copy(target, source) and device.moves == []
    host.finish()
    assert device.data[24:32] == b"abcdefgh"


def test_memory_lives_until_its_numbers_are_written(device: Bytes, host: HostNumbers) -> None:
    memory = Memory(device, 8)  # type: ignore[arg-type]
    host.write(memory, 8, b"abcd")
    del memory
    assert not device.freed
    host.finish()
    assert device.freed == [8]


def _do(random: np.random.Generator, host: HostNumbers, device: Bytes, wanted: bytearray) -> None:
    """One of the things that happen in a run; `wanted` is what the device's memory should be, if all were written."""
    size = int(random.choice([1, 4, 8]))
    place, other = (int(at) * size for at in random.integers(0, 64 // size, 2))
    kind = random.integers(0, 4)
    if kind == 0:
        others = [place + size] if place + 2 * size <= 64 else []
        assert host.read(place, size, others) == wanted[place : place + size]
    elif kind == 1:
        data = bytes(random.integers(0, 256, size, np.uint8))
        host.write(MEMORY, place, data)
        wanted[place : place + size] = data
    elif kind == 2:
        host.give(place, size)
        assert device.data[place : place + size] == wanted[place : place + size]
        device.data[place] = wanted[place] = int(random.integers(0, 256))
    else:
        source, target = (View.contiguous(MEMORY, "i8", [size], at) for at in (other, place))
        if place != other and host.copy(target, source):
            wanted[place : place + size] = wanted[other : other + size]


def test_any_order_is_that_of_memory() -> None:
    """Random reads, writes, copies and kernels, against an array."""
    random = np.random.default_rng(0)
    for _ in range(50):
        device = Bytes()
        host, wanted = HostNumbers(device), bytearray(device.data)  # type: ignore[arg-type]
        for _ in range(60):
            _do(random, host, device, wanted)
        host.finish()
        assert device.data == wanted


def test_extent_of_a_view() -> None:
    assert View(MEMORY, "i32", 2, (2, 3), (8, 2), 16).extent == (24, 4 * (8 + 4 + 1))
    assert View(MEMORY, "i32", 7, (3,), (-2,)).extent == (12, 20)
    assert View(MEMORY, "i32", 7, (3, 0), (1, 1)).extent == (28, 0)
