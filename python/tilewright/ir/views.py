# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes that join neighbouring dimensions, or make several of one: `tensor.collapse_shape`, `tensor.expand_shape`.

In either, a group of dimensions of the larger shape stands for each dimension of the smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from tilewright.ir.generics import create
from tilewright.mlir import ir

RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
"""The names of reshapes of tensors."""

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def reassociation(groups: Iterable[Sequence[int]]) -> ir.ArrayAttr:
    """The attribute of a reshape with these groups of dimensions."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])


def groups_of(attribute: ir.Attribute) -> list[list[int]]:
    """The groups of dimensions in a reshape's attribute `reassociation`."""
    return [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(group)] for group in ir.ArrayAttr(attribute)]


def consecutive(widths: Iterable[int]) -> list[list[int]]:
    """Groups of so many dimensions each, one behind the other."""
    groups, first = [], 0
    for width in widths:
        groups.append([*range(first, first + width)])
        first += width
    return groups


def joined_shape(shape: Sequence[int], groups: Iterable[Sequence[int]]) -> list[int]:
    """The sizes that groups of dimensions have together; unknown where one of them is."""
    parts = ([shape[d] for d in group] for group in groups)
    return [_DYNAMIC if _DYNAMIC in part else prod(part) for part in parts]


def expansion(groups: Iterable[Sequence[int]], shape: Sequence[int]) -> dict[str, ir.Attribute]:
    """The attributes of an expand_shape to a shape."""
    return {"reassociation": reassociation(groups), "static_output_shape": ir.DenseI64ArrayAttr.get(list(shape))}


def create_joined(value: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor with one dimension for each group of its own, at the current insertion point."""
    kind = ir.RankedTensorType(value.type)
    result = ir.RankedTensorType.get(joined_shape(kind.shape, groups), kind.element_type)
    return create("tensor.collapse_shape", [value], result, {"reassociation": reassociation(groups)})


def create_split(
    value: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[int], sizes: Sequence[ir.Value] = ()
) -> ir.Value:
    """A tensor with a group of dimensions for each of its own, at the current insertion point.

    Args:
        value: the tensor.
        groups: for each of its dimensions.
        shape: of the result.
        sizes: those of it that only a run knows.
    """
    result = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    return create("tensor.expand_shape", [value, *sizes], result, expansion(groups, shape))


def create_with_ones(value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """A tensor with its dimensions of size 1 at other places, at the current insertion point.

    Args:
        value: the tensor.
        sizes: of the result; those other than 1 are the tensor's, in its order.
    """
    shape = list(ir.RankedTensorType(value.type).shape)
    if shape == list(sizes):
        return value
    large = [n for n in shape if n != 1]
    if len(large) < len(shape) and (len(shape) > 1 or not sizes):
        value, shape = create_joined(value, _around_large(shape)), large
    if shape == list(sizes):
        return value
    return create_split(value, _around_large(sizes) if large else [[*range(len(sizes))]] * len(shape), sizes)


def _around_large(sizes: Sequence[int]) -> list[list[int]]:
    """Dimensions around each one that is larger than 1, in order; none where there is no such."""
    groups: list[list[int]] = []
    for place, size in enumerate(sizes):
        if not groups or (size != 1 and any(sizes[at] != 1 for at in groups[-1])):
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups if any(n != 1 for n in sizes) else []
