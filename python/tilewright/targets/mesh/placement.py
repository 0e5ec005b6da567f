# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of a function that lie on the grid, outside of it, or both; what moves between is made once.

What lies on the grid moves there, from core to core, or through its edge, whichever is faster (`moves`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright.core.dtypes import of_mlir
from tilewright.dialects.coremesh import Layout, Split, block_type
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import create, create_transposed, maker
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import FIXED, Fixed
from tilewright.targets.mesh.moves import Moves

#: Per dimension: "", an axis, an axis whose blocks are skewed, as in "y skew", or of a size, as in "x block 4".
Axes = tuple[str, ...]


def laid_type(kind: ir.Type, axes: Axes, side: int) -> ir.RankedTensorType:
    """The type of a tensor that lies on a square grid, split along these axes, counted along rings."""
    tensor = ir.RankedTensorType(kind)
    splits = tuple(_split(axis) for axis in axes)
    text = ", ".join("*" if split is None else str(split) for split in splits)
    layout = ir.Attribute.parse(f"#coremesh.layout<grid({side}, {side}), [{text}]>")
    return ir.RankedTensorType.get(tensor.shape, tensor.element_type, layout)


def axes_of(value: ir.Value) -> Axes:
    """How a value on the grid lies."""
    layout = Layout.of(value.type)
    assert layout is not None
    return tuple("" if split is None else _written(split) for split in layout.splits)


def local(inputs: Sequence[ir.Value], result: ir.Type, compute: Callable[[list[ir.Value]], ir.Value]) -> ir.Value:
    """A `coremesh.local`: what each core computes of its blocks alone.

    Args:
        inputs: values on the grid; one at least.
        result: a type with a layout.
        compute: makes the block of the result of those of the inputs.
    """
    op = ir.Operation.create("coremesh.local", results=[result], operands=list(inputs), regions=1)
    block = ir.Block.create_at_start(op.regions[0], [block_type(value.type) for value in inputs])
    with ir.InsertionPoint(block):
        ir.Operation.create("coremesh.yield", operands=[compute(list(block.arguments))])
    return op.result


def empty_block(kind: ir.Type) -> ir.Value:
    """An empty tensor of the shape of a core's block, at the current insertion point."""
    return create("tensor.empty", [], block_type(kind))


def before_users(value: ir.Value) -> AbstractContextManager[Any]:
    """The insertion point for what is made of a value once, wherever it is read: before the loops around the reader."""
    point = ir.InsertionPoint.current
    made = maker(value)
    home = value.owner if made is None else made.block
    block, at = point.block, None
    while block != home:
        at = block.owner.operation
        block = at.block
    return nullcontext() if at is None else ir.InsertionPoint(at)


def _before_loops() -> AbstractContextManager[Any]:
    """The insertion point before the outermost loop around."""
    block, at = ir.InsertionPoint.current.block, None
    while block.owner.operation.name != "func.func":
        at = block.owner.operation
        block = at.block
    return nullcontext() if at is None else ir.InsertionPoint(at)


@dataclass
class _Places:
    """Where one value is to be had.

    Attributes:
        outside: as the tensor that it is.
        laid: on the grid, by layout.
        turned: with its dimensions in another order, and how these lie where it comes from outside.
    """

    outside: ir.Value | None = None
    laid: dict[Axes, ir.Value] = field(default_factory=dict)
    turned: dict[tuple[tuple[int, ...], Axes], ir.Value] = field(default_factory=dict)


class Placement:
    """Finds values where they are needed; everything is made at the current insertion point.

    Attributes:
        side: cores along each side of the grid.
        moves: decides how values move from one layout to another.
        fixed: which values are the same in each call.
        depth: how many loops are around: in these nothing is moved through the edge that the grid can move.
    """

    def __init__(self, side: int, moves: Moves) -> None:
        self.side, self.moves, self.fixed, self.depth = side, moves, Fixed(), 0
        self._places: dict[ir.Value, _Places] = {}
        self._made: set[ir.Value] = set()
        self._starts: dict[tuple[str, int], ir.Value] = {}

    def made(self, value: ir.Value, laid: ir.Value) -> None:
        """A value of the model has been computed on the grid."""
        self._places[value] = _Places(laid={axes_of(laid): laid})
        self._made.add(value)

    def is_made(self, value: ir.Value) -> bool:
        """Whether a value has been computed on the grid."""
        return value in self._made

    def any(self, value: ir.Value) -> tuple[ir.Value, Axes]:
        """A value that has been computed on the grid, and how it lies."""
        axes, laid = next(iter(self._places[value].laid.items()))
        return laid, axes

    def carries(self, value: ir.Value, axes: Axes) -> None:
        """A value of a loop goes from iteration to iteration on the grid: its own type is one with a layout."""
        value.set_type(laid_type(value.type, axes, self.side))
        self.made(value, value)

    def number(self, value: ir.Value) -> ir.Value:
        """A number that the host has, for all cores, as a tensor of one element; an index goes as one of 32 bits."""
        places = self._of(value)
        if () not in places.laid:
            with before_users(value):
                short = value
                if isinstance(value.type, ir.IndexType):
                    short = create("arith.index_cast", [value], ir.IntegerType.get_signless(32))
                listed = create("tensor.from_elements", [short], ir.RankedTensorType.get([1], short.type))
                places.laid[()] = self._distributed(listed, ("",), False)
        return places.laid[()]

    def starts(self, axis: str, size: int) -> ir.Value:
        """For each core the index of its first element of a dimension of this size along an axis: tensor<sidexi32>."""
        block = -(-size // self.side)
        if (axis, block) not in self._starts:
            i32 = ir.IntegerType.get_signless(32)
            kind = ir.RankedTensorType.get([self.side], i32)
            numbers = [ir.IntegerAttr.get(i32, place * block) for place in range(self.side)]
            with _before_loops():
                listed = create("arith.constant", [], kind, {"value": ir.DenseElementsAttr.get(numbers, kind)})
                self._starts[axis, block] = self._distributed(listed, (axis,), True)
        return self._starts[axis, block]

    def fits(self, *laid: ir.Type) -> bool:
        """Whether a core holds its blocks of tensors of these types at once."""
        machine = self.moves.machine
        room = None if machine is None else machine.sram_bytes - machine.mesh.code_bytes
        return room is None or sum(map(block_bytes, laid)) <= room

    def outside(self, value: ir.Value, why: str) -> ir.Value:
        """The value as a tensor outside of the grid.

        Args:
            why: what needs it there, for a remark; empty: a result of the model, of which none is made.
        """
        places = self._of(value)
        if places.outside is None:
            laid = next(iter(places.laid.values()))
            with before_users(value):
                kind = ir.RankedTensorType(value.type)  # a transposed or carried value has a layout of its own
                plain = ir.RankedTensorType.get(kind.shape, kind.element_type)
                made = create("coremesh.assemble", [laid], plain)
                places.outside = made
            if why:
                remark(made.owner, f"collected through the edge of the grid: {why}")
        return places.outside

    def laid(self, value: ir.Value, axes: Axes) -> ir.Value:
        """The value on the grid."""
        places = self._of(value)
        with before_users(value):
            if axes not in places.laid and places.laid:
                self._move(value, axes, places)
            if axes not in places.laid:
                source = self.outside(value, f"its reader needs it along ({', '.join(axis or '*' for axis in axes)})")
                places.laid[axes] = self._distributed(source, axes, self.fixed(value))
        return places.laid[axes]

    def _move(self, value: ir.Value, axes: Axes, places: _Places) -> None:
        """Move a value from core to core, unless that is not to be."""
        source, kind = next(iter(places.laid.values())), laid_type(value.type, axes, self.side)
        made = create("coremesh.relayout", [source], kind)
        if self.moves.on_grid(made.owner, self.depth > 0):
            places.laid[axes] = made
        else:
            made.owner.erase()
            self.outside(value, "")

    def transposed(self, value: ir.Value, order: Sequence[int], axes: Axes) -> ir.Value:
        """The value with its dimensions in another order: each core turns its block; weights are turned once, outside.

        Args:
            axes: how it is to lie in that order, where it is not on the grid yet.
        """
        if list(order) == list(range(len(order))):
            return value
        places, key = self._of(value), (tuple(order), () if self.is_made(value) else axes)
        if key not in places.turned:
            with before_users(value):
                places.turned[key] = self._turned(value, tuple(order), axes)
        return places.turned[key]

    def _turned(self, value: ir.Value, order: tuple[int, ...], axes: Axes) -> ir.Value:
        if self.fixed(value) and not self.is_made(value):
            return create_transposed(self.outside(value, ""), list(order))
        if self.is_made(value):
            source, lies = self.any(value)
        else:
            lies = tuple(axes[order.index(dim)] for dim in range(len(order)))
            source = self.laid(value, lies)
        kind = ir.RankedTensorType(value.type)
        turned = ir.RankedTensorType.get([kind.shape[dim] for dim in order], kind.element_type)
        result = laid_type(turned, tuple(lies[dim] for dim in order), self.side)
        made = local([source], result, lambda blocks: create_transposed(blocks[0], list(order)))
        self.made(made, made)
        return made

    def _distributed(self, source: ir.Value, axes: Axes, is_fixed: bool) -> ir.Value:
        kind = laid_type(source.type, axes, self.side)
        marked = {FIXED: ir.UnitAttr.get()} if is_fixed else None
        return create("coremesh.distribute", [source], kind, marked)

    def _of(self, value: ir.Value) -> _Places:
        return self._places.setdefault(value, _Places(outside=value))


def block_bytes(kind: ir.Type) -> int:
    """Bytes that one core holds of a tensor on the grid."""
    block = ir.RankedTensorType(block_type(kind))
    return prod(block.shape) * of_mlir(str(block.element_type)).itemsize


def _split(axis: str) -> Split | None:
    if not axis:
        return None
    name, *how = axis.split()
    blocks = (int(how[1]),) if how[:1] == ["block"] else ()
    return Split("y" if name == "y" else "x", order="ring", skew=how == ["skew"], blocks=blocks)


def _written(split: Split) -> str:
    return f"{split.axis} block {split.blocks[0]}" if split.blocks else split.axis
