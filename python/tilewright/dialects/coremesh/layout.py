# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which core of a grid has which elements of a tensor: `#coremesh.layout` as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from typing import Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops

Axis = Literal["x", "y"]
Order = Literal["linear", "ring"]
Deal = Literal["block", "cyclic", "balanced"]


@dataclass(frozen=True)
class Split:
    """How a dimension lies along an axis; the fields are those of `#coremesh.split`.

    Attributes:
        blocks: none, the size of each block, or the sizes of all.
    """

    axis: Axis
    order: Order = "linear"
    skew: bool = False
    rotate: int = 0
    deal: Deal = "block"
    blocks: tuple[int, ...] = ()

    def __str__(self) -> str:
        """As the attribute is written."""
        words = [self.axis, *(["ring"] if self.order == "ring" else []), *(["skew"] if self.skew else [])]
        words += [f"rotate {self.rotate}"] if self.rotate else []
        words += [self.deal] if self.deal != "block" else []
        if len(self.blocks) == 1:
            words.append(f"block {self.blocks[0]}")
        elif self.blocks:
            words.append(f"uneven {list(self.blocks)}")
        return " ".join(words)


@dataclass(frozen=True)
class Layout:
    """A grid and how each dimension of a tensor lies on it.

    Attributes:
        splits: per dimension; None: whole.
        at_y, at_x: the only position along an axis that has the tensor; None: all have.
    """

    height: int
    width: int
    splits: tuple[Split | None, ...]
    at_y: int | None = None
    at_x: int | None = None

    @staticmethod
    def of(type_: ir.Type) -> Layout | None:
        """The layout of a tensor type; None where it has none."""
        if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
            return None
        entries = ops.layout_entries(type_.encoding)
        return None if entries is None else _from_entries(entries)

    def __str__(self) -> str:
        """As the attribute is written."""
        splits = ", ".join("*" if split is None else str(split) for split in self.splits)
        at = [f", at {axis} = {value}" for axis, value in (("y", self.at_y), ("x", self.at_x)) if value is not None]
        return f"#coremesh.layout<grid({self.height}, {self.width}), [{splits}]{''.join(at)}>"

    def attribute(self) -> ir.Attribute:
        """The attribute in the current context. Raises ``ir.MLIRError`` where a parameter is wrong."""
        return ir.Attribute.parse(str(self))

    def length(self, axis: Axis) -> int:
        """Cores along an axis."""
        return self.width if axis == "x" else self.height

    def holders(self) -> Iterator[tuple[int, int]]:
        """Cores (y, x) that have a part of the tensor, row by row."""
        for y in range(self.height):
            for x in range(self.width):
                if self.at_y in (None, y) and self.at_x in (None, x):
                    yield y, x

    def indices(self, dim: int, size: int, core: tuple[int, int], count: int | None = None) -> np.ndarray:
        """Which elements of a dimension a core has, in the order of its block.

        Args:
            size: of the dimension.
            core: (y, x), as cores stand.
            count: how many elements there are so far, of a ``balanced`` dimension.

        Returns:
            as many as its block has, padding included: that is ``size`` and more.

        Raises:
            UserError: a balanced dimension without a count.
        """
        split = self.splits[dim]
        if split is None:
            return np.arange(size)
        at = core if split.axis == "y" else core[::-1]
        lengths = self.length(split.axis), self.length("x" if split.axis == "y" else "y")
        place, other = (_position(p, n, split.order) for p, n in zip(at, lengths, strict=True))
        if split.deal != "block":
            return _dealt(split, size, place, lengths[0], count)
        if len(split.blocks) > 1:
            start = sum(split.blocks[:place])
            return np.arange(start, start + split.blocks[place])
        parts = lcm(*lengths) if split.skew else lengths[0]
        held = parts // lengths[0]
        block = split.blocks[0] // held if split.blocks else -(-size // parts)
        first = (place + split.rotate) % lengths[0] * held + (other * (parts // lengths[1]) if split.skew else 0)
        return np.concatenate([np.arange(block) + (first + part) % parts * block for part in range(held)])

    def shard(self, array: np.ndarray, core: tuple[int, int]) -> np.ndarray:
        """What a core has of a tensor, padded by zeros; of uneven blocks as much as the largest has."""
        block = self.block_shape(array.shape)
        out = np.zeros(block, array.dtype)
        inside, where = self._inside(array.shape, core)
        out[np.ix_(*inside)] = array[np.ix_(*where)]
        return out

    def assemble(self, shards: dict[tuple[int, int], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """The tensor of a shape whose parts the cores have.

        Raises:
            UserError: two copies of one part differ.
        """
        dtype = next(iter(shards.values())).dtype
        out, seen = np.zeros(shape, dtype), np.zeros(shape, bool)
        for core in self.holders():
            inside, where = self._inside(shape, core)
            part, old = shards[core][np.ix_(*inside)], out[np.ix_(*where)]
            same = (part == old) | ((part != part) & (old != old)) | ~seen[np.ix_(*where)]
            if not same.all():
                raise UserError(f"core (y={core[0]}, x={core[1]}) has another copy of a tensor than a core before it")
            out[np.ix_(*where)], seen[np.ix_(*where)] = part, True
        return out

    def block_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """What one core holds of a tensor of this shape, padding included."""
        return tuple(self._block(dim, size) for dim, size in enumerate(shape))

    def _block(self, dim: int, size: int) -> int:
        split = self.splits[dim]
        if split is None:
            return size
        if split.blocks:
            return max(split.blocks)
        length = self.length(split.axis)
        parts = lcm(self.height, self.width) if split.skew else length
        return -(-size // parts) * (parts // length)

    def _inside(self, shape: tuple[int, ...], core: tuple[int, int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Places in the core's block that are no padding, and where these lie in the tensor, per dimension."""
        given = [self.indices(dim, size, core) for dim, size in enumerate(shape)]
        real = [index < size for index, size in zip(given, shape, strict=True)]
        return [np.flatnonzero(one) for one in real], [index[one] for index, one in zip(given, real, strict=True)]


def _dealt(split: Split, size: int, place: int, length: int, count: int | None) -> np.ndarray:
    """Elements of a cyclic or balanced dimension."""
    most = -(-size // length)
    if split.deal == "cyclic":
        return np.arange(most) * length + place
    if count is None:
        raise UserError("which core has which element of a balanced dimension depends on their number: give `count`")
    each, more = divmod(count, length)
    start, end = (at * each + min(at, more) for at in (place, place + 1))
    return np.concatenate([np.arange(start, end), np.full(most - (end - start), size)])


def _position(physical: int, length: int, order: Order) -> int:
    """Where a core is counted: as it stands, or along the folded ring."""
    if order == "linear":
        return physical
    return physical // 2 if physical % 2 == 0 else length - (physical + 1) // 2


def _from_entries(entries: ir.DictAttr) -> Layout:
    grid, at = list(entries["grid"]), [None if position < 0 else position for position in entries["at"]]
    splits = [_split(one) if isinstance(one, ir.DictAttr) else None for one in entries["splits"]]
    return Layout(grid[0], grid[1], tuple(splits), at[0], at[1])


def _split(entries: ir.DictAttr) -> Split:
    words = {name: entries[name].value for name in ("axis", "order", "skew", "rotate", "deal")}
    return Split(blocks=tuple(entries["blocks"]), **words)
