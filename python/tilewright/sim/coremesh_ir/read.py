# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a `coremesh.program` to a `Program`, op by op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.core.errors import UserError
from tilewright.dialects import coremesh
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.sim.coremesh import program as values
from tilewright.sim.coremesh.combinations import NAMES
from tilewright.sim.coremesh.expressions import Const, Expr
from tilewright.sim.coremesh_ir.cost import cost_of
from tilewright.sim.coremesh_ir.expressions import to_expression
from tilewright.sim.coremesh_ir.kernel import Kernel

_ORDERS: tuple[values.Order, ...] = ("linear", "ring")
_OVERHEADS = ("", "round", "collective")


def programs(module: ir.Module | ir.Operation) -> list[ir.Operation]:
    """All programs of a module, in the order of the text; they live as long as the module."""
    return list(_within(module.operation))


def _within(op: ir.Operation) -> Iterator[ir.Operation]:
    if op.name == "coremesh.program":
        yield op
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _within(inner.operation)


def read_program(op: ir.Operation | ir.OpView) -> values.Program:
    """The program that an op is.

    Inputs and outputs are called as the op's attributes ``input_names`` and ``output_names`` say, without these
    ``in0``, ``in1``, ..., ``out0``, ...

    Args:
        op: a verified `coremesh.program`; the values hold copies of what they need of it.

    Raises:
        UserError: the op is none.
    """
    operation = op.operation
    if operation.name != "coremesh.program":
        raise UserError(f"expected a coremesh.program, got {operation.name}: see read.programs for those of a module")
    return _Reader(operation).program()


def text_of(op: ir.Operation) -> str:
    """What tells a program from others: equal texts, equal programs.

    Decisions of the target that stand on the op (names with a dot) and what it reads do not count. A copy is printed:
    where it stands, all of the function around it would be numbered first.
    """
    copy = op.clone(ip=False).operation
    for name in list(copy.attributes):
        if "." in name:
            del copy.attributes[name]
    return copy.get_asm(use_local_scope=True, assume_verified=True)


def input_names(op: ir.Operation) -> list[str]:
    """What the operands of a program are called."""
    return [_name(op, "input_names", "in", number) for number in range(len(op.operands))]


def output_names(op: ir.Operation) -> list[str]:
    """What the results of a program are called."""
    return [_name(op, "output_names", "out", number) for number in range(len(op.results))]


