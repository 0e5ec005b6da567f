# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async.bulk and cp.reduce.async.bulk: ranges of bytes, and boxes of tensors by a tensor map (TMA).

Source: PTX ISA 9.7.9.25.4 (bulk copy) and 9.7.9.25.5 (tensor copy). The im2col, gather and scatter modes are not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.copies import Combine, Linear, Tiled, linear, read_shared, reduction, tiled
from tilewright.sim.ptx.sync import bulk
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Memory, Vector

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction, Operand

_KNOWN = (
    "async bulk tensor reduce shared::cluster shared::cta global tile bulk_group mbarrier::complete_tx::bytes "
    "L2 prefetch multicast::cluster L2::cache_hint 1d 2d 3d 4d 5d"
).split()
_REDUCTIONS = "add min max inc dec and or xor noftz".split()
_TYPES = "u32 s32 u64 s64 b32 b64 f16 bf16 f32 f64".split()


def _check(ins: Instruction, decode: Decoder) -> None:
    reducing = ins.parts[1] == "reduce"
    known = _KNOWN + (_REDUCTIONS + _TYPES if reducing else [])
    for part in ins.parts[1:]:
        if part not in known:
            raise decode.unsupported(f"modifier .{part} is not known")


def _operands(ins: Instruction) -> list[Operand]:
    """Operands without the cache policy."""
    return ins.args[:-1] if ins.has("L2::cache_hint") else list(ins.args)


def _combine(ins: Instruction, decode: Decoder, type_name: str | None = None) -> Combine | None:
    """The function of a reducing copy; None for a plain one."""
    if ins.parts[1] != "reduce":
        return None
    operation = next(part for part in ins.parts if part in _REDUCTIONS and part != "noftz")
    try:
        return reduction(operation, type_name or ins.parts[-1])
    except ValueError as error:
        raise decode.unsupported(str(error)) from None


def _destination(ins: Instruction, decode: Decoder) -> str:
    """Where the copy goes: the first state space of the mnemonic."""
    for part in ins.parts:
        if part in ("shared::cluster", "shared::cta", "global"):
            return part
    raise decode.unsupported("no state space is given")


def _space(destination: str) -> str:
    return "shared" if destination == "shared::cta" else "shared::cluster"


# ---- shared memory ---------------------------------------------------------


def _places(step: Step, space: str, addresses: np.ndarray, nbytes: int, align: int) -> np.ndarray:
    """Flat positions of addresses in shared memory, bounds and alignment checked."""
    bad = addresses % align != 0
    if bad.any():
        at = int(addresses[bad][0])
        step.fail("misaligned", f"address {at:#x} of a bulk copy is no multiple of {align}", bad)
    return step.machine.shared.flat(step, addresses, nbytes, space != "shared")


def _targets(step: Step, lane: int, mask: int | None, place: int, barrier: int) -> list[tuple[int, int]]:
    """Places of the destination and of its mbarrier in each CTA that a copy goes to."""
    machine, stride = step.machine, step.machine.shared.stride
    if mask is None:
        if place // stride != barrier // stride:
            why = "the mbarrier of a bulk copy must be in the shared memory of the CTA that the copy goes to"
            step.fail("out-of-bounds", why, step.only(lane))
        return [(place, barrier)]
    size = machine.cluster_size
    ranks = [rank for rank in range(16) if mask >> rank & 1]
    if not ranks or ranks[-1] >= size:
        step.fail("out-of-bounds", f"multicast mask {mask:#x} in a cluster of {size} CTAs", step.only(lane))
    first = int(step.slots[lane]) // size * size
    for rank in ranks:
        remote = np.full(step.n, first + rank != int(step.slots[lane]))
        machine.shared.check_alive(step, np.full(step.n, first + rank), remote)
    return [((first + rank) * stride + place % stride, (first + rank) * stride + barrier % stride) for rank in ranks]


def _note(step: Step, end: Linear | Tiled, writes: bool, atomic: bool = False) -> None:
    """Count the traffic of a copy's end in global memory, and look for races with other CTAs."""
    if step.machine.trace is not None:
        step.machine.trace.copy(step.ins, *end.traffic())
    races = step.machine.grid_races
    if races is not None and end.allocation is not None and not atomic:
        (races.write_rows if writes else races.read_rows)(step, end.allocation, *end.rows())


# ---- ranges of bytes -------------------------------------------------------


