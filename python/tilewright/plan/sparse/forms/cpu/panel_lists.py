# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded operands as panels with lists of what they keep: operations on constants, which run at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.patterns import NM, Block
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.diagnostics import located
from tilewright.ir.generics import create, create_generic, create_split, create_transposed
from tilewright.ir.structure import Weights
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.plan.sparse.constants import array_of
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.indices import number


@dataclass(frozen=True)
class Lists:
    """Panels and what they keep, as the arguments of a `PanelKernel`.

    Attributes:
        values: [panels, count * run, width], or [shared, entries * run, width] where lists differ.
        at: i32, the first slice along the depth of each entry: [lists, count], or [entries].
        starts: where the entries of each list start, i32 [lists + 1]; None where each has `count`.
        run: neighbours along the depth for each entry.
        count: entries of each list; None: lists differ.
        entries: all entries where lists differ; below zero where a run brings the number.
        weights: entries of each list, as far as it is known.
    """

    values: ir.Value
    at: ir.Value
    starts: ir.Value | None
    run: int
    count: int | None
    entries: int
    weights: np.ndarray | None


def nm_lists(product: Product, pattern: NM, width: int) -> Lists:
    """The lists of an N:M operand whose unit is `run` slices deep, for panels of `width` columns.

    Args:
        product: with parts whose sizes are known.
        pattern: along the depth.
        width: a divisor of the unit's other side.
    """
    across = 0 if product.left else 1
    run = pattern.unit[1 - across] if pattern.unit else 1
    values, positions = plain_parts(product)
    shape = ir.RankedTensorType(values.type).shape
    panels = shape[across] // width
    apart = create_split(values, across, [panels, width])
    values = create_transposed(apart, [0, 2, 1] if product.left else [1, 0, 2])
    lists, count = (ir.RankedTensorType(positions.type).shape[d] for d in (across, 1 - across))
    at = _absolute(positions, product.left, pattern, run, [lists, count])
    return Lists(values, at, None, run, count, -1, None)


def _absolute(positions: ir.Value, left: bool, pattern: NM, run: int, shape: list[int]) -> ir.Value:
    """Positions in windows as slices along the depth, i32 [lists, count]."""
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    dims = [ir.AffineDimExpr.get(d) for d in range(2)]
    reads = ir.AffineMap.get(2, 0, dims if left else dims[::-1])

    n, m, deep = number(pattern.n), number(pattern.m), number(run)

    def place(elements: list[ir.Value]) -> ir.Value:
        dim = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)}
        window = create("arith.divui", [create("linalg.index", [], index, dim), n], index)
        inside = create("arith.index_cast", [elements[0]], index)
        unit = create("arith.addi", [create("arith.muli", [window, m], index), inside], index)
        return create("arith.index_cast", [create("arith.muli", [unit, deep], index)], i32)

    target = create("tensor.empty", [], ir.RankedTensorType.get(shape, i32))
    return create_generic([(positions, reads)], target, ir.AffineMap.get_identity(2), [False, False], place)


