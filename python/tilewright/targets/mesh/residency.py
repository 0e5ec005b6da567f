# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lies in the cores' memories between programs: weights that stay, and activations until they are last read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.dialects.coremesh import Layout
from tilewright.ir.diagnostics import remark
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.targets.mesh.attributes import FIXED, MEMORY, STREAMED, number
from tilewright.targets.mesh.control.loops import in_order
from tilewright.targets.mesh.placement import block_bytes


@dataclass
class _Held:
    """A value on the grid.

    Attributes:
        count: bytes of one core.
        first, last: numbers of the ops that make it and read it last.
        stays: from call to call.
    """

    op: ir.Operation
    count: int
    first: int
    last: int
    stays: bool

    def at(self, number: int) -> bool:
        """Whether it has to be kept beside what the program of this number holds itself."""
        return number < self.last and self.first < number or (self.stays and self.first != number)


def place(block: ir.Block, peaks: Mapping[int, int], machine: Machine, resident: bool = False) -> None:
    """Say which weights stream in from outside in each call, so that all fits; note the bytes of each program.

    A program may overwrite what it reads: what is read again is counted beside the program's own buffers.

    Args:
        block: of the function.
        peaks: for the number of each op that is a program, in the order of the text and with those of loops, bytes of
            its fullest core, without code.
        resident: weights have to stay: nothing streams.

    Raises:
        UserError: a core's memory is too small even where all weights are streamed, or they have to stay.
    """
    operations = in_order(block)
    held = _held(operations)
    needs = {at: peak + sum(one.count for one in held if one.at(at)) for at, peak in peaks.items()}
    room = machine.sram_bytes - machine.mesh.code_bytes
    movable = sorted((one for one in held if one.stays), key=lambda one: one.count)
    while max(needs.values(), default=0) > room:
        if resident or not movable or not machine.mesh.offchip_bytes_per_cycle:
            raise _too_much(operations, held, needs, machine, resident)
        _stream(movable.pop(), machine)
        needs = {at: peak + sum(one.count for one in held if one.at(at)) for at, peak in peaks.items()}
    for at, need in needs.items():
        operations[at].attributes[MEMORY] = number(machine.mesh.code_bytes + need)


def _stream(one: _Held, machine: Machine) -> None:
    one.stays = False
    one.op.attributes[STREAMED] = ir.UnitAttr.get()
    remark(
        one.op,
        f"{one.count} bytes a core stream in from outside in each call: the cores of {machine.name} cannot keep them",
    )


def _held(operations: Sequence[ir.Operation]) -> list[_Held]:
    places = {op: at for at, op in enumerate(operations)}
    found = []
    for at, op in enumerate(operations):
        inside = [one for region in op.regions for block in region.blocks for one in block.arguments]
        ends = _last_inside(op, places)
        for value in [*inside, *op.results] if ends > at or op.results else []:
            if Layout.of(value.type) is not None:
                made = at if isinstance(value, ir.BlockArgument) else ends
                readers = [_read_last(use.owner.operation, value, places) for use in value.uses]
                last = max(readers, default=made)
                found.append(_Held(op, block_bytes(value.type), made, last, FIXED in op.attributes))
    return found


def _last_inside(op: ir.Operation, places: Mapping[ir.Operation, int]) -> int:
    """The number of the last op in a loop or branch; its own for any other."""
    last = places[op]
    for region in op.regions:
        for block in region.blocks:
            end = block.operations[len(block.operations) - 1].operation
            if end in places:
                last = max(last, _last_inside(end, places))
    return last


def _read_last(user: ir.Operation, value: ir.Value, places: Mapping[ir.Operation, int]) -> int:
    """When a user reads a value last: at the end of the outermost loop around it that the value is not in."""
    home = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    outer = user
    while outer.block != home:
        outer = outer.block.owner.operation
    while user not in places:
        user = user.block.owner.operation
    return places[user] if outer == user or outer not in places else _last_inside(outer, places)


def _too_much(
    operations: Sequence[ir.Operation],
    held: Sequence[_Held],
    needs: Mapping[int, int],
    machine: Machine,
    resident: bool,
) -> UserError:
    at = max(needs, key=lambda number: needs[number])
    name = ir.StringAttr(operations[at].attributes["name"]).value
    beside = sorted((one.count for one in held if one.at(at)), reverse=True)
    own = needs[at] - sum(beside)
    remedy = "leave resident= out (weights stream in for each call)" if resident else "a model that is cut in parts"
    error = UserError(
        f"Memory: a core of machine '{machine.name}' has {machine.sram_bytes} bytes, of which code takes "
        f"{machine.mesh.code_bytes}; at program '{name}' core (y=0, x=0) needs {needs[at]}: {own} of the program's "
        f"own, and {len(beside)} tensors that are read again ({', '.join(map(str, beside[:8]))} bytes). Use a machine "
        f"with more cores or memory, narrower numbers, a smaller batch, or {remedy}."
    )
    error.mlir_location = operations[at].location  # type: ignore[attr-defined]
    return error
