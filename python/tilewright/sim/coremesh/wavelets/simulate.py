# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hand a program's streams to libtwmesh, and make something of what comes back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from tilewright.core.errors import InternalError, UserError
from tilewright.sim.coremesh.library import last_error, libtwmesh
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.wavelets.events import CTrace, Recorder
from tilewright.sim.coremesh.wavelets.kernels import access_bytes
from tilewright.sim.coremesh.wavelets.outcome import OUTPUTS, Outcome
from tilewright.sim.coremesh.wavelets.streams import Streams, flatten

#: Cycles after which a run is an error, unless told otherwise.
LIMIT = 20_000_000
#: What that can be at most.
MOST_CYCLES = 2**30

_DONE, _DEADLOCK, _LIMIT = range(3)
_REASONS = (
    "waits for data",
    "waits for its turn",
    "waits for room in the network",
    "waits for what that token stands for",
    "has come to its end, with something on its way",
)
#: Waiters of a cycle that a message names at most.
_NAMED = 16
#: The most cycles, or entries of a queue, of a field of a machine.
_MOST_FIELD = 2**20


class _Program(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("height", "width", "torus", "alpha", "ramp", "stage", "base", "depth")),
        *((name, ctypes.c_int32) for name in ("wavelet_bytes", "banks", "bank_bytes", "access_bytes")),
        *((name, ctypes.c_int32) for name in ("read_bytes", "write_bytes")),
        ("limit", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("flows", "channels", "tokens", "kernels")),
        *((name, ctypes.c_void_p) for name in ("flow_source", "flow_route", "flow_channel", "destination_begin")),
        *((name, ctypes.c_void_p) for name in ("destinations", "kernel", "accesses", "begin", "instructions")),
    ]


class _Waiter(ctypes.Structure):
    _fields_ = [("core", ctypes.c_int32), ("reason", ctypes.c_int32), ("instruction", ctypes.c_int64)]


class _Outcome(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int32),
        ("cycles", ctypes.c_int64),
        ("unfinished", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("finish", "compute", "links")),
        ("waiters", ctypes.c_int32),
        ("cycle_begin", ctypes.c_int32),
        ("waiter", ctypes.c_void_p),
    ]


def simulate(program: Program, machine: Machine, limit: int = LIMIT, trace: Sequence[tuple[int, int]] = ()) -> Outcome:
    """Run a program on a machine, wavelet by wavelet.

    Flows of a route without colors have virtual channels of their own; those of one color share queues.

    Args:
        limit: cycles after which the run is given up.
        trace: cores (y, x) whose events are wanted.

    Raises:
        UserError: a core to trace is not there, the program does not fit the machine, sends what nobody receives or the
            reverse, its cores wait for each other (the message has the cycle), or it takes more than ``limit`` cycles.
    """
    _check(program, machine, limit)
    streams = flatten(program, machine)
    cores = streams.grid.cores
    finish, compute = np.zeros(cores, np.int64), np.zeros(cores, np.int64)
    links = np.zeros((cores, len(OUTPUTS)), np.int64)
    waiters = (_Waiter * (4 * cores + 64))()
    outcome = _Outcome(
        finish=finish.ctypes.data,
        compute=compute.ctypes.data,
        links=links.ctypes.data,
        waiters=len(waiters),
        waiter=ctypes.addressof(waiters),
    )
    recorder = Recorder(streams, trace) if trace else None
    _call(streams, machine, limit, outcome, recorder)
    if outcome.status != _DONE:
        raise _stuck(program, streams, outcome, list(waiters[: outcome.waiters]), limit)
    shape = program.height, program.width
    return Outcome(
        program.name,
        machine.name,
        machine.preset,
        outcome.cycles,
        finish.reshape(shape),
        compute.reshape(shape),
        links.reshape(*shape, len(OUTPUTS)),
        recorder.events() if recorder else (),
    )


def _check(program: Program, machine: Machine, limit: int) -> None:
    mesh = machine.mesh
    if not 1 <= limit <= MOST_CYCLES:
        raise UserError(f"`limit` is {limit} cycles: give 1 to {MOST_CYCLES}.")
    if program.height > mesh.height or program.width > mesh.width:
        raise UserError(
            f"Program '{program.name}' takes {program.height} x {program.width} cores; machine '{machine.name}' has "
            f"{mesh.height} x {mesh.width}. Use fewer cores or another machine."
        )
    if mesh.topology == "exchange":
        raise UserError(
            f"Machine '{machine.name}' has no routers that wavelets hop between: its topology is 'exchange'. Use the "
            "timing model for it."
        )
    if mesh.dead_cores or mesh.dead_links:
        raise UserError(
            f"Machine '{machine.name}' has defects, and wavelets know no way around them: map the program to sound "
            "cores first, or use the timing model."
        )
    for field, least in (("alpha_cycles", 1), ("ramp_cycles", 0), ("stage_cycles", 0), ("base_cycles", 0)):
        _check_field(machine, field, least)
    _check_field(machine, "queue_depth", 1)


