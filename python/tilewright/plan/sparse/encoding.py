# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of a constant matrix as encoded tensors of known sizes, in IR that runs at compile time."""

from __future__ import annotations

import numpy as np

from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, create_generic, create_zero
from tilewright.mlir import ir
from tilewright.passes.weights import create_table
from tilewright.plan.sparse.cover import Piece
from tilewright.plan.sparse.probe import held_types, transposed


def encode(matrix: ir.Value, piece: Piece, turned: bool) -> ir.Value:
    """A region of a constant as an encoded tensor that is assembled of its parts, at the current insertion point.

    Args:
        matrix: the constant, [k, n]; [n, k] where `turned`.
        piece: the region, of [k, n].
        turned: whether the encoding is of the transposed matrix.
    """
    pattern = transposed(piece.pattern) if turned else piece.pattern
    kind = ir.RankedTensorType(matrix.type)
    encoded = Tesa.one(pattern).type(kind.shape, kind.element_type)
    packed = create("sparse_tile.pack", [_masked(matrix, piece, turned)], encoded)
    parts = ir.Operation.create("sparse_tile.parts", results=held_types(encoded, piece.units), operands=[packed])
    return create("sparse_tile.assemble", list(parts.results), encoded)


def _masked(matrix: ir.Value, piece: Piece, turned: bool) -> ir.Value:
    """The elements of a region, zeros elsewhere."""
    if piece.chosen is None:
        return matrix
    chosen = piece.chosen.T if turned else piece.chosen
    unit = piece.unit[::-1] if turned else piece.unit
    bits = unit == (1, 1)
    table = create_table((np.packbits(chosen, 1, "little") if bits else chosen).view(np.int8))
    kind = ir.RankedTensorType(matrix.type)
    row, column = (ir.AffineDimExpr.get(d) for d in (0, 1))
    step = (1, 8) if bits else unit
    places = [_floordiv(row, step[0]), _floordiv(column, step[1])]
    same = ir.AffineMap.get_identity(2)

    def choose(values: list[ir.Value]) -> ir.Value:
        i8, i1 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(1)
        mark = _bit(values[1]) if bits else values[1]
        ne = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
        kept = create("arith.cmpi", [mark, create_zero(i8)], i1, {"predicate": ne})
        return create("arith.select", [kept, values[0], create_zero(kind.element_type)], kind.element_type)

    reads = [(matrix, same), (table, ir.AffineMap.get(2, 0, places))]
    return create_generic(reads, create("tensor.empty", [], kind), same, [False, False], choose)


def _floordiv(expr: ir.AffineExpr, step: int) -> ir.AffineExpr:
    return expr if step == 1 else ir.AffineExpr.get_floor_div(expr, step)


def _bit(byte: ir.Value) -> ir.Value:
    """The bit of a byte for the column of the loop around."""
    i8, index, i64 = ir.IntegerType.get_signless(8), ir.IndexType.get(), ir.IntegerType.get_signless(64)

    def number(value: int, kind: ir.Type) -> ir.Value:
        return create("arith.constant", [], kind, {"value": ir.IntegerAttr.get(kind, value)})

    column = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, 1)})
    place = create("arith.remui", [column, number(8, index)], index)
    moved = create("arith.shrui", [byte, create("arith.index_cast", [place], i8)], i8)
    return create("arith.andi", [moved, number(1, i8)], i8)
