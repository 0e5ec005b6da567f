# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lies in the cores' memories between programs: weights that stay, and activations until they are last read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UserError
from tilewright.dialects.coremesh import Layout
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import walk
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
    value: ir.Value
    count: int
    first: int
    last: int
    stays: bool

    def at(self, number: int) -> bool:
        """Whether it has to be kept beside what the program of this number holds itself."""
        return number < self.last and self.first < number or (self.stays and self.first != number)


def place(block: ir.Block, peaks: Mapping[int, int], machine: Machine, resident: bool = False) -> None:
    """Say which weights stream in from outside in each call, so that all fits; note the bytes of each program.

    What is read again is counted beside the program's own buffers, unless the program leaves it as it is.

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
    untouched = {at: set(_untouched(operations[at])) for at in peaks}
    needs = {
        at: peak + sum(one.count for one in held if one.at(at) and one.value not in untouched[at])
        for at, peak in peaks.items()
    }
    room = machine.sram_bytes - machine.mesh.code_bytes
    movable = sorted((one for one in held if one.stays), key=lambda one: one.count)
    while max(needs.values(), default=0) > room:
        if resident or not movable or not machine.mesh.offchip_bytes_per_cycle:
            raise _too_much(operations, held, needs, machine, resident)
        one = movable.pop()
        kept = {at: one.at(at) for at in peaks if one.value not in untouched[at]}
        _stream(one, machine)
        for at, was in kept.items():  # all else is as it was: large models have thousands of programs
            needs[at] += one.count * (one.at(at) - was)
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
                found.append(_Held(op, value, block_bytes(value.type), made, last, FIXED in op.attributes))
    return found


def _untouched(program: ir.Operation) -> Iterator[ir.Value]:
    """What a program reads where no other of its buffers lies, and does not overwrite."""
    body = program.regions[0].blocks[0]
    buffers = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in walk(program, "coremesh.buffer")}
    if not all("address" in op.attributes for op in buffers.values()):
        return
    spans = {name: _span(op) for name, op in buffers.items()}
    written = {ir.FlatSymbolRefAttr(op.attributes["buffer"]).value for op in walk(program, "coremesh.recv")}
    for op in walk(program, "coremesh.compute"):
        written |= {ir.FlatSymbolRefAttr(one).value for one in ir.ArrayAttr(op.attributes["writes"])}
    for op in walk(program, "coremesh.place"):
        name = ir.FlatSymbolRefAttr(op.attributes["buffer"]).value
        first, end = spans[name]
        others = [span for other, span in spans.items() if other != name]
        if name not in written and all(end <= start or stop <= first for start, stop in others):
            yield program.operands[list(body.arguments).index(op.operands[0])]


def _span(buffer: ir.Operation) -> tuple[int, int]:
    """The first byte of a buffer, and the one behind its last."""
    first = ir.IntegerAttr(buffer.attributes["address"]).value
    kind = ir.RankedTensorType(ir.TypeAttr(buffer.attributes["tile"]).value)
    slots = ir.IntegerAttr(buffer.attributes["slots"]).value if "slots" in buffer.attributes else 1
    return first, first + slots * prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize


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
