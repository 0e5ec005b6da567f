# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peak memory of a process and of all that it starts."""

from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType

_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Looks at the resident memory of a process tree at short intervals while the `with` block runs.

    Pages that processes share (libraries) count once for each of them: the figure is an upper bound.
    """

    def __init__(self, pid: int, interval: float = 0.02) -> None:
        self.bytes = 0
        self.processes = 0
        self._pid, self._interval = pid, interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        """Start to look."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End with a last look."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._interval):
            sizes = [resident(pid) for pid in tree(self._pid)]
            self.bytes = max(self.bytes, sum(sizes))
            self.processes = max(self.processes, len(sizes))


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 where it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return 0


def tree(pid: int) -> list[int]:
    """A process and what it has started, directly or not."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children") as file:
                    found += map(int, file.read().split())
    return found
