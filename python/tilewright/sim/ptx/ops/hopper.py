# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small instructions of sm_90: fences of proxies, elect, setmaxnreg, griddepcontrol, prefetches of tensor maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.order.races import detector
from tilewright.sim.ptx.sync.step import Wait
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Pair, Sink

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction

_REGISTER_FILE = 65536


@opcode("fence.proxy.async")
def proxy_fence(ins: Instruction, decode: Decoder) -> Run:
    """Hands what was written so far to the asynchronous proxy (bulk copies, wgmma)."""
    decode.known("proxy", "async", "shared::cta", "shared::cluster", "global")
    if ins.has("global"):
        return lambda step: None

    def run(step: Step) -> None:
        races = detector(step.machine)
        if races is not None:
            races.proxy_fence(step)

    return run


@opcode("fence.proxy.alias", "fence.proxy.tensormap::generic")
def other_proxy_fence(ins: Instruction, decode: Decoder) -> Run:
    """Orders the other proxies: the emulator's memory always is in order for them."""
    return lambda step: None


@opcode("fence.mbarrier_init")
def mbarrier_init_fence(ins: Instruction, decode: Decoder) -> Run:
    """Makes mbarriers that were initialised known to the cluster and to the asynchronous proxy."""
    decode.known("mbarrier_init", "release", "cluster")

    def run(step: Step) -> None:
        races = detector(step.machine)
        if races is not None:
            races.fence_init(step)

    return run


@opcode("elect")
def elect(ins: Instruction, decode: Decoder) -> Run:
    """Chooses the first lane that the member mask names."""
    decode.arity(2)
    decode.known("sync")
    target, chosen = ins.args[0].items if isinstance(ins.args[0], Pair) else (Sink(), ins.args[0])
    put_lane, put, mask = decode.target(target, "b32"), decode.target(chosen, "pred"), decode.source(ins.args[1], "u32")

    def run(step: Step) -> None:
        masks = step.full(mask(step)).astype(np.int64)
        if ((masks >> (step.ids & 31)) & 1 == 0).any():
            step.fail("convergence", "a lane runs elect.sync and is not in its member mask")
        leader = np.log2(masks & -masks).astype(np.int64)
        put_lane(step, leader.astype(np.uint32))
        put(step, (step.ids & 31) == leader)

    run.members = mask
    return run


class RegisterFile:
    """How many registers a thread of each warpgroup has, and how many of a CTA's are free."""

    def __init__(self, machine: Machine) -> None:
        groups = machine.threads // 128
        limit = machine.program.kernel.directives.get("maxnreg", [255])[0]
        blocks = machine.program.kernel.directives.get("minnctapersm", [1])[0]
        each = min(_REGISTER_FILE // (machine.threads * blocks) // 8 * 8, limit // 8 * 8)
        self.per_thread = np.full(machine.slots * groups, each)
        self.free = np.zeros(machine.slots, np.int64)  # a CTA gets no more than it starts with
        self.known = np.zeros(machine.slots * groups, np.bool_)  # before its first change ptxas may have given it less
        self.groups = groups

    def change(self, step: Step, count: int, increase: bool) -> Wait | None:
        """Give registers back, or wait until there are enough."""
        numbers = step.ids[::128] >> 7
        blocked = np.zeros(step.n, np.bool_)
        for place, group in enumerate(numbers.tolist()):
            slot, more = group // self.groups, (count - int(self.per_thread[group])) * 128
            lanes = slice(128 * place, 128 * place + 128)
            if (more < 0 and self.known[group]) if increase else (more > 0):
                have = int(self.per_thread[group])
                step.fail(
                    "limit", f"setmaxnreg to {count}: the warpgroup has {have} registers per thread", _mask(step, lanes)
                )
            if increase and more > self.free[slot]:
                blocked[lanes] = True
                continue
            self.free[slot] -= more
            self.per_thread[group] = count
            self.known[group] = True
            step.machine.progress += 1
            if not increase:
                step.machine.wake(("registers", slot))
        if not blocked.any():
            return None
        keys = [("registers", int(slot)) for slot in step.slots[blocked]]
        return Wait(
            blocked, keys, f"waits for {count} registers per thread that other warpgroups must give back", retry=True
        )


def _mask(step: Step, lanes: slice) -> np.ndarray:
    mask = np.zeros(step.n, np.bool_)
    mask[lanes] = True
    return mask


@opcode("setmaxnreg", sync=128)
def setmaxnreg(ins: Instruction, decode: Decoder) -> Run:
    """Changes the number of registers of a warpgroup's threads; an increase waits for others to give theirs back."""
    decode.arity(1)
    decode.known("inc", "dec", "sync", "aligned", "u32")
    count, increase = decode.constant(ins.args[0]), ins.has("inc")
    if count % 8 or not 24 <= count <= 256:
        decode.wrong(f"setmaxnreg takes multiples of 8 from 24 to 256, not {count}")

    def run(step: Step) -> Wait | None:
        machine = step.machine
        found = machine.state.get("registers")
        if found is None:
            found = machine.state["registers"] = RegisterFile(machine)
        return found.change(step, count, increase)

    return run


@opcode("griddepcontrol")
def griddepcontrol(ins: Instruction, decode: Decoder) -> Run:
    """Order of dependent launches: launches of the emulator follow each other in any case."""
    decode.known("wait", "launch_dependents")
    return lambda step: None


@opcode("prefetch.tensormap", "prefetch.param.tensormap", "prefetch.const.tensormap")
def prefetch_tensor_map(ins: Instruction, decode: Decoder) -> Run:
    """Into the cache: the address is checked, nothing else happens."""
    decode.arity(1)
    address = decode.address(ins.args[0])
    space = "param" if ins.has("param") else "const" if ins.has("const") else "generic"

    def run(step: Step) -> None:
        step.machine.access.locate(step, space, address(step), 64)

    return run
