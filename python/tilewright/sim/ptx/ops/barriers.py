# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers of a CTA, fences, nanosleep, trap."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.sync.step import Wait
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Register
from tilewright.sim.ptx.syntax.types import NUMPY

_REDUCE = {"popc": np.add, "and": np.bitwise_and, "or": np.bitwise_or}


@opcode("bar.warp")
def bar_warp(ins, decode):
    """Lanes of a warp meet, and see each other's writes."""

    def run(step):
        step.machine.races.warp_sync(step)

    run.members = decode.source(ins.args[0], "u32")
    return run


@opcode("bar", "barrier", "barrier.cta")
def bar(ins, decode):
    """sync, arrive, red. `bar` and what says .aligned take whole warps, other forms lanes as they come."""
    run = _barrier(ins, decode)
    run.sync = 32 if ins.parts[0] == "bar" or ins.has("aligned") else 1
    return run


def _barrier(ins, decode):
    decode.known("cta", "sync", "arrive", "red", "aligned", "popc", "and", "or", "pred", "u32")
    red = ins.has("red")
    args = ins.args[1:] if red else ins.args
    number = decode.source(args[0], "u32")
    last = args[-1] if red else None
    counts = args[1:-1] if red else args[1:]
    count = decode.source(counts[0], "u32") if counts else None
    reduction = _Reduction(ins, decode, last) if red else None
    arrive = ins.has("arrive")
    if arrive and count is None:
        decode.wrong("bar.arrive needs the number of threads")

    def run(step):
        numbers = step.full(number(step)).astype(np.int64)
        if (numbers > 15).any():
            step.fail("barrier", f"barrier {int(numbers.max())}: a CTA has 16", numbers > 15)
        need = None if count is None else step.full(count(step)).astype(np.int64)
        if need is not None and ((need % 32 != 0) | (need <= 0)).any():
            step.fail(
                "barrier",
                f"{int(need[(need % 32 != 0) | (need <= 0)][0])} threads: a barrier counts whole warps",
                need % 32 != 0,
            )
        blocked = step.machine.barriers.arrive(step, numbers, need, arrive, reduction)
        if blocked is None or arrive:
            return None
        keys = [("barrier", int(slot), int(n)) for slot, n in zip(step.slots[blocked], numbers[blocked], strict=True)]
        keys = keys[0] if len(set(keys)) == 1 else keys
        return Wait(blocked, keys, "waits at a barrier for the other threads", retry=False)

    return run


class _Reduction:
    """The value that bar.red gives to all threads."""

    def __init__(self, ins, decode, operand):
        self.kind = next(part for part in ins.parts if part in _REDUCE)
        self.source = decode.source(operand, "pred")
        self.put = decode.target(ins.args[0], "u32" if self.kind == "popc" else "pred")

    def values(self, step):
        """What the lanes bring."""
        return step.full(self.source(step))

    def write(self, step, values):
        """Give the result of all values to the lanes of a step."""
        if self.kind == "popc":
            result = NUMPY["u32"].type(int(values.sum()))
        else:
            result = np.bool_(values.all() if self.kind == "and" else values.any())
        self.put(step, np.full(step.n, result))


@opcode("membar", "fence")
def fence(ins, decode):
    """Order of memory accesses: the emulator's memory is sequentially consistent, the race detector is told."""

    def run(step):
        step.machine.races.fence(step)
        if step.machine.grid_races is not None:
            step.machine.grid_races.fence(step)

    return run


@opcode("nanosleep", spin=True)
def nanosleep(ins, decode):
    """A pause: others go first."""
    if not isinstance(ins.args[0], Register):
        decode.constant(ins.args[0])
    return lambda step: None


@opcode("trap", "brkpt")
def trap(ins, decode):
    """The program gives up."""
    return lambda step: step.fail("trap", "the program ran into a trap")


@opcode("pmevent")
def pmevent(ins, decode):
    """A profiler's event."""
    return lambda step: None