@opcode("cp.async.bulk.shared::cluster", "cp.async.bulk.shared::cta", "cp.reduce.async.bulk.shared::cluster")
def into_shared(ins: Instruction, decode: Decoder) -> Run:
    """[dst], [src], size, [mbar]{, cta-mask}: from global memory, or from shared memory to another CTA's."""
    _check(ins, decode)
    args, destination = _operands(ins), _destination(ins, decode)
    spaces = [part for part in ins.parts if part in ("shared::cluster", "shared::cta", "global")]
    if len(args) != (5 if ins.has("multicast::cluster") else 4) or len(spaces) != 2:
        decode.wrong("a bulk copy into shared memory takes [dst], [src], size, [mbar] and the mask of a multicast")
    to, source, barrier = decode.address(args[0]), decode.address(args[1]), decode.address(args[3])
    size = decode.source(args[2], "u32")
    mask = decode.source(args[4], "u16") if len(args) == 5 else None
    space, from_global, combine = _space(destination), spaces[1] == "global", _combine(ins, decode)

    def run(step: Step) -> None:
        sizes, sources = step.full(size(step)).astype(np.int64), source(step)
        masks = None if mask is None else step.full(mask(step))
        for lane in range(step.n):
            part, nbytes = step.narrowed(step.only(lane)), int(sizes[lane])
            _check_size(part, nbytes)
            [place] = _places(part, space, to(part), nbytes, 16)
            [waiter] = _places(part, space, barrier(part), 8, 8)
            fetch, inner = _fetcher(part, int(sources[lane]), nbytes, from_global)
            for at, signal in _targets(part, 0, None if masks is None else int(masks[lane]), int(place), int(waiter)):
                chunks = at + 16 * np.arange(nbytes // 16)
                bulk.load(part, 0, _combined(part, fetch, chunks, combine), chunks, signal, inner)

    return run


def _combined(step: Step, fetch: Callable, chunks: np.ndarray, combine: Combine | None) -> Callable[[], np.ndarray]:
    if combine is None:
        return fetch
    return lambda: combine(read_shared(step.machine, chunks), fetch())


def _check_size(step: Step, nbytes: int) -> None:
    if nbytes % 16 or not nbytes:
        step.fail("misaligned", f"a bulk copy of {nbytes} bytes: the size must be a multiple of 16 above 0")


def _fetcher(
    step: Step, address: int, nbytes: int, from_global: bool
) -> tuple[Callable[[], np.ndarray], np.ndarray | None]:
    """What gives the source's bytes when the copy takes effect, and their chunks in shared memory, if they are there.

    The source is checked now.
    """
    machine = step.machine
    if address % 16:
        step.fail("misaligned", f"source {address:#x} of a bulk copy is no multiple of 16")
    if from_global:
        found = linear(step, 0, address, nbytes)
        if step.check("uninitialised") and found.undefined():
            step.fail("uninitialised", "a bulk copy reads global memory that was never written")
        _note(step, found, False)
        return found.read, None
    [place] = _places(step, "shared", np.array([address]), nbytes, 16)
    chunks = int(place) + 16 * np.arange(nbytes // 16)
    if step.check("uninitialised") and machine.shared.undefined(chunks, 16) is not None:
        step.fail("uninitialised", "a bulk copy reads shared memory that was never written")
    return lambda: read_shared(machine, chunks), chunks


@opcode("cp.async.bulk.global", "cp.reduce.async.bulk.global")
def out_of_shared(ins: Instruction, decode: Decoder) -> Run:
    """[dst], [src], size: from shared to global memory."""
    _check(ins, decode)
    args = _operands(ins)
    if len(args) != 3 or not ins.has("bulk_group"):
        decode.wrong("a bulk copy to global memory takes [dst], [src], size, and is of a .bulk_group")
    to, source, size = decode.address(args[0]), decode.address(args[1]), decode.source(args[2], "u32")
    combine = _combine(ins, decode)

    def run(step: Step) -> None:
        sizes, targets = step.full(size(step)).astype(np.int64), to(step)
        for lane in range(step.n):
            part, nbytes = step.narrowed(step.only(lane)), int(sizes[lane])
            _check_size(part, nbytes)
            if targets[lane] % 16:
                part.fail("misaligned", f"destination {int(targets[lane]):#x} of a bulk copy is no multiple of 16")
            [place] = _places(part, "shared", source(part), nbytes, 16)
            target = linear(part, 0, int(targets[lane]), nbytes)
            _note(part, target, True, combine is not None)
            bulk.store(part, 0, target, int(place) + 16 * np.arange(nbytes // 16), combine)

    return run


# ---- boxes of tensors ------------------------------------------------------


class _TensorOperand:
    """Reader of ``[map, {coordinates}]``."""

    def __init__(self, operand: Operand, ins: Instruction, decode: Decoder) -> None:
        self.rank = int(next(part for part in ins.parts if re.fullmatch(r"[1-5]d", part))[0])
        if not isinstance(operand, Memory) or len(operand.extra) != 1 or not isinstance(operand.extra[0], Vector):
            decode.wrong("a tensor operand is [map, {coordinates}]")
        if len(operand.extra[0].items) != self.rank:
            decode.wrong(f"{self.rank} coordinates are needed, not {len(operand.extra[0].items)}")
        self.address = decode.address(operand)
        self.coordinates = decode.sources(operand.extra[0], "s32")

    def __call__(self, step: Step) -> Tiled:
        """The box that the only lane of a step names."""
        address = self.address(step)
        if address[0] % 64:
            step.fail("misaligned", f"a tensor map at {int(address[0]):#x}: it needs a multiple of 64")
        halves = [step.machine.access.locate(step, "generic", address + half, 64)[0] for half in (0, 64)]
        data = b"".join(store.data[int(at[0]) : int(at[0]) + 64].tobytes() for _, store, at in halves)
        return tiled(step, 0, data, self.coordinates(step)[0].tolist(), self.rank)


def _box_places(step: Step, space: str, address: np.ndarray, box: Tiled) -> np.ndarray:
    """Flat positions of a box's chunks in shared memory, swizzled."""
    [place] = _places(step, space, address, box.map.box_bytes, 128)
    return box.map.chunks(int(place))


@opcode("cp.async.bulk.tensor")
def tensor_copy(ins: Instruction, decode: Decoder) -> Run:
    """A box of a tensor into shared memory ([dst], [map, {..}], [mbar]{, mask}) or out of it ([map, {..}], [src])."""
    _check(ins, decode)
    return _tensor_store(ins, decode) if _destination(ins, decode) == "global" else _tensor_load(ins, decode)


def _tensor_load(ins: Instruction, decode: Decoder) -> Run:
    args = _operands(ins)
    if len(args) != (4 if ins.has("multicast::cluster") else 3):
        decode.wrong("a tensor copy into shared memory takes [dst], [map, {..}], [mbar] and the mask of a multicast")
    to, box_of, barrier = decode.address(args[0]), _TensorOperand(args[1], ins, decode), decode.address(args[2])
    mask = decode.source(args[3], "u16") if len(args) == 4 else None
    space = _space(_destination(ins, decode))

    def run(step: Step) -> None:
        masks = None if mask is None else step.full(mask(step))
        stride = step.machine.shared.stride
        for lane in range(step.n):
            part = step.narrowed(step.only(lane))
            box = box_of(part)
            if part.check("uninitialised") and box.undefined():
                part.fail("uninitialised", "a tensor copy reads global memory that was never written")
            _note(part, box, False)
            chunks = _box_places(part, space, to(part), box)
            [waiter] = _places(part, space, barrier(part), 8, 8)
            base = int(chunks[0]) // stride * stride
            for at, signal in _targets(part, 0, None if masks is None else int(masks[lane]), base, int(waiter)):
                bulk.load(part, 0, box.read, chunks - base + at, signal)

    return run


@opcode("cp.reduce.async.bulk.tensor")
def tensor_reduce(ins: Instruction, decode: Decoder) -> Run:
    """[map, {..}], [src]: a box of shared memory combined into a tensor."""
    _check(ins, decode)
    return _tensor_store(ins, decode)


def _tensor_store(ins: Instruction, decode: Decoder) -> Run:
    args = _operands(ins)
    if len(args) != 2 or not ins.has("bulk_group"):
        decode.wrong("a tensor copy to global memory takes [map, {..}], [src], and is of a .bulk_group")
    box_of, source = _TensorOperand(args[0], ins, decode), decode.address(args[1])

    def run(step: Step) -> None:
        for lane in range(step.n):
            part = step.narrowed(step.only(lane))
            box = box_of(part)
            combine = _combine(ins, decode, box.map.element)
            _note(part, box, True, combine is not None)
            bulk.store(part, 0, box, _box_places(part, "shared", source(part), box), combine)

    return run


@opcode("cp.async.bulk.prefetch")
def prefetch(ins: Instruction, decode: Decoder) -> Run:
    """Into the L2 cache: checked, without effect."""
    _check(ins, decode)
    args = _operands(ins)
    if ins.has("tensor"):
        box_of = _TensorOperand(args[0], ins, decode)

        def run_box(step: Step) -> None:
            for lane in range(step.n):
                box_of(step.narrowed(step.only(lane)))

        return run_box
    source, size = decode.address(args[0]), decode.source(args[1], "u32")

    def run(step: Step) -> None:
        sizes, sources = step.full(size(step)), source(step)
        for lane in range(step.n):
            linear(step, lane, int(sources[lane]), int(sizes[lane]))

    return run


# ---- groups ----------------------------------------------------------------


@opcode("cp.async.bulk.commit_group")
def commit_group(ins: Instruction, decode: Decoder) -> Run:
    """Makes a group of each thread's copies out of shared memory since its last commit."""
    decode.arity(0)
    return bulk.commit


@opcode("cp.async.bulk.wait_group")
def wait_group(ins: Instruction, decode: Decoder) -> Run:
    """Waits until at most so many groups of each thread are on their way; .read: until they have read their sources.

    Both complete the copies here, which is one of the orders that .read allows.
    """
    decode.known("async", "bulk", "wait_group", "read")
    pending = decode.constant(ins.args[0])
    return lambda step: bulk.wait(step, pending)
