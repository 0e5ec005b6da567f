# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times a program on a machine at full scale (tier T1)."""

from __future__ import annotations

import ctypes
import functools
from typing import Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh import library
from tilewright.sim.coremesh.checks.soundness import check_soundness
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing.result import Split, Timing
from tilewright.sim.coremesh.timing.words import LIMIT, Writer

#: How far sender and receiver must agree. ``dataflow``: data flow as far as the fabric holds them; ``rendezvous``: a
#: message starts once its receiver has said that it is ready; ``lockstep``: at each wait, all cores wait for the last.
Sync = Literal["dataflow", "rendezvous", "lockstep"]


class _Result(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("total", "compute", "overhead", "moving", "extrapolated", "computed", "remembered")
    ]


@functools.cache
def _function() -> ctypes._NamedFuncPointer:
    function = library.libtwmesh().twmesh_time
    words = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
    function.argtypes = [words, ctypes.POINTER(_Result), words, ctypes.c_void_p]
    function.restype = ctypes.c_int32
    return function


def time_program(
    program: Program,
    machine: Machine,
    *,
    sync: Sync = "dataflow",
    fabric_entries: int | None = None,
    period: bool = True,
    share: bool = True,
    loads: bool = True,
    limit: int = LIMIT,
    check: bool = False,
) -> Timing:
    """Return the time of a program: an exact max-plus recurrence over the clocks of all cores and their engines.

    A message of W cycles over h hops that starts at s has left its sender at s + W, and has been received at
    s + W + h * alpha + 2 * ramp + 1 (Luczynski et al., "Near-Optimal Wafer-Scale Reduce", HPDC 2024, whose closed
    forms follow). Flows of one instruction that meet on a link share it max-min fair.

    Args:
        fabric_entries: wavelets that the fabric holds per hop: the sender of a longer message stalls until its
            receiver takes the rest. None: any number.
        period: leave a loop early once its state is one that it was in before, but for the time; the result is the
            same to the cycle, and says so.
        share: compute rows of cores that are in the same state once; the result is the same.
        loads: count the bytes on each link.
        limit: instructions after which the timing is given up; those of loops count in each turn that is simulated.
        check: first refuse what the functional tier would refuse: races, reads of what nobody wrote, messages without
            sender or receiver, deadlocks. Takes longer than the timing of a layer; `fit_program` has done the same.

    Raises:
        UserError: the program cannot be timed: it names a route, buffer or core, does not get past a wait, or takes
            more than ``limit`` instructions; or a check fails.
    """
    if check:
        check_soundness(program, machine)
    writer = Writer(program, machine)
    words = writer.write(sync, fabric_entries, share, period, limit)
    ends = np.zeros((program.height, program.width), dtype=np.int64)
    counts = np.zeros((4, program.height, program.width) if loads else (0, 0, 0), dtype=np.int64)
    result = _Result()
    failed = _function()(words, ctypes.byref(result), ends, counts.ctypes.data if loads else None)
    if failed:
        raise UserError(f"program '{program.name}' cannot be timed: {library.last_error()}")
    scale = writer.scale
    idle = result.total - result.compute - result.moving - result.overhead
    parts = (result.compute, result.moving, result.overhead, idle)
    return Timing(
        cycles=result.total / scale,
        split=Split(*(part / scale for part in parts)),
        ends=ends / scale,
        loads=_bytes(counts, machine),
        machine=machine,
        sync=sync,
        fabric_entries=fabric_entries,
        tier="T1",
        extrapolated=bool(result.extrapolated),
        computed=result.computed,
        remembered=result.remembered,
    )


def _bytes(wavelets: np.ndarray, machine: Machine) -> np.ndarray:
    size = machine.mesh.link_bytes_per_cycle
    return wavelets * int(size) if float(size).is_integer() else np.rint(wavelets * size).astype(np.int64)