def block_lists(product: Product, pattern: Block, width: int) -> Lists:
    """The lists of an operand of blocks, for panels of `width` columns, a divisor of a block's.

    The right operand is transposed, which its rows of blocks, the lists, need; it is a constant.
    """
    data, indices, starts, weights = _block_rows(product, pattern)
    entries, columns, run = ir.RankedTensorType(data.type).shape
    apart = create_split(data, 1, [columns // width, width])
    values = _joined(_reordered(apart, [1, 0, 3, 2]))
    return Lists(values, _scaled(indices, run), starts, run, None, entries, weights)


def _block_rows(product: Product, pattern: Block) -> tuple[ir.Value, ir.Value, ir.Value, np.ndarray | None]:
    """Parts of the operand with the depth as columns: [entries, columns, run], slices, starts; entries of each list."""
    if product.left and not is_constant(product):
        data, indices, starts = plain_parts(product)
        return data, indices, starts, None
    encoded = plain_operand(product)
    kind = ir.RankedTensorType(encoded.type)
    whole = create("sparse_tile.unpack", [encoded], ir.RankedTensorType.get(kind.shape, kind.element_type))
    turned = pattern if product.left else Block((pattern.shape[1], pattern.shape[0]))
    across = whole if product.left else create_transposed(whole, [1, 0])
    shape = ir.RankedTensorType(across.type).shape
    packed = create("sparse_tile.pack", [across], Tesa.one(turned).type(shape, kind.element_type))
    matrix = array_of(across)
    kept = ir.RankedTensorType(product.parts[1].type).shape[0]
    counts = None
    if matrix is not None:
        _, columns, first = turned.pack(matrix)
        kept, counts = len(columns), np.diff(first)
    if kept < 0:
        raise located(UserError("how many blocks the weight keeps is not known, nor its elements"), product.op)
    data, indices, starts = _parts(packed, kept)
    return data, indices, starts, counts


def _parts(encoded: ir.Value, kept: int) -> tuple[ir.Value, ...]:
    """The parts of a matrix of which it is known how many blocks it keeps."""
    kinds = [ir.RankedTensorType(kind) for kind in part_types(encoded.type)]
    results = [ir.RankedTensorType.get([kept if s < 0 else s for s in k.shape], k.element_type) for k in kinds]
    op = ir.Operation.create("sparse_tile.parts", results=results, operands=[encoded])
    return tuple(op.results)


def plain_operand(product: Product) -> ir.Value:
    """The encoded operand with elements as they are: codes are made numbers."""
    value = product.encoded
    if product.tesa.regions[0].format is None:
        return value
    kind = ir.RankedTensorType(value.type)
    plain = Tesa.one(product.tesa.regions[0].pattern).type(kind.shape, kind.element_type)
    return create("sparse_tile.dequantize", [value], plain)


def plain_parts(product: Product) -> tuple[ir.Value, ...]:
    """The parts of the operand with elements as they are."""
    if product.tesa.regions[0].format is None:
        return product.parts
    value = plain_operand(product)
    op = ir.Operation.create("sparse_tile.parts", results=part_types(value.type), operands=[value])
    return tuple(op.results)


def is_constant(product: Product) -> bool:
    """Whether the encoded operand is made at compile time."""
    return Weights().only(product.encoded)


def _scaled(indices: ir.Value, run: int) -> ir.Value:
    """Numbers of blocks as the first slice of each."""
    kind = ir.RankedTensorType(indices.type)
    deep = create("arith.constant", [], kind.element_type, {"value": ir.IntegerAttr.get(kind.element_type, run)})
    same = ir.AffineMap.get_identity(1)
    target = create("tensor.empty", _open_sizes(indices), kind)
    return create_generic(
        [(indices, same)], target, same, [False], lambda e: create("arith.muli", [e[0], deep], kind.element_type)
    )


def _open_sizes(value: ir.Value) -> list[ir.Value]:
    """The sizes of a tensor that a run brings."""
    index, found = ir.IndexType.get(), []
    for d, size in enumerate(ir.RankedTensorType(value.type).shape):
        if size < 0:
            at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})
            found.append(create("tensor.dim", [value, at], index))
    return found


def _reordered(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """A tensor with its dimensions in another order; a run may bring the size of one of them."""
    kind, rank = ir.RankedTensorType(value.type), len(order)
    reads = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(list(order).index(d)) for d in range(rank)])
    result = ir.RankedTensorType.get([kind.shape[d] for d in order], kind.element_type)
    same = ir.AffineMap.get_identity(rank)
    place = create("tensor.empty", _open_sizes(value), result)
    return create_generic([(value, reads)], place, same, [False] * rank, lambda elements: elements[0])


def _joined(value: ir.Value) -> ir.Value:
    """[shared, entries, run, width] as [shared, entries * run, width]."""
    kind = ir.RankedTensorType(value.type)
    shared, entries, run, width = kind.shape
    total = entries * run if entries >= 0 else entries
    i64 = ir.IntegerType.get_signless(64)
    groups = [[0], [1, 2], [3]]
    attributes = {
        "reassociation": ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in g]) for g in groups])
    }
    result = ir.RankedTensorType.get([shared, total, width], kind.element_type)
    return create("tensor.collapse_shape", [value], result, attributes)
