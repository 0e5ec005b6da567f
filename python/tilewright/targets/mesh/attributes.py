# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the phases of this target tell each other, as attributes, and what of a module needs no run."""

from __future__ import annotations

from tilewright.devices import Device
from tilewright.ir.generics import maker
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine, machine

#: On the function: cores along each side of the grid.
SIDE = "coremesh.side"
#: On a generic: the axis along each loop; "" where it is not split.
LOOPS = "coremesh.loops"
#: On a product: the op that it becomes.
ALGORITHM = "coremesh.algorithm"
#: On a loop or branch: the axes along the dimensions of what it carries; a unit for what stays outside.
CARRIED = "coremesh.carried"
#: On an op: why it is interpreted outside of the grid.
OUTSIDE = "coremesh.outside"
#: What `OUTSIDE` says of a gather that computes nothing: the elements that it picks pass the edge, as any operand does.
FETCHED = "what it picks of a table outside comes in as an operand does"
#: On a loop: it takes blocks of tensors through the grid that no core could hold a part of; what it carries is outside.
STREAMS = "coremesh.streams"
#: On an op that only makes a border of windows: who reads these makes it.
BORDER = "coremesh.border"
#: On `coremesh.distribute`: it comes from outside in each call, since the cores cannot hold it.
STREAMED = "coremesh.streamed"
#: On `coremesh.distribute`: it comes in while the program before it runs, which it fits beside.
AHEAD = "coremesh.ahead"
#: On `coremesh.distribute`: it is done once, before all calls.
FIXED = "coremesh.fixed"
#: On `coremesh.program`: bytes of the fullest core, code included, with what else lies there; colors of a router.
MEMORY, COLORS = "coremesh.memory", "coremesh.colors"

#: The op with which loops of the model that stay outside make results.
ELEMENT = "tensor.insert"
#: How windows are read, as algorithms.
WAYS = ("windows", "im2col")
_PARAMETERS = ("arith.constant", "ml_program.global_load_const", "tensor.empty")
#: The overheads that layouts are chosen for.
PRESET = "calibrated"


def machine_of(op: ir.Operation) -> Machine:
    """The mesh that a module is compiled for.

    Raises:
        UserError: it names none.
    """
    device: Device = device_of(op, "a pass for meshes")
    return machine(device, PRESET)


def keeps(op: ir.Operation) -> bool:
    """Whether an op is a loop that keeps on the grid what goes from one iteration to the next."""
    return op.name != "scf.if" and STREAMS not in op.attributes


def texts(values: list[str]) -> ir.ArrayAttr:
    """A list of texts as an attribute."""
    return ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values])


def number(value: int) -> ir.IntegerAttr:
    """A number of 64 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


class Fixed:
    """Which values follow from weights and constants alone."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def __call__(self, value: ir.Value) -> bool:
        """Whether a value is the same in each call."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: ir.Value) -> bool:
        made = maker(value)
        if made is None:
            return False
        if made.name in _PARAMETERS:
            return not list(made.operands)
        return made.name.partition(".")[0] in ("tensor", "linalg", "sparse_tile") and self.of(made)

    def of(self, op: ir.Operation) -> bool:
        """Whether all that an op reads, in its body, too, is the same in each call."""
        return all(map(self, _read(op)))


def _read(op: ir.Operation) -> list[ir.Value]:
    """The values that an op reads from outside of it."""
    read: list[ir.Value] = []
    own: set[ir.Value] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        own.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                own.update(block.arguments)
        read.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return [value for value in read if value not in own]