def _check_field(machine: Machine, field: str, least: int) -> None:
    value = getattr(machine.mesh, field)
    if not least <= value <= _MOST_FIELD:
        raise UserError(
            f"Machine '{machine.name}' has {field} = {value}; wavelets are simulated with {least} to {_MOST_FIELD}. "
            "Use the timing model for it."
        )


def _call(streams: Streams, machine: Machine, limit: int, outcome: _Outcome, recorder: Recorder | None) -> None:
    mesh, flows, kernels = machine.mesh, streams.flows, streams.kernels
    counts = [group.size for group in flows.destinations]
    arrays = {
        "flow_source": np.array(flows.sources, np.int32),
        "flow_route": np.array(flows.routes, np.int32),
        "flow_channel": np.array(flows.channels, np.int32),
        "destination_begin": np.cumsum([0, *counts], dtype=np.int32),
        "destinations": np.concatenate([np.empty(0, np.int32), *flows.destinations]).astype(np.int32),
        "kernel": np.array(kernels.cycles, np.int64).reshape(-1, 3),
        "accesses": np.array(kernels.accesses, np.int32).reshape(-1, mesh.sram_banks),
        "begin": streams.begin,
        "instructions": np.ascontiguousarray(streams.instructions),
    }
    program = _Program(
        height=streams.grid.height,
        width=streams.grid.width,
        torus=mesh.topology == "torus",
        alpha=mesh.alpha_cycles,
        ramp=max(mesh.ramp_cycles, 1),
        stage=max(mesh.stage_cycles, 1),
        base=mesh.base_cycles,
        depth=mesh.queue_depth,
        wavelet_bytes=max(math.floor(mesh.link_bytes_per_cycle), 1),
        banks=mesh.sram_banks,
        bank_bytes=kernels.bank_bytes,
        access_bytes=access_bytes(machine),
        read_bytes=mesh.read_bytes_per_cycle,
        write_bytes=mesh.write_bytes_per_cycle,
        limit=limit,
        flows=len(flows.sources),
        channels=max(flows.channels, default=-1) + 1,
        tokens=streams.tokens,
        kernels=len(kernels.cycles),
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    call = libtwmesh().twmesh_wavelets
    pointers = [ctypes.POINTER(kind) for kind in (_Program, _Outcome, CTrace)]
    call.argtypes, call.restype = pointers, ctypes.c_int32
    trace = ctypes.byref(recorder.trace) if recorder else None
    if call(ctypes.byref(program), ctypes.byref(outcome), trace) != 0:
        raise InternalError(f"the wavelet simulator refuses a program that was made for it: {last_error()}")


def _stuck(program: Program, streams: Streams, outcome: _Outcome, waiters: list[_Waiter], limit: int) -> UserError:
    chain = [_say(streams, waiter) for waiter in waiters]
    if outcome.status == _LIMIT:
        lines = "\n  ".join(chain[:_NAMED])
        return UserError(
            f"Program '{program.name}' takes more than the limit of {limit} cycles: {outcome.unfinished} of "
            f"{streams.grid.cores} cores are not done. One of them:\n  {lines}\nRaise `limit` if it should take that "
            "long."
        )
    cycle = chain[outcome.cycle_begin :]
    shown = cycle if len(cycle) <= _NAMED else [*cycle[: _NAMED - 1], f"... ({len(cycle) - _NAMED} more)", cycle[-1]]
    lines = "\n  ".join(shown)
    return UserError(
        f"Deadlock: {outcome.unfinished} cores wait for ever; these for each other:\n  {lines}\nStart one of these "
        "transfers before the wait that it stands behind, make messages that nobody takes yet shorter than the queues "
        "on their way, or give flows around a ring colors of their own."
    )


def _say(streams: Streams, waiter: _Waiter) -> str:
    name = streams.grid.name(waiter.core)
    if waiter.instruction < 0:
        return f"{name} {_REASONS[waiter.reason]}"
    return f"{name}: {streams.steps[streams.step_of[waiter.instruction]]} {_REASONS[waiter.reason]}"
