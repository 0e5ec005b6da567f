# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the model that write single elements (scatter, scan, sort), which cores run.

One element may depend on any other that was written before. Where an index of the loops tells that it does not, cores
share the work (`shared_loops`); else each does all of it, and what they make lies in each of them. The host has no part
in it, but for numbers that it brings or reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import ancestors, descendants, maker
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.computations import KINDS
from tilewright.targets.mesh.placement import Axes

#: What `coremesh.algorithm` says on such a loop.
ELEMENTS = "elements"
#: Ops that may be such a loop, or stand in one.
CONTROL = ("scf.for", "scf.while", "scf.if")
_INSIDE = ("tensor.extract", ELEMENT, "tensor.empty", "scf.yield", "scf.condition", *CONTROL)
_STARTS = ("arith.constant", "tensor.empty", "linalg.fill")


@dataclass(frozen=True, eq=False)
class Around:
    """What a loop reads from around it.

    Attributes:
        tensors: that cores have to hold.
        numbers: that the host has.
        made: constants, and tensors that are empty or filled at first: each core makes them.
    """

    tensors: tuple[ir.Value, ...]
    numbers: tuple[ir.Value, ...]
    made: tuple[ir.Operation, ...]


def single_elements(op: ir.Operation, room: int, axes_of: Callable[[ir.Value], Axes], side: int) -> Around | str:
    """What a loop reads; a text that says why cores cannot run it.

    Args:
        room: bytes of a core.
        axes_of: how a tensor lies that it reads or makes.
        side: cores along each side of the grid.
    """
    inner = [op, *descendants(op)]
    if op.name not in CONTROL or not any(one.name == ELEMENT for one in inner):
        return "nothing writes single elements in a loop"
    wrong = next((one.name for one in inner if not _is_simple(one)), "")
    if wrong:
        return f"it writes single elements, and does {wrong}"
    values = [value for one in inner for value in (*one.operands, *one.results)]
    kind = next((value.type for value in values if not _is_held(value.type)), None)
    if kind is not None:
        return f"it writes single elements, with values that no core has: {kind}"
    around = _around(op, inner)
    need = sum(_bytes(value, axes_of, side) for value in (*around.tensors, *around.numbers, *op.results))
    if need > room:
        return f"it writes single elements of tensors of {need} bytes, and a core has {room} left"
    return around


def enclosing(op: ir.Operation) -> list[ir.Operation]:
    """An op and those around it in its function, the outermost last."""
    return [op, *takewhile(lambda one: one.name != "func.func", ancestors(op))]


def _is_simple(op: ir.Operation) -> bool:
    return op.name in _INSIDE or op.name.partition(".")[0] in ("arith", "math")


def _is_held(kind: ir.Type) -> bool:
    """Whether a core can have values of a type."""
    if isinstance(kind, ir.RankedTensorType):
        tensor = ir.RankedTensorType(kind)
        return tensor.has_static_shape and 0 not in tensor.shape and str(tensor.element_type) in KINDS
    return isinstance(kind, ir.IndexType) or str(kind) in KINDS


def _around(op: ir.Operation, inner: list[ir.Operation]) -> Around:
    """Values that come from outside of the loop, each once, in the order in which they are read."""
    own = {value for one in inner for value in one.results}
    own |= {value for one in inner for region in one.regions for block in region.blocks for value in block.arguments}
    read = dict.fromkeys(value for one in inner for value in one.operands if value not in own)
    made: dict[ir.Operation, None] = {}
    for value in list(read):
        source = maker(value)
        if source is not None and source.name in _STARTS and not _is_weight(source):
            made |= dict.fromkeys([*filter(None, map(maker, source.operands)), source])
            del read[value]
    tensors = [value for value in read if isinstance(value.type, ir.RankedTensorType)]
    return Around(tuple(tensors), tuple(value for value in read if value not in tensors), tuple(made))


def _is_weight(source: ir.Operation) -> bool:
    """Whether a constant is a tensor, which lies in memory; a fill must be of a constant."""
    if source.name == "linalg.fill":
        number, place = (maker(value) for value in source.operands)
        return number is None or place is None or number.name != "arith.constant" or place.name != "tensor.empty"
    return source.name == "arith.constant" and isinstance(source.results[0].type, ir.RankedTensorType)


def _bytes(value: ir.Value, axes_of: Callable[[ir.Value], Axes], side: int) -> int:
    kind = listed(value)
    axes = axes_of(value) if kind == value.type else ("",)
    parts = [-(-size // side) if axis else size for size, axis in zip(kind.shape, axes, strict=True)]
    return prod(parts) * of_mlir(str(kind.element_type)).itemsize


def listed(value: ir.Value) -> ir.RankedTensorType:
    """A tensor's type; of a number that of a tensor of it, an index as 32 bits."""
    if isinstance(value.type, ir.RankedTensorType):
        return ir.RankedTensorType(value.type)
    is_index = isinstance(value.type, ir.IndexType)
    return ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32) if is_index else value.type)
