# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as matrices and back: transposed where their loops stand in another order, then joined."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import create, create_generic
from tilewright.ir.views import create_joined, create_split
from tilewright.mlir import ir


def matrix_of(value: ir.Value, order: Sequence[int], rows: int, source: ir.Value | None = None) -> ir.Value:
    """A tensor as a matrix, at the current insertion point.

    Args:
        value: the tensor.
        order: its dimensions in the order in which the matrix has them.
        rows: how many of them are the matrix's rows.
        source: what has the tensor's sizes where a run brings them; the tensor itself where left out.
    """
    turned = permuted(value, order, source or value)
    groups = [[*range(rows)], [*range(rows, len(order))]]
    if all(len(group) == 1 for group in groups):
        return turned
    filled = [group for group in groups if group]
    joined = create_joined(turned, filled) if filled and any(len(g) > 1 for g in filled) else turned
    if len(filled) == 2:
        return joined
    kind = ir.RankedTensorType(joined.type)
    if not filled:
        return create_split(joined, [], [1, 1])
    shape = [1, kind.shape[0]] if not groups[0] else [kind.shape[0], 1]
    return create_split(joined, [[0, 1]], shape, _open(joined, shape, [0]))


def tensor_of(matrix: ir.Value, order: Sequence[int], rows: int, kind: ir.RankedTensorType, like: ir.Value) -> ir.Value:
    """The inverse of :func:`matrix_of`: a matrix as a tensor of a type, at the current insertion point.

    Args:
        matrix: the matrix.
        order: the tensor's dimensions in the order in which the matrix has them.
        rows: how many of them are the matrix's rows.
        kind: the tensor's type.
        like: a tensor of its sizes.
    """
    shape = [kind.shape[d] for d in order]
    split = matrix
    if (rows, len(order)) != (1, 2):
        groups = [[*range(rows)], [*range(rows, len(order))]]
        filled = [group for group in groups if group]
        if len(filled) < 2:
            split = create_joined(matrix, [[0, 1]] if filled else [])
        if any(len(group) > 1 for group in filled):
            split = create_split(split, filled, shape, _open(like, shape, order))
    back = [order.index(d) for d in range(len(order))]
    return permuted(split, back, like, already=True)


def permuted(value: ir.Value, order: Sequence[int], source: ir.Value, already: bool = False) -> ir.Value:
    """A tensor with its dimensions in another order, by a generic; itself where the order is its own.

    Args:
        value: the tensor.
        order: which of its dimensions is each of the new one's.
        source: a tensor that has its sizes.
        already: whether these are in the new order.
    """
    if list(order) == sorted(order):
        return value
    kind, rank = ir.RankedTensorType(value.type), len(order)
    reads = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(order.index(d)) for d in range(rank)])
    shape = [kind.shape[d] for d in order]
    sizes = _open(source, shape, range(rank) if already else order)
    place = create("tensor.empty", sizes, ir.RankedTensorType.get(shape, kind.element_type))
    same = ir.AffineMap.get_identity(rank)
    return create_generic([(value, reads)], place, same, [False] * rank, lambda elements: elements[0])


def _open(source: ir.Value, shape: Sequence[int], dims: Sequence[int]) -> list[ir.Value]:
    """The sizes of a shape that only a run knows, read from dimensions of a tensor, one for each of the shape's."""
    index, found = ir.IndexType.get(), []
    known = dict(zip(range(len(shape)), dims, strict=False))
    for at, size in enumerate(shape):
        if size < 0:
            number = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, known.get(at, 0))})
            found.append(create("tensor.dim", [source, number], index))
    return found
