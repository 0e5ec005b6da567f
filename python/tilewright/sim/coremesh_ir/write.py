# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a `Program` to a `coremesh.program`, op by op; what kernels compute is told by who made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import UserError
from tilewright.dialects import coremesh
from tilewright.dialects.coremesh import Buffer, Condition, ProgramBuilder, Slot
from tilewright.mlir import ir
from tilewright.sim.coremesh import program as values
from tilewright.sim.coremesh_ir.expressions import to_affine

#: Makes ops that compute, from the tiles that a kernel reads, those that it writes.
Body = Callable[[values.Compute, list[ir.Value]], Sequence[ir.Value]]

_TYPES = {"bf16": "bf16", "f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2"}


def element_type(dtype: object) -> ir.Type:
    """The MLIR type of a NumPy dtype; unsigned integers become signless."""
    name = from_numpy(dtype)  # pyright: ignore[reportArgumentType]
    return ir.Type.parse(_TYPES.get(name, name.replace("u", "i")))


def write_program(program: values.Program, inputs: Mapping[str, ir.Value], body: Body) -> dict[str, ir.Value]:
    """Make the op at the current insertion point.

    Args:
        program: all names of its inputs are keys of ``inputs``.
        inputs: tensors of the shapes that the program says.
        body: fills the region of a `compute`.

    Returns:
        its results by the names of outputs.

    Raises:
        UserError: an input is missing.
    """
    missing = sorted({place.name for place in program.inputs} - set(inputs))
    if missing:
        raise UserError(f"program {program.name}: no tensor for its input {missing[0]}; given: {sorted(inputs)}")
    names = list(dict.fromkeys(place.name for place in program.inputs))
    outputs = list(dict.fromkeys(place.name for place in program.outputs))
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    shapes = {place.name: (place.shape, dtypes[place.slot.buffer]) for place in program.outputs}
    results = [ir.RankedTensorType.get(shape, element_type(dtype)) for shape, dtype in shapes.values()]
    grid = (program.height, program.width)
    with coremesh.program(program.name, grid, [inputs[name] for name in names], results) as builder:
        writer = _Writer(builder, program, body)
        for place in program.inputs:
            tensor = builder.inputs[names.index(place.name)]
            builder.place(tensor, writer.slot(place.slot), _block(place), place.order)
        writer.instructions(program.body)
        made = [writer.collect(name, type_) for name, type_ in zip(outputs, results, strict=True)]
        builder.yield_(*made)
    builder.op.attributes["input_names"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
    builder.op.attributes["output_names"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in outputs])
    return dict(zip(outputs, builder.op.results, strict=True))


class _Writer:
    """Writes the instructions of one program."""

    def __init__(self, builder: ProgramBuilder, program: values.Program, body: Body) -> None:
        self.builder, self.program, self.body = builder, program, body
        self.buffers = {one.name: self._buffer(one) for one in program.buffers}
        for route in program.routes:
            builder.route(
                route.name, route.axis, to_affine(route.source), route.order, route.colors, to_affine(route.color)
            )
        self.tokens: dict[str, list[ir.Value]] = {}

    def _buffer(self, buffer: values.Buffer) -> Buffer:
        tile = ir.RankedTensorType.get(buffer.shape, element_type(buffer.dtype))
        return self.builder.buffer(buffer.name, tile, buffer.slots, buffer.address)

    def slot(self, slot: values.Slot) -> Slot:
        """One slot."""
        return self.buffers[slot.buffer][to_affine(slot.index)]

    def collect(self, name: str, type_: ir.Type) -> ir.Value:
        """One output, of all places that hold tiles of it."""
        places = [place for place in self.program.outputs if place.name == name]
        if len({place.order for place in places}) > 1:
            raise UserError(f"program {self.program.name}: places of output {name} count cores in several orders")
        pieces = [(self.slot(place.slot), _block(place)) for place in places]
        return self.builder.collect(pieces, type_, places[0].order)

    def instructions(self, body: Sequence[values.Instruction]) -> None:
        """Several instructions."""
        for instruction in body:
            self._instruction(instruction)

    def _instruction(self, one: values.Instruction) -> None:
        match one:
            case values.Compute():
                self._compute(one)
            case values.Wait():
                self._wait(one)
            case values.Loop():
                with self.builder.loop(one.count):
                    self.instructions(one.body)
            case _:
                self.tokens.setdefault(one.token, []).append(self._transfer(one))

    def _wait(self, one: values.Wait) -> None:
        """All that has made these tokens since they were waited for."""
        tokens = [made for token in one.tokens for made in self.tokens.pop(token, [])]
        self.builder.wait(tokens, one.overhead or "none")

    def _transfer(self, one: values.Send | values.Recv | values.Relay) -> ir.Value:
        slot, where, order = self.slot(one.slot), _where(one.cores), one.cores.order
        match one:
            case values.Send():
                return self.builder.send(slot, one.route, where, order)
            case values.Recv():
                return self.builder.recv(slot, one.route, one.combine, where, order)
            case values.Relay():
                return self.builder.relay(slot, one.incoming, one.outgoing, one.combine, where, order)

    def _compute(self, one: values.Compute) -> None:
        reads, writes = [self.slot(slot) for slot in one.reads], [self.slot(slot) for slot in one.writes]
        with self.builder.compute(one.name, reads, writes, _where(one.cores), one.cores.order) as tiles:
            self.builder.yield_(*self.body(one, tiles))


def _where(cores: values.Cores) -> list[Condition]:
    bounds = [Condition(to_affine(expr), exact=False) for expr in cores.at_least_zero]
    return bounds + [Condition(to_affine(expr), exact=True) for expr in cores.zero]


def _block(place: values.Place) -> list[ir.AffineExpr]:
    return [to_affine(expr) for expr in place.block]
