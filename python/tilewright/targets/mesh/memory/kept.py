# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that leave the weights they read where these lie, so that they need not stream in again for the next call.

A program gives the memory of what it has read to what it makes: the fewest bytes. A weight would then have to lie
beside it once more. Where that is too much, but not if the weight keeps its place, it does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tilewright.core.errors import UserError
from tilewright.ir.generics import maker, walk
from tilewright.mlir import ir
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.resources import write_resources
from tilewright.targets.mesh.attributes import FIXED
from tilewright.targets.mesh.memory.held import Memory, untouched, written_buffers


def keep_weights(memory: Memory, read: Callable[[ir.Operation], Program], machine: Machine) -> dict[int, int]:
    """Let programs leave weights where they lie, if only so all that is held fits beside them.

    Args:
        read: the values of a program.

    Returns:
        by place of each such program, the bytes of its own.
    """
    room, found = machine.sram_bytes - machine.mesh.code_bytes, {}
    for at, need in zip(memory.at.tolist(), memory.needs.tolist(), strict=True):
        if need <= room:
            continue
        op = memory.operations[at]
        names, count = _moved(op, memory)
        if not names or need - count > room:
            continue
        try:
            program, _ = fit_program(read(op), machine, names)
        except UserError:  # not even alone
            continue
        end = max((one.address or 0) + one.slots * prod(one.shape) * one.dtype.itemsize for one in program.buffers)
        own = end - machine.mesh.code_bytes
        if need - count - memory.own_of(at) + own <= room:
            write_resources(op, program)
            found[at] = own
    return found


def _moved(op: ir.Operation, memory: Memory) -> tuple[list[str], int]:
    """Buffers of weights whose memory a program gives to others, and the bytes that are counted beside it for them.

    Not those that it writes itself, as a product does that shifts its weight: these do not keep what lay there.
    """
    body, written = op.regions[0].blocks[0], written_buffers(op)
    arguments, left = list(body.arguments), {*untouched(op)}
    found = {}
    for place in walk(op, "coremesh.place"):
        name = ir.FlatSymbolRefAttr(place.attributes["buffer"]).value
        value = op.operands[arguments.index(place.operands[0])]
        made = maker(value)
        if made is not None and FIXED in made.attributes and value not in left and name not in written:
            found[name] = value
    counted = {one.value: one.count for one in memory.held if one.stays}
    return [*found], sum(counted.get(value, 0) for value in {*found.values()})
