# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async: copies of 4, 8 or 16 bytes per thread from global to shared memory, in the background.

The source is read when the copy is issued; the bytes arrive when a wait or the machine says so. Until its thread has
waited, and the others have met that thread at a barrier, the destination belongs to the copy.
Source: PTX ISA 9.7.9.25.3 ("Data movement: non-bulk copy").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.transfer import Transfer
from tilewright.sim.ptx.order.clocks import PLAIN
from tilewright.sim.ptx.order.races import detector
from tilewright.sim.ptx.sync import mbarrier
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Register

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction

_KIND = "cp.async"


class Copy:
    """One instruction's copies: lanes, the group of each, where they go, what arrives."""

    def __init__(self, lanes: np.ndarray, groups: np.ndarray, flat: np.ndarray, words: np.ndarray) -> None:
        self.lanes, self.groups, self.flat, self.words = lanes, groups, flat, words

    def arrive(self, machine: Machine, mask: np.ndarray) -> None:
        """Write the bytes of some lanes; they are done then."""
        words, flat = self.words[mask], self.flat[mask]
        width, count = words.dtype.itemsize, words.shape[1]
        rows = machine.shared.rows(width, count)
        rows[flat // (width * count)] = words if count > 1 else words[:, 0]
        machine.shared.mark(flat, width * count)
        machine.progress += 1
        left = ~mask
        self.lanes, self.groups = self.lanes[left], self.groups[left]
        self.flat, self.words = self.flat[left], self.words[left]


class Copies:
    """All copies of a batch that have not arrived.

    Attributes:
        committed: number of groups that each lane has committed.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.committed = np.zeros(machine.lanes, np.int64)
        self.pending: list[Copy] = []

    def arrive(self, lanes: np.ndarray, below: np.ndarray) -> None:
        """Let the copies of lanes arrive whose group is below a bound (per lane)."""
        bound = np.full(self.machine.lanes, -1, np.int64)
        bound[lanes] = below
        order = list(self.pending)
        if self.machine.completion == "random":
            self.machine.random.shuffle(order)
        for copy in order:
            mask = copy.groups < bound[copy.lanes]
            if mask.any():
                copy.arrive(self.machine, mask)
        self.pending = [copy for copy in self.pending if len(copy.lanes)]

    def wait(self, lanes: np.ndarray, below: np.ndarray) -> None:
        """Lanes wait for their groups below a bound."""
        self.arrive(lanes, below)
        races = detector(self.machine)
        if races is not None:
            warps, first = np.unique(lanes >> 5, return_index=True)
            seen = np.minimum.reduceat(below, first)
            races.see(warps, races.columns(_KIND, warps), seen)


def copies(machine: Machine) -> Copies:
    """The state of a machine's copies."""
    found = machine.state.get(_KIND)
    if found is None:
        found = machine.state[_KIND] = Copies(machine)
    return found


@opcode("cp.async.ca", "cp.async.cg")
def cp_async(ins: Instruction, decode: Decoder) -> Run:
    """[dst], [src], cp-size{, src-size or ignore-src}{, cache-policy}."""
    _check_modifiers(ins, decode)
    nbytes = decode.constant(ins.args[2])
    if nbytes not in ((16,) if ins.has("cg") else (4, 8, 16)):
        decode.wrong(f"cp.async.{'cg copies 16' if ins.has('cg') else 'ca copies 4, 8 or 16'} bytes, not {nbytes}")
    to, source = decode.address(ins.args[0]), decode.address(ins.args[1])
    width, count = min(nbytes, 8), max(1, nbytes // 8)
    sizes = _source_sizes(ins, decode, nbytes)

    def run(step: Step) -> None:
        machine, state = step.machine, copies(step.machine)
        [(_, _, flat)] = machine.access.locate(step, "shared", to(step), nbytes)
        words = _fetch(step, source(step), sizes, nbytes, width, count)
        groups = state.committed[step.sel].copy()
        races = detector(machine)
        if races is not None:
            columns = races.columns(_KIND, step.warps)
            races.write_later(step, columns, flat, nbytes, step.warps, PLAIN, groups + 1)
        copy = Copy(step.ids, groups, flat, words)
        if machine.completion == "early":
            copy.arrive(machine, np.ones(step.n, np.bool_))
        else:
            state.pending.append(copy)

    return run


def _check_modifiers(ins: Instruction, decode: Decoder) -> None:
    for part in ins.parts[3:]:
        if part not in ("shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B", "L2::cache_hint"):
            raise decode.unsupported(f"modifier .{part} is not known")
    if not ins.has("global") or not (ins.has("shared") or ins.has("shared::cta")):
        raise decode.unsupported("cp.async copies from .global to .shared")


def _source_sizes(ins: Instruction, decode: Decoder, nbytes: int):
    """Reader of how many bytes each lane reads (the rest becomes zeros), or None: all."""
    extra = ins.args[3:-1] if ins.has("L2::cache_hint") else ins.args[3:]
    if not extra:
        return None
    operand = extra[0]
    if isinstance(operand, Register) and operand.type == "pred":
        ignored = decode.source(operand, "pred")
        return lambda step: np.where(step.full(ignored(step)), 0, nbytes)
    size = decode.source(operand, "u32")

    def read(step: Step) -> np.ndarray:
        found = step.full(size(step)).astype(np.int64)
        if (found > nbytes).any():
            step.fail("out-of-bounds", f"src-size {int(found.max())} of a copy of {nbytes} bytes", found > nbytes)
        return found

    return read


def _fetch(step: Step, addresses: np.ndarray, sizes, nbytes: int, width: int, count: int) -> np.ndarray:
    """The words that each lane copies: (n, count) unsigned of ``width`` bytes."""
    if sizes is None:
        return step.machine.load(step, "global", addresses, width, count).reshape(step.n, count)
    wanted = sizes(step)
    data = np.zeros((step.n, nbytes), np.uint8)
    whole = wanted == nbytes
    if whole.any():
        part = step if whole.all() else step.narrowed(whole)
        words = step.machine.load(part, "global", addresses[whole], width, count).reshape(part.n, count)
        data[whole] = np.ascontiguousarray(words).view(np.uint8)
    for byte in range(int(wanted[~whole].max()) if not whole.all() else 0):
        some = ~whole & (wanted > byte)
        data[some, byte] = step.machine.load(step.narrowed(some), "global", addresses[some] + byte, 1)
    return data.view({4: np.uint32, 8: np.uint64}[width])


@opcode("cp.async.commit_group")
def commit_group(ins: Instruction, decode: Decoder) -> Run:
    """Makes a group of each thread's copies since its last commit."""
    decode.arity(0)

    def run(step: Step) -> None:
        copies(step.machine).committed[step.sel] += 1

    return run


@opcode("cp.async.wait_group", "cp.async.wait_all")
def wait_group(ins: Instruction, decode: Decoder) -> Run:
    """Waits until at most so many of each thread's groups are on their way (wait_all: no copy at all)."""
    everything = ins.parts[2] == "wait_all"
    pending = 0 if everything else decode.constant(ins.args[0])

    def run(step: Step) -> None:
        state = copies(step.machine)
        if everything:
            state.committed[step.sel] += 1
        state.wait(step.ids, np.maximum(state.committed[step.sel] - pending, 0))

    return run


@opcode("cp.async.mbarrier.arrive")
def mbarrier_arrive(ins: Instruction, decode: Decoder) -> Run:
    """Arrives on an mbarrier once the thread's copies so far are there; without .noinc it first adds one arrival."""
    decode.arity(1)
    increments = not ins.has("noinc")
    address = decode.address(ins.args[0])
    space = "shared" if ins.has("shared") or ins.has("shared::cta") else "generic"

    def run(step: Step) -> None:
        machine = step.machine
        [(_, _, flat)] = machine.access.locate(step, space, address(step), 8)
        mbarrier.states(step, flat)
        if increments:
            mbarrier.add_pending(machine, flat, 1, ins)
        below, ids = copies(machine).committed[step.sel] + 1, step.ids
        races = detector(machine)
        if races is not None:
            races.promise(step, flat, races.columns(_KIND, step.warps), below)

        def complete(owner: Machine) -> None:
            copies(owner).arrive(ids, below)
            mbarrier.add_pending(owner, flat, -1, ins)

        machine.later(Transfer(complete, "cp.async.mbarrier.arrive", {}, ins, int(step.slots[0])))

    return run
