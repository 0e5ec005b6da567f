# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mbarrier.*: objects in shared memory that threads and asynchronous copies arrive at."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.sync import mbarrier
from tilewright.sim.ptx.sync.step import Wait
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Memory, Sink

_KNOWN = ("shared", "shared::cta", "shared::cluster", "b64", "release", "acquire", "relaxed", "cta", "cluster")

#: how often a try_wait ends with its time limit, where the order is random
_GIVES_UP = 0.2


def place(ins, decode, operand):
    """A function that gives the byte index of each lane's object in shared memory."""
    address = decode.address(operand)
    cluster = not (ins.has("shared") or ins.has("shared::cta"))

    def read(step):
        at = np.asarray(address(step))
        step.machine.access.aligned(step, at, 8)
        return step.machine.shared.flat(step, at, 8, cluster)

    return read


@opcode("mbarrier.init")
def init(ins, decode):
    """Make an object."""
    decode.known("init", *_KNOWN)
    at, count = place(ins, decode, ins.args[0]), decode.source(ins.args[1], "u32")
    return lambda step: mbarrier.initialise(step, at(step), step.full(count(step)).astype(np.int64))


@opcode("mbarrier.inval")
def inval(ins, decode):
    """Give the memory back."""
    decode.known("inval", *_KNOWN)
    at = place(ins, decode, ins.args[0])
    return lambda step: mbarrier.invalidate(step, at(step))


@opcode("mbarrier.expect_tx")
def expect(ins, decode):
    """Expect bytes."""
    decode.known("expect_tx", *_KNOWN)
    at, count = place(ins, decode, ins.args[0]), decode.source(ins.args[1], "u32")
    return lambda step: mbarrier.expect_tx(step, at(step), step.full(count(step)).astype(np.int64))


@opcode("mbarrier.complete_tx")
def complete(ins, decode):
    """Say that bytes have come."""
    decode.known("complete_tx", *_KNOWN)
    at, count = place(ins, decode, ins.args[0]), decode.source(ins.args[1], "u32")
    return lambda step: mbarrier.expect_tx(step, at(step), -step.full(count(step)).astype(np.int64))


@opcode("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(ins, decode):
    """Arrive, with a count or with bytes that are expected."""
    decode.known("arrive", "arrive_drop", "expect_tx", "noComplete", *_KNOWN)
    drop, open_ = ins.has("arrive_drop"), ins.has("noComplete")
    plain = isinstance(ins.args[0], Memory)
    target, rest = (Sink(), ins.args) if plain else (ins.args[0], ins.args[1:])
    put = decode.target(target, "b64")
    at = place(ins, decode, rest[0])
    count = decode.source(rest[1], "u32") if len(rest) > 1 else None
    expects = ins.has("expect_tx")

    def run(step):
        number = None if count is None else step.full(count(step)).astype(np.int64)
        flat = at(step)
        before = mbarrier.phase(step.machine, flat)
        if expects:
            state = mbarrier.arrive(step, flat, 1, number, drop)
        else:
            state = mbarrier.arrive(step, flat, 1 if number is None else number, 0, drop)
        put(step, state)
        if open_ and (mbarrier.phase(step.machine, flat) != before).any():
            step.fail("barrier", "an arrival with .noComplete completes the phase")

    return run


@opcode("mbarrier.pending_count")
def pending_count(ins, decode):
    """Arrivals that a state still waits for."""
    put, state = decode.target(ins.args[0], "b32"), decode.source(ins.args[1], "b64")
    return lambda step: put(step, mbarrier.pending(step.full(state(step))))


@opcode("mbarrier.try_wait", "mbarrier.test_wait")
def wait(ins, decode):
    """Ask whether a phase is over. try_wait sleeps until it is; with a seed its time limit may strike before."""
    decode.known("try_wait", "test_wait", "parity", *_KNOWN)
    put = decode.target(ins.args[0], "pred")
    at = place(ins, decode, ins.args[1])
    parity = decode.source(ins.args[2], "u32" if ins.has("parity") else "b64")
    from_state = not ins.has("parity")
    sleeps = ins.has("try_wait")

    def run(step):
        flat = at(step)
        side = step.full(parity(step))
        if from_state:
            side = (side >> np.uint64(63)).astype(np.uint32)
        over = mbarrier.passed(step, flat, side)
        random = step.machine.random if step.machine.options.seed is not None else None
        if over.all() or not sleeps or (random is not None and random.random() < _GIVES_UP):
            put(step, over)
            return None
        if over.any():
            put(step.narrowed(over), np.ones(int(over.sum()), np.bool_))
        keys = [("mbarrier", int(place)) for place in flat[~over]]
        first = int(side[~over][0]) & 1
        return Wait(
            ~over,
            keys[0] if len(set(keys)) == 1 else keys,
            f"waits for the phase of parity {first} of an mbarrier",
            retry=True,
        )

    run.spin = not sleeps
    return run