class _Reader:
    """Reads one program."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.block = op.regions[0].blocks[0]
        self.tokens: dict[ir.Value, str] = {}

    def program(self) -> values.Program:
        """The whole."""
        attributes = self.op.attributes
        body = [one.operation for one in self.block.operations]
        return values.Program(
            attributes["name"].value,
            attributes["height"].value,
            attributes["width"].value,
            tuple(_buffer(one) for one in body if one.name == "coremesh.buffer"),
            tuple(_route(one) for one in body if one.name == "coremesh.route"),
            tuple(self._place(one) for one in body if one.name == "coremesh.place"),
            tuple(place for one in body if one.name == "coremesh.collect" for place in self._collect(one)),
            self._instructions(self.block),
        )

    def _instructions(self, block: ir.Block) -> tuple[values.Instruction, ...]:
        read = [self._instruction(one.operation) for one in block.operations]
        return tuple(instruction for instruction in read if instruction is not None)

    def _instruction(self, op: ir.Operation) -> values.Instruction | None:
        reader = getattr(self, f"_{op.name.partition('.')[2]}", None)
        is_declared = op.name in ("coremesh.place", "coremesh.collect")
        return None if reader is None or is_declared else reader(op)

    def _place(self, op: ir.Operation) -> values.Place:
        number = ir.BlockArgument(op.operands[0]).arg_number
        name = _name(self.op, "input_names", "in", number)
        return _placed(name, op.operands[0].type, _slot(op), op.attributes["block"], op)

    def _collect(self, op: ir.Operation) -> list[values.Place]:
        yielded = list(self.block.operations)[-1].operation.operands
        numbers = [number for number, value in enumerate(yielded) if value == op.results[0]]
        slots = _slots(op, "buffers", "indices")
        return [
            _placed(_name(self.op, "output_names", "out", number), op.results[0].type, slot, block, op)
            for number in numbers
            for slot, block in zip(slots, op.attributes["blocks"], strict=True)
        ]

    def _compute(self, op: ir.Operation) -> values.Compute:
        kernel = Kernel(op)
        return values.Compute(
            _cores(op),
            op.attributes["name"].value,
            _slots(op, "reads", "read_indices"),
            _slots(op, "writes", "write_indices"),
            cost_of(kernel.node),
            kernel,
        )

    def _send(self, op: ir.Operation) -> values.Send:
        return values.Send(_cores(op), op.attributes["route"].value, _slot(op), self._token(op))

    def _recv(self, op: ir.Operation) -> values.Recv:
        combine = NAMES[op.attributes["combine"].value] if "combine" in op.attributes else None
        return values.Recv(_cores(op), op.attributes["route"].value, _slot(op), self._token(op), combine)

    def _relay(self, op: ir.Operation) -> values.Relay:
        routes = op.attributes["incoming"].value, op.attributes["outgoing"].value
        combine = NAMES[op.attributes["combine"].value]
        return values.Relay(_cores(op), *routes, _slot(op), self._token(op), combine)

    def _wait(self, op: ir.Operation) -> values.Wait:
        tokens = tuple(self.tokens[token] for token in op.operands)
        return values.Wait(tokens, _OVERHEADS[_number(op, "overhead")])

    def _loop(self, op: ir.Operation) -> values.Loop:
        return values.Loop(op.attributes["count"].value, self._instructions(op.regions[0].blocks[0]))

    def _token(self, op: ir.Operation) -> str:
        name = f"{op.name.partition('.')[2]}{len(self.tokens)}"
        self.tokens[op.results[0]] = name
        return name


def _number(op: ir.Operation, name: str, default: int = 0) -> int:
    return op.attributes[name].value if name in op.attributes else default


def _name(op: ir.Operation, attribute: str, prefix: str, number: int) -> str:
    names = op.attributes[attribute] if attribute in op.attributes else ()
    return names[number].value if number < len(names) else f"{prefix}{number}"


def _order(op: ir.Operation) -> values.Order:
    return _ORDERS[_number(op, "order")]


def _one(attribute: Any) -> Expr:
    """The single expression of a map."""
    (expr,) = attribute.value.results
    return to_expression(expr)


def _slot(op: ir.Operation) -> values.Slot:
    return values.Slot(op.attributes["buffer"].value, _one(op.attributes["index"]))


def _slots(op: ir.Operation, buffers: str, indices: str) -> tuple[values.Slot, ...]:
    pairs = zip(op.attributes[buffers], op.attributes[indices], strict=True)
    return tuple(values.Slot(buffer.value, _one(index)) for buffer, index in pairs)


def _cores(op: ir.Operation) -> values.Cores:
    if "cores" not in op.attributes:
        return values.Cores(order=_order(op))
    map_, exact = coremesh.constraints(op.attributes["cores"])
    exprs = [to_expression(expr) for expr in map_.results]
    pairs = list(zip(exprs, exact, strict=True))
    return values.Cores(
        tuple(expr for expr, is_exact in pairs if not is_exact),
        tuple(expr for expr, is_exact in pairs if is_exact),
        _order(op),
    )


def _buffer(op: ir.Operation) -> values.Buffer:
    tile = op.attributes["tile"].value
    address = _number(op, "address") if "address" in op.attributes else None
    name = op.attributes["sym_name"].value
    return values.Buffer(name, types.shape_of(tile), types.dtype_of(tile), _number(op, "slots", 1), address)


def _route(op: ir.Operation) -> values.Route:
    return values.Route(
        op.attributes["sym_name"].value,
        "x" if _number(op, "axis") else "y",
        _one(op.attributes["source"]),
        _order(op),
        tuple(op.attributes["colors"]) if "colors" in op.attributes else (),
        _one(op.attributes["color"]) if "color" in op.attributes else Const(0),
    )


def _placed(name: str, type_: ir.Type, slot: values.Slot, block: Any, op: ir.Operation) -> values.Place:
    exprs = tuple(to_expression(expr) for expr in block.value.results)
    return values.Place(name, types.shape_of(type_), slot, exprs, _order(op))
