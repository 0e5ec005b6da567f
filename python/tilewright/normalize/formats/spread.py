# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scales and zero points beside the elements that share them: how a generic over a tensor reads them.

A dimension in whole blocks becomes two, over blocks and within one: a scale is then as small in a program as in the
model, and who multiplies a block knows that it has one. Where the last block is shorter, scales are repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dialects.sparse_tile.formats import Format
from tilewright.ir.generics import create, create_generic, maker
from tilewright.ir.views import RESHAPES, consecutive, create_joined, create_split, groups_of
from tilewright.mlir import ir


@dataclass(frozen=True)
class Blocks:
    """The dimensions of a tensor, those in whole blocks as two.

    Attributes:
        shape: of the tensor; below zero where a run brings a size.
        groups: elements that share a scale along each dimension; None: all.
    """

    shape: tuple[int, ...]
    groups: tuple[int | None, ...]

    @classmethod
    def of(cls, shape: Sequence[int], format: Format) -> Blocks:
        """The blocks of a format."""
        groups = format.group or (None,) * len(shape)
        whole = (None if g is not None and 0 <= n <= g else g for n, g in zip(shape, groups, strict=True))
        return cls(tuple(shape), tuple(whole))

    def is_split(self, dim: int) -> bool:
        """Whether a dimension is several whole blocks."""
        group = self.groups[dim]
        return group is not None and 1 < group < self.shape[dim] and not self.shape[dim] % group

    @property
    def dims(self) -> list[list[int]]:
        """For each dimension, those of the split tensor."""
        return consecutive(1 + self.is_split(d) for d in range(len(self.shape)))

    @property
    def split_shape(self) -> list[int]:
        """Sizes of the split tensor."""
        found: list[int] = []
        for d, size in enumerate(self.shape):
            found += [size // (self.groups[d] or 1), self.groups[d] or 1] if self.is_split(d) else [size]
        return found

    def split(self, value: ir.Value) -> ir.Value:
        """The tensor with blocks along dimensions of their own, at the current insertion point."""
        if not any(map(self.is_split, range(len(self.shape)))):
            return value
        return create_split(value, self.dims, self.split_shape, _open_sizes(value))

    def walk(self, value: ir.Value) -> tuple[ir.Value, ir.AffineMap]:
        """The tensor, and where a generic over the split tensor reads it, at the current insertion point."""
        rank = len(self.split_shape)
        if any(map(self.is_split, range(len(self.shape)))):
            return self.split(value), ir.AffineMap.get_identity(rank)
        source, kept = without_ones(value)
        exprs = [ir.AffineConstantExpr.get(0) if d is None else ir.AffineDimExpr.get(d) for d in kept]
        return source, ir.AffineMap.get(rank, 0, exprs)  # type: ignore[arg-type]

    def joined(self, value: ir.Value) -> ir.Value:
        """A split tensor as it was, at the current insertion point."""
        if not any(map(self.is_split, range(len(self.shape)))):
            return value
        return create_joined(value, self.dims)

    def read(self, value: ir.Value, whole: ir.Value) -> tuple[ir.Value, ir.AffineMap]:
        """What has a number for each group, and where a generic over the split tensor reads it.

        Args:
            value: of the sizes of `Format.scale_shape`.
            whole: the tensor, not split.
        """
        for d in range(len(self.shape)):
            group = self.groups[d]
            if group is not None and group > 1 and not self.is_split(d):
                value = _repeated(value, d, group, whole)
        source, kept = without_ones(value)
        rank = len(self.split_shape)
        loops = [ir.AffineDimExpr.get(self.dims[d][0]) for d in range(len(self.shape))]
        zero = ir.AffineConstantExpr.get(0)
        exprs = [zero if d is None or self.groups[d] is None else loops[d] for d in kept]
        return source, ir.AffineMap.get(rank, 0, exprs)  # type: ignore[arg-type]


def sizes_for(value: ir.Value) -> list[ir.Value]:
    """The sizes of a tensor that a run brings, at the current insertion point."""
    return _open_sizes(value)


def _open_sizes(value: ir.Value) -> list[ir.Value]:
    index = ir.IndexType.get()

    def size(d: int) -> ir.Value:
        at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})
        return create("tensor.dim", [value, at], index)

    return [size(d) for d, n in enumerate(ir.RankedTensorType(value.type).shape) if n < 0]


def _repeated(value: ir.Value, dim: int, times: int, whole: ir.Value) -> ir.Value:
    """Each index along a dimension so many times, as many in all as `whole` has there."""
    kind, size = ir.RankedTensorType(value.type), ir.RankedTensorType(whole.type).shape[dim]
    shape = [size if d == dim else n for d, n in enumerate(kind.shape)]
    exprs: list[ir.AffineExpr] = [ir.AffineDimExpr.get(d) for d in range(kind.rank)]
    exprs[dim] = ir.AffineExpr.get_floor_div(exprs[dim], times)
    index = ir.IndexType.get()
    sizes = []
    for d, n in enumerate(shape):
        if n < 0:
            at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})
            sizes.append(create("tensor.dim", [whole if d == dim else value, at], index))
    place = create("tensor.empty", sizes, ir.RankedTensorType.get(shape, kind.element_type))
    same = ir.AffineMap.get_identity(kind.rank)
    reads = [(value, ir.AffineMap.get(kind.rank, 0, exprs))]
    return create_generic(reads, place, same, [False] * kind.rank, lambda e: e[0])


def without_ones(value: ir.Value) -> tuple[ir.Value, list[int | None]]:
    """A tensor before dimensions of size 1 were put in or dropped.

    Returns:
        The tensor, and which dimension of the later one each of its own is; None where its only index is 0.
    """
    kept: list[int | None] = list(range(ir.RankedTensorType(value.type).rank))
    while (op := maker(value)) is not None and op.name in RESHAPES:
        source, groups = op.operands[0], groups_of(op.attributes["reassociation"])
        opens = op.name == "tensor.expand_shape"
        shape = ir.RankedTensorType((value if opens else source).type).shape
        large = [[d for d in group if shape[d] != 1] for group in groups]
        if any(len(group) > 1 for group in large):
            break
        if opens:
            kept = [kept[group[0]] if group else None for group in large]
        else:
            of = {group[0]: at for at, group in enumerate(large) if group}
            kept = [kept[of[d]] if d in of else None for d in range(len(shape))]
        value = source
    return value, kept
