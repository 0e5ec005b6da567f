# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stays in the cores' memories from program to program, what streams in, and what goes out in between.

Weights stay from call to call. Where a core's memory is too small for that, the largest ones stream in from outside in
each call. Where it were too small without any that stays, values wait outside between their readers, those that are
read the latest first (Belady, 1966): they go out once they are made, and come in again before they are read. What
comes in does so while the program before runs, where there is room for both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.errors import UserError
from tilewright.ir.diagnostics import remark
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.targets.mesh.attributes import MEMORY, STREAMED, number
from tilewright.targets.mesh.control.loops import in_order
from tilewright.targets.mesh.memory.ahead import bring_ahead
from tilewright.targets.mesh.memory.held import Held, Memory
from tilewright.targets.mesh.memory.waiting import can_wait, next_read, wait_outside


def place(block: ir.Block, peaks: Mapping[int, int], machine: Machine, resident: bool = False) -> None:
    """Say what streams in from outside and what waits there, so that all fits; note the bytes of each program.

    What is read again is counted beside the program's own buffers, unless the program leaves it as it is.

    Args:
        block: of the function.
        peaks: for the number of each op that is a program, in the order of the text and with those of loops, bytes of
            its fullest core, without code.
        resident: weights have to stay: nothing streams.

    Raises:
        UserError: a core's memory is too small for a program and what it reads, or weights have to stay.
    """
    memory = Memory(in_order(block), peaks)
    room = machine.sram_bytes - machine.mesh.code_bytes
    streams = bool(machine.mesh.offchip_bytes_per_cycle) and not resident
    weights = [one for one in memory.held if one.stays]
    if streams and memory.needs.max(initial=0) > room:
        for one in weights:
            memory.change(one, one.spans)
    for at in range(len(memory.at)):
        while memory.needs[at] > room:
            found = _latest(memory, at) if streams else None
            if found is None:
                raise _too_much(memory, machine, resident)
            wait_outside(found, memory, room)
    _keep(weights, memory, room, machine)
    bring_ahead(memory, room)
    for op in memory.unread:
        op.erase()
    for at, need in zip(memory.at.tolist(), memory.needs.tolist(), strict=True):
        memory.operations[at].attributes[MEMORY] = number(machine.mesh.code_bytes + need)


def _keep(weights: list[Held], memory: Memory, room: int, machine: Machine) -> None:
    """Let stay what fits beside all, the smallest first: the largest stream, as few as can be."""
    for one in sorted(weights, key=lambda one: one.count):
        if one.stays or one.op in memory.unread:
            continue
        spans = one.spans
        memory.change(one, spans, stays=not one.waits)
        if one.waits or memory.needs.max(initial=0) > room:
            memory.change(one, spans)
            one.op.attributes[STREAMED] = ir.UnitAttr.get()
            remark(
                one.op,
                f"{one.count} bytes a core stream in from outside in each call: the cores of {machine.name} cannot "
                "keep them",
            )


def _latest(memory: Memory, at: int) -> Held | None:
    """What is read again the latest of all that can wait outside; of several the largest."""
    found = [one for one in memory.beside(at) if can_wait(one)]
    return max(found, key=lambda one: (next_read(one, memory, at), one.count), default=None)


def _too_much(memory: Memory, machine: Machine, resident: bool) -> UserError:
    at = int(np.argmax(memory.needs))
    op = memory.operations[memory.at[at]]
    name = ir.StringAttr(op.attributes["name"]).value
    beside = sorted((one.count for one in memory.beside(at)), reverse=True)
    remedy = "leave resident= out (weights stream in for each call)" if resident else "a model that is cut in parts"
    error = UserError(
        f"Memory: a core of machine '{machine.name}' has {machine.sram_bytes} bytes, of which code takes "
        f"{machine.mesh.code_bytes}; at program '{name}' core (y=0, x=0) needs {memory.needs[at]}: {memory.own[at]} of "
        f"the program's own, and {len(beside)} tensors that are read again ({', '.join(map(str, beside[:8]))} bytes). "
        f"Use a machine with more cores or memory, narrower numbers, a smaller batch, or {remedy}."
    )
    error.mlir_location = op.location  # type: ignore[attr-defined]
    return error
