# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How laid-out tensors lie on a grid, as programs place them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UnsupportedError
from tilewright.dialects.coremesh import Layout, Split
from tilewright.mlir import ir
from tilewright.plan.mesh.reduction import Kind
from tilewright.plan.mesh.terms import Term, X, Y, term
from tilewright.plan.mesh.writer import Axis, Writer, slot
from tilewright.sim.coremesh.program import Order, Slot
from tilewright.sim.coremesh.ring import logical

#: Algorithms of reductions, in the dialect's order.
KINDS: tuple[Kind, ...] = ("chain", "star", "tree", "two_phase", "k_tree", "ring")


@dataclass(frozen=True)
class Laid:
    """A laid-out tensor.

    Attributes:
        splits: per dimension; None: not split.
        at: the one position along an axis that has the tensor.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    height: int
    width: int
    splits: tuple[Split | None, ...]
    at: dict[Axis, int]

    def length(self, axis: Axis) -> int:
        """Cores along an axis."""
        return self.height if axis == "y" else self.width

    @property
    def order(self) -> Order:
        """How all splits count.

        Raises:
            UnsupportedError: they differ.
        """
        orders = {split.order for split in self.splits if split is not None}
        if len(orders) > 1:
            raise UnsupportedError(
                "A tensor is split along a ring on one axis and as cores stand on the other; programs count both "
                "alike. Use `ring` on both axes or on none."
            )
        return "ring" if "ring" in orders else "linear"

    @property
    def tile(self) -> tuple[int, ...]:
        """What one core holds, with padding."""
        return tuple(self._part(size, split) for size, split in zip(self.shape, self.splits, strict=True))

    def axis_of(self, dimension: int) -> Axis:
        """The axis that splits a dimension."""
        split = self.splits[dimension]
        assert split is not None
        return split.axis

    def blocks(self) -> list[Term]:
        """Index of the block per dimension that a core at (y, x) holds; where it holds none, one behind the tensor.

        Raises:
            UnsupportedError: blocks of several sizes, or finer ones.
        """
        found = [self._block(split) for split in self.splits]
        for axis, position in self.at.items():
            if not found:
                raise UnsupportedError("A single number cannot lie on one core alone: let all cores have it.")
            count = -(-self.shape[0] // self.tile[0])
            found[0] += (_place(axis) - self.position(axis, position)) % self.length(axis) * count
        return found

    def position(self, axis: Axis, place: int) -> int:
        """Where a place along an axis is in the order of the layout."""
        return place if self.order == "linear" else logical(place, self.length(axis))

    def _block(self, split: Split | None) -> Term:
        if split is None:
            return term(0)
        dealt = deal(split)
        if split.skew or dealt:
            raise UnsupportedError(f"This op moves plain blocks alone, not{' skewed ones' * split.skew}{dealt}.")
        place = _place(split.axis)
        return (place + split.rotate) % self.length(split.axis) if split.rotate else place

    def _part(self, size: int, split: Split | None) -> int:
        if split is None:
            return size
        return block(split) or -(-size // self.length(split.axis))


def block(split: Split) -> int | None:
    """Elements of each block, as they are given; None: the size divided by the positions, rounded up."""
    return split.blocks[0] if len(split.blocks) == 1 else None


def deal(split: Split) -> str:
    """What else but blocks of one size a dimension is dealt in, for messages; empty: none."""
    if len(split.blocks) > 1:
        return f" uneven {list(split.blocks)}"
    return "" if split.deal == "block" else f" {split.deal}"


def laid(value: ir.Value) -> Laid:
    """How a value lies.

    Raises:
        UnsupportedError: it has no elements.
    """
    kind = ir.RankedTensorType(value.type)
    if 0 in kind.shape:
        raise UnsupportedError(f"{kind} has no elements, so that no core would hold a part of it. Leave the op out.")
    layout = Layout.of(kind)
    assert layout is not None, f"no layout: {value.type}"
    given: dict[Axis, int | None] = {"y": layout.at_y, "x": layout.at_x}
    at = {axis: position for axis, position in given.items() if position is not None}
    return Laid(tuple(kind.shape), of_mlir(str(kind.element_type)), layout.height, layout.width, layout.splits, at)


def put(writer: Writer, name: str, value: Laid, at: Slot, output: bool = False) -> None:
    """Say that a tensor lies in a slot as its layout says."""
    (writer.output if output else writer.input)(name, value.shape, at, value.blocks(), value.order)


def received(writer: Writer, name: str, value: Laid) -> Slot:
    """A new buffer that holds an input."""
    at = slot(writer.buffer(name, value.tile, value.dtype))
    put(writer, name, value, at)
    return at


def _place(axis: Axis) -> Term:
    return Y if axis == "y" else X
