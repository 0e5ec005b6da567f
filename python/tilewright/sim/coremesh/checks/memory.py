# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of a core: what a program needs of it at its fullest, per class of cores, and that it fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers, points_of
from tilewright.sim.coremesh.checks.races import accesses
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Buffer, Program, Wait
from tilewright.sim.coremesh.steps import Step, unroll


@dataclass(frozen=True)
class CoreClass:
    """Cores that use the same buffers.

    Attributes:
        core: row and column of one of them; ``cores``: how many they are.
        peak: bytes of what is live at once, at its fullest, without code.
        where: the instruction at which.
        buffers: (name, bytes) of what is live there, the largest first.
    """

    core: tuple[int, int]
    cores: int
    peak: int
    where: str
    buffers: tuple[tuple[str, int], ...]


def core_classes(program: Program, field: Field | None = None, steps: list[Step] | None = None) -> list[CoreClass]:
    """The classes of a program's cores, the one that needs most memory first."""
    field, steps = field or Field(program), steps if steps is not None else unroll(program)
    return sorted((one for one, _ in _classes(program, field, steps)), key=lambda one: (-one.peak, one.core))


def memory_map(program: Program) -> np.ndarray:
    """The bytes that each core holds at its fullest, without code, int64 [height, width]."""
    peaks = np.zeros((program.height, program.width), dtype=np.int64)
    for one, mask in _classes(program, Field(program), unroll(program)):
        np.copyto(peaks, one.peak, where=mask)
    return peaks


def _classes(program: Program, field: Field, steps: list[Step]) -> list[tuple[CoreClass, np.ndarray]]:
    """The classes, and which cores are of each: a mask that broadcasts to all."""
    used = _users(program, field, steps)
    code, keys = np.zeros((1, 1), dtype=np.int64), {0: frozenset()}
    for name, mask in used.items():  # combinations are numbered as they come, so that any number of buffers fits
        code = code * 2 + mask
        values, inverse = np.unique(code, return_inverse=True)
        code = inverse.reshape(code.shape)
        keys = {new: keys[old // 2] | ({name} if old % 2 else set()) for new, old in enumerate(values.tolist())}
    sizes = {buffer.name: buffer_bytes(buffer) for buffer in program.buffers}
    points, live = points_of(program), live_buffers(program)
    found = []
    for number, mine in keys.items():
        totals = [sum(sizes[name] for name in names & mine) for names in live]
        at = int(np.argmax(totals)) if totals else -1
        held = sorted(((name, sizes[name]) for name in (live[at] & mine if totals else ())), key=lambda one: -one[1])
        where = str(Step(points[at].instruction, points[at].path, ())) if totals else "the begin"
        mask = code == number
        peak = totals[at] if totals else 0
        found.append((CoreClass(field.first(mask), field.size(mask), peak, where, tuple(held)), mask))
    return found


def check_memory(
    program: Program, machine: Machine, field: Field | None = None, steps: list[Step] | None = None
) -> list[CoreClass]:
    """Check that what is live fits a core's memory beside its code, and that addresses, once assigned, keep it apart.

    Returns:
        the classes of cores, the one that needs most first.

    Raises:
        UserError: too much is live at once; a buffer lies outside the memory, off a multiple of 4, or over another one
            that is live with it.
    """
    classes = core_classes(program, field, steps)
    room = machine.sram_bytes - machine.mesh.code_bytes
    if classes[0].peak > room:
        raise memory_error(program, machine, classes[0], classes[0].peak)
    placed = [buffer for buffer in program.buffers if buffer.address is not None]
    for buffer in placed:
        _check_place(buffer, machine)
    together = {frozenset((one, other)) for live in set(live_buffers(program)) for one in live for other in live}
    for number, one in enumerate(placed):
        for other in placed[number + 1 :]:
            if frozenset((one.name, other.name)) in together and _overlap(one, other):
                raise UserError(
                    f"Buffers '{one.name}' (bytes {_range(one)}) and '{other.name}' (bytes {_range(other)}) overlap "
                    f"and are live together in program '{program.name}'. Assign addresses anew "
                    "(plan.mesh.assign_addresses)."
                )
    return classes


def memory_error(program: Program, machine: Machine, most: CoreClass, demand: int) -> UserError:
    """The error that says who needs too much memory, where, and for what."""
    tensors = "".join(f"\n  {size:>8} bytes  '{name}'" for name, size in most.buffers)
    others = f" and {most.cores - 1} others like it" if most.cores > 1 else ""
    return UserError(
        f"Memory: {core_name(*most.core)}{others} of program '{program.name}' needs {demand} bytes beside "
        f"{machine.mesh.code_bytes} bytes of code, and a core of machine '{machine.name}' has {machine.sram_bytes}. "
        f"At its fullest, at {most.where}, it holds:{tensors}\nUse more cores (tiles shrink), smaller tiles, narrower "
        "numbers, fewer slots per buffer, or an algorithm that keeps fewer tiles (MeshGEMM instead of all-gather)."
    )


def _check_place(buffer: Buffer, machine: Machine) -> None:
    assert buffer.address is not None
    if buffer.address % 4 or buffer.address < machine.mesh.code_bytes:
        raise UserError(
            f"Buffer '{buffer.name}' begins at byte {buffer.address}: buffers begin at multiples of 4, behind the "
            f"{machine.mesh.code_bytes} bytes of code. Assign addresses anew (plan.mesh.assign_addresses)."
        )
    if buffer.address + buffer_bytes(buffer) > machine.sram_bytes:
        raise UserError(
            f"Buffer '{buffer.name}' takes bytes {_range(buffer)} of a core's memory, and a core of machine "
            f"'{machine.name}' has {machine.sram_bytes}. Assign addresses anew (plan.mesh.assign_addresses), or use "
            "smaller tiles."
        )


def _range(buffer: Buffer) -> str:
    assert buffer.address is not None
    return f"{buffer.address} to {buffer.address + buffer_bytes(buffer) - 1}"


def _overlap(one: Buffer, other: Buffer) -> bool:
    assert one.address is not None and other.address is not None
    return one.address < other.address + buffer_bytes(other) and other.address < one.address + buffer_bytes(one)


def _users(program: Program, field: Field, steps: list[Step]) -> dict[str, np.ndarray]:
    """By buffer: the cores that ever touch it; all that hold inputs and outputs."""
    everyone = np.ones((1, 1), dtype=bool)
    used = {buffer.name: ~everyone for buffer in program.buffers}
    used |= {place.slot.buffer: everyone for place in (*program.inputs, *program.outputs)}
    seen: set[int] = set()
    full = {name for name, mask in used.items() if mask.all()}
    for step in steps:
        instruction = step.instruction
        if isinstance(instruction, Wait) or id(instruction) in seen:
            continue
        if full.issuperset(slot.buffer for slot, _ in accesses(instruction)):
            continue
        if depth(*instruction.cores.at_least_zero, *instruction.cores.zero) <= 2:
            seen.add(id(instruction))
        mask = field.mask(instruction.cores, step.loops)
        for slot, _ in accesses(instruction):
            if slot.buffer in used:
                used[slot.buffer] = used[slot.buffer] | mask
                if used[slot.buffer].all():
                    full.add(slot.buffer)
    return used
