# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What chosen cores did, and when: events of their threads and engines."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.steps import Step
from tilewright.sim.coremesh.wavelets.streams import Streams

#: Parts of a core that work side by side: its thread, and engines that receive and send, one per route.
Engine = Literal["thread", "in", "out"]
_ENGINES: tuple[Engine, ...] = ("thread", "in", "out")
#: What is done; behind a wait, the overhead of its round or collective.
What = Literal["compute", "overhead", "send", "recv", "relay", "wait"]
_WHATS: tuple[What, ...] = ("compute", "overhead", "send", "recv", "relay", "wait")
_EVENT = np.dtype(
    [("instruction", "i8"), ("engine", "i4"), ("started", "i8"), ("begin", "i8"), ("end", "i8")], align=True
)


@dataclass(frozen=True)
class Event:
    """What a part of a core did for one instruction.

    Attributes:
        core: (y, x).
        engine, what: of `Engine` and `What`.
        started: cycle in which the thread came to the instruction.
        begin, end: cycles of the kernel, of the wait for tokens or the overhead behind it; of an engine: from the first
            wavelet to behind the last.
    """

    core: tuple[int, int]
    step: Step
    engine: Engine
    what: What
    started: int
    begin: int
    end: int


class CTrace(ctypes.Structure):
    """`twmesh_trace` of Wavelets.h."""

    _fields_ = [
        ("traced", ctypes.c_void_p),
        ("room", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("event", ctypes.c_void_p),
    ]


class Recorder:
    """Room for the events of some cores of a program.

    Attributes:
        trace: what the library writes to.
    """

    def __init__(self, streams: Streams, cores: Sequence[tuple[int, int]]) -> None:
        self._streams = streams
        grid = streams.grid
        self._traced = np.zeros(grid.cores, np.uint8)
        for y, x in cores:
            if not (0 <= y < grid.height and 0 <= x < grid.width):
                raise UserError(
                    f"there is no core (y={y}, x={x}) to trace: the program has {grid.height} x {grid.width}"
                )
            self._traced[y * grid.width + x] = 1
        room = 2 * int(np.diff(streams.begin)[self._traced > 0].sum())  # a relay has two
        self._events = np.zeros(room, _EVENT)
        self.trace = CTrace(self._traced.ctypes.data, room, 0, self._events.ctypes.data)

    def events(self) -> tuple[Event, ...]:
        """What the library wrote."""
        streams, rows = self._streams, self._events[: self.trace.count]
        cores = np.searchsorted(streams.begin, rows["instruction"], side="right") - 1
        steps = streams.step_of[rows["instruction"]]
        return tuple(
            Event(
                divmod(int(core), streams.grid.width),
                streams.steps[step],
                _ENGINES[row["engine"]],
                _WHATS[streams.instructions[row["instruction"], 0]],
                *(int(row[name]) for name in ("started", "begin", "end")),
            )
            for row, core, step in zip(rows, cores, steps, strict=True)
        )
