# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the numbers were measured on: the machine, and what else it did meanwhile."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

CALM = 0.08  # rounds are added while the bursts of somebody spread by more than this
BUSY = 0.1  # cores: what other processes may use while a row is measured, without a note


def _first(path: str, key: str) -> str:
    """The value of the first line `key : value` of a file in /proc."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


class Neighbours:
    """How many cores other processes use, from creation on; the given processes and this one do not count."""

    def __init__(self, own: Iterable[int]) -> None:
        self._own = [os.getpid(), *own]
        self._start = self._read()
        self._before = _ticks()

    def _read(self) -> tuple[float, float, float]:
        """(all busy time, our own time, clock) in seconds."""
        tick = os.sysconf("SC_CLK_TCK")
        user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
        times = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in self._own]
        own = sum(int(t) for pair in times for t in pair)
        return (user + nice + system + irq + soft) / tick, own / tick, time.monotonic()

    def cores(self) -> float:
        """Cores kept busy by others, on average since creation."""
        busy, own, clock = (now - then for now, then in zip(self._read(), self._start, strict=True))
        return max(0.0, (busy - own) / max(clock, 1e-9))

    def busiest(self) -> str:
        """The program among the other processes that used most time, without its folder and arguments, or nothing."""
        used = {pid: ticks - self._before.get(pid, 0) for pid, ticks in _ticks().items() if pid not in self._own}
        pid = max(used, key=used.__getitem__, default=0)
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip() if used[pid] else ""
        except (OSError, KeyError):
            return ""


def _ticks() -> dict[int, int]:
    """Time of each process so far, in clock ticks."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            user, system = file.read_text().rsplit(")", 1)[1].split()[11:13]
        except OSError:  # it has just ended
            continue
        found[int(file.parent.name)] = int(user) + int(system)
    return found


def describe() -> dict[str, object]:
    """CPU, instruction sets, memory, system and the load at this moment."""
    flags = _first("/proc/cpuinfo", "flags").split()
    family, model = _first("/proc/cpuinfo", "cpu family"), _first("/proc/cpuinfo", "model\t")
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "family_model": f"{family}/{model}",
        "cores": len(os.sched_getaffinity(0)),
        "flags": sorted(f for f in flags if f.startswith(("avx", "fma", "amx", "f16c"))),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": list(os.getloadavg()),
    }
