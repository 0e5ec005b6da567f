# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the device's memory that the host of a run knows: read once, and written when somebody else needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.runtime.gpu.gpu_device import Device
from tilewright.runtime.gpu.gpu_memory import Memory, View


@dataclass
class _Number:
    data: bytes
    owner: Memory | None  # where the device has another one: to be written there, so it must not be freed


class HostNumbers:
    """What the host read from the device or is going to write to it, by address, in one run.

    A host that reads three neighbours waits once. What it writes goes to the device when a kernel or a copy may touch
    it, or the run ends: numbers of which only the host takes care never move.

    Args:
        device: whose memory it is.
    """

    __slots__ = ("_device", "_held")

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held: dict[int, _Number] = {}

    def read(self, address: int, nbytes: int, others: Sequence[int] = ()) -> bytes:
        """Return a number.

        Args:
            address: of it.
            nbytes: of one number.
            others: addresses of numbers as long, which are read next: those without a gap are fetched with it.
        """
        known = self._held.get(address)
        if known is None or len(known.data) != nbytes:
            self._fetch(*self._span(address, nbytes, others), nbytes)
            known = self._held[address]
        return known.data

    def write(self, owner: Memory, address: int, data: bytes) -> None:
        """Set a number in a piece of memory, for the device to see before it needs it."""
        known = self._held.get(address)
        if known is None or len(known.data) != len(data):
            self.forget(address, len(data))
        self._held[address] = _Number(data, owner)

    def give_views(self, values: Iterable[Any]) -> None:
        """Let the device have what the views among some values hold."""
        if self._held:
            for value in values:
                if isinstance(value, View):
                    self.give(*value.extent)

    def give(self, address: int, nbytes: int) -> None:
        """Let the device have a range of bytes, which it may read and write from here on."""
        if self._held:
            for start in self._upload(address, nbytes):
                del self._held[start]

    def finish(self, temporary: Memory | None = None) -> None:
        """Let the device have all that is new, but for what is in memory that nobody reads after the run."""
        self._held = {start: one for start, one in self._held.items() if one.owner not in (None, temporary)}
        if self._held:
            first, last = min(self._held), max(self._held)
            self._upload(first, last + len(self._held[last].data) - first)

    def forget(self, address: int, nbytes: int) -> None:
        """Something else begins in a range of bytes: what was there is undefined."""
        for start in self._touching(address, nbytes) if self._held else ():
            if start < address or start + len(self._held[start].data) > address + nbytes:
                self._upload(start, 1)  # a part of it is another one's
            del self._held[start]

    def copy(self, target: View, source: View) -> bool:
        """Copy between views without gaps if the host knows all that is copied; whether it does."""
        place, end = source.address, source.address + source.nbytes
        found: list[tuple[int, bytes]] = []
        while place < end:
            known = self._held.get(place)
            if known is None:
                return False
            found.append((place - source.address, known.data))
            place += len(known.data)
        if place != end:
            return False
        for shift, data in found:
            self.write(target.memory, target.address + shift, data)
        return True

    def _span(self, address: int, nbytes: int, others: Sequence[int]) -> tuple[int, int]:
        """First address and end of the numbers to fetch: those that lie around one without a gap."""
        wanted = {*others, address}
        first = end = address
        while first - nbytes in wanted:
            first -= nbytes
        while end in wanted:
            end += nbytes
        return first, end

    def _fetch(self, first: int, end: int, nbytes: int) -> None:
        self.give(first, end - first)
        raw = bytearray(end - first)
        self._device.download(first, memoryview(raw))
        for place in range(0, len(raw), nbytes):
            self._held[first + place] = _Number(bytes(raw[place : place + nbytes]), None)

    def _touching(self, address: int, nbytes: int) -> list[int]:
        held = self._held.items()
        return sorted(start for start, one in held if start < address + nbytes and address < start + len(one.data))

    def _upload(self, address: int, nbytes: int) -> list[int]:
        """Write what is new in a range, neighbours at once; return where the numbers in the range are."""
        found = self._touching(address, nbytes)
        run: list[int] = []
        for start in found:
            is_new = self._held[start].owner is not None
            if run and (not is_new or start != run[-1] + len(self._held[run[-1]].data)):
                self._send(run)
                run = []
            if is_new:
                run.append(start)
        if run:
            self._send(run)
        return found

    def _send(self, run: list[int]) -> None:
        self._device.upload(run[0], memoryview(b"".join(self._held[start].data for start in run)))
        for start in run:
            self._held[start].owner = None
