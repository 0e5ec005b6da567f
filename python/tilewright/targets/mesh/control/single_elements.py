# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the model that write single elements (scatter, scan, sort): each core runs them, on whole tensors.

One element may depend on any other that was written before, so that nothing is split among cores: all do the same, and
what they make lies in each of them. The host has no part in it, but for numbers that it brings or reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import ancestors, create, maker
from tilewright.mlir import ir
from tilewright.plan.mesh.collectives.regions import renamed
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.computations import KINDS
from tilewright.targets.mesh.placement import Placement, laid_type

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


def single_elements(op: ir.Operation, room: int) -> Around | str:
    """What a loop reads; a text that says why cores cannot run it.

    Args:
        room: bytes of a core.
    """
    inner = [op, *_inside(op)]
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
    need = sum(map(_bytes, (*around.tensors, *around.numbers, *op.results)))
    if need > room:
        return f"it writes single elements of tensors of {need} bytes, and a core has {room} left"
    return around


def enclosing(op: ir.Operation) -> list[ir.Operation]:
    """An op and those around it in its function, the outermost last."""
    return [op, *takewhile(lambda one: one.name != "func.func", ancestors(op))]


def on_every_core(op: ir.Operation, around: Around, placement: Placement) -> None:
    """Let all cores run a loop; its results lie in each of them, numbers go to the host."""
    inputs = [placement.laid(value, ("",) * ir.RankedTensorType(value.type).rank) for value in around.tensors]
    inputs += [placement.number(value) for value in around.numbers]
    kinds = [laid_type(kind, ("",) * kind.rank, placement.side) for kind in map(_listed, op.results)]
    made = ir.Operation.create("coremesh.local", results=kinds, operands=inputs, regions=1)
    plain = [ir.RankedTensorType(value.type) for value in inputs]
    blocks = [ir.RankedTensorType.get(kind.shape, kind.element_type) for kind in plain]
    block = ir.Block.create_at_start(made.regions[0], blocks)
    with ir.InsertionPoint(block):
        ir.Operation.create("coremesh.yield", operands=_copied(op, around, list(block.arguments)))
    for old, new in zip(op.results, made.results, strict=True):
        if isinstance(old.type, ir.RankedTensorType):
            placement.made(old, new)
        else:
            old.replace_all_uses_with(_number(new, old.type))


def _copied(op: ir.Operation, around: Around, arguments: list[ir.Value]) -> list[ir.Value]:
    """A copy of a loop that reads a core's blocks; its results, each as a tensor."""
    known = dict(zip(around.tensors, arguments, strict=False))
    for value, block in zip(around.numbers, arguments[len(around.tensors) :], strict=True):
        known[value] = _element(block, value.type)
    for one in around.made:
        copy = renamed(one.clone(), known)
        known.update(zip(one.results, copy.results, strict=True))
    copy = renamed(op.clone(), known)
    for attribute in [name for name in copy.attributes if name.startswith("coremesh.")]:
        del copy.attributes[attribute]
    return [_as_tensor(value) for value in copy.results]


def _as_tensor(value: ir.Value) -> ir.Value:
    if isinstance(value.type, ir.RankedTensorType):
        return value
    kind = _listed(value)
    if isinstance(value.type, ir.IndexType):
        value = create("arith.index_cast", [value], kind.element_type)
    return create("tensor.from_elements", [value], kind)


def _listed(value: ir.Value) -> ir.RankedTensorType:
    """A tensor's type; of a number that of a tensor of it, an index as 32 bits."""
    if isinstance(value.type, ir.RankedTensorType):
        return ir.RankedTensorType(value.type)
    is_index = isinstance(value.type, ir.IndexType)
    return ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32) if is_index else value.type)


def _number(laid: ir.Value, kind: ir.Type) -> ir.Value:
    """A number that cores have made, for the host."""
    plain = ir.RankedTensorType(laid.type)
    whole = create("coremesh.assemble", [laid], ir.RankedTensorType.get(plain.shape, plain.element_type))
    return _element(whole, kind)


def _element(listed: ir.Value, kind: ir.Type) -> ir.Value:
    """The only element of a tensor."""
    index = ir.IndexType.get()
    zero = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, 0)})
    element = create("tensor.extract", [listed, zero], ir.RankedTensorType(listed.type).element_type)
    return element if element.type == kind else create("arith.index_cast", [element], kind)


def _inside(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation != op:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


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


def _bytes(value: ir.Value) -> int:
    kind = _listed(value)
    return prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize
