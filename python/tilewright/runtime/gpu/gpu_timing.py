# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of launches by events, without the time that the host takes between them.

An event's time is that at which the GPU comes to it. A GPU that waits for its host would count what the host does
between a launch and its events: tens of microseconds, more than most kernels take. So the stream gets work first
(fills of memory that nobody reads) that lasts until all launches stand behind it; whether it did is known from the
first event, which must not have happened when the last one was recorded.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.core.errors import UserError
from tilewright.runtime.gpu.gpu_device import Device, TimingDevice

log = logging.getLogger("tilewright")

#: Bytes of the memory that is filled: some 80 us on a large GPU, far longer than asking for it takes. Less where there
#: is no room.
_BYTES = 256 << 20
_LEAST_BYTES = 1 << 20
#: Fills before the first launch, to begin with and at most.
_FILLS = 4
_MOST_FILLS = 1024


class Backlog:
    """Work that a GPU is busy with while launches are put behind it. One for a program: it learns how much is enough.

    Attributes:
        fills: of memory, in front of the launches.
    """

    def __init__(self) -> None:
        """Begin with little."""
        self.fills = _FILLS

    def run(self, device: Device, launch: Callable[[], Any]) -> None:
        """Call `launch` behind enough work that the GPU has not begun with it when the call returns.

        It is called again, behind twice as much, where the GPU came to it meanwhile: in the end with no success where
        it waits for the GPU itself.

        Args:
            device: that the launches go to; one that cannot tell whether an event has happened gets no work before.
            launch: starts work, and returns its first event; None where it started none.
        """
        if not isinstance(device, TimingDevice):
            launch()
            return
        with _scratch(device) as (address, nbytes):
            while True:
                for _ in range(self.fills):
                    device.fill(address, 0, nbytes)
                first = launch()
                if first is None or not device.is_done(first):
                    return
                if self.fills >= _MOST_FILLS:
                    log.warning("the times of launches have the host's in them: it waits for the GPU between them")
                    return
                self.fills *= 2
                device.synchronize()


@contextlib.contextmanager
def _scratch(device: Device) -> Iterator[tuple[int, int]]:
    """Memory for a while: its address and bytes."""
    nbytes = _BYTES
    while True:
        try:
            address = device.alloc(nbytes)
            break
        except UserError:
            if nbytes <= _LEAST_BYTES:
                raise
            nbytes //= 2
    try:
        yield address, nbytes
    finally:
        device.free(address)
