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
from tilewright.plan.sparse.forms.indices import number
from tilewright.plan.sparse.probe import assembled, transposed

#: Bits of a word of a table.
_BITS = 32


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
    return assembled(packed, piece.units)


def _masked(matrix: ir.Value, piece: Piece, turned: bool) -> ir.Value:
    """The elements of a region, zeros elsewhere."""
    if piece.chosen is None:
        return matrix
    chosen = piece.chosen.T if turned else piece.chosen
    unit = piece.unit[::-1] if turned else piece.unit
    kind = ir.RankedTensorType(matrix.type)
    row, column = (ir.AffineDimExpr.get(d) for d in (0, 1))
    places = [_floordiv(row, unit[0]), _floordiv(column, _BITS * unit[1])]
    same = ir.AffineMap.get_identity(2)
    i32, i1 = ir.IntegerType.get_signless(_BITS), ir.IntegerType.get_signless(1)

    def choose(values: list[ir.Value]) -> ir.Value:
        ne = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
        kept = create("arith.cmpi", [_bit(values[1], unit[1]), create_zero(i32)], i1, {"predicate": ne})
        return create("arith.select", [kept, values[0], create_zero(kind.element_type)], kind.element_type)

    reads = [(matrix, same), (create_table(_bits(chosen)), ir.AffineMap.get(2, 0, places))]
    return create_generic(reads, create("tensor.empty", [], kind), same, [False, False], choose)


def _bits(chosen: np.ndarray) -> np.ndarray:
    """Booleans [rows, columns] as bits of words, the first column in the lowest one: int32 [rows, words]."""
    whole = np.pad(chosen, [(0, 0), (0, -chosen.shape[1] % _BITS)])
    return np.ascontiguousarray(np.packbits(whole, 1, "little")).view("<i4")


def _floordiv(expr: ir.AffineExpr, step: int) -> ir.AffineExpr:
    return expr if step == 1 else ir.AffineExpr.get_floor_div(expr, step)


def _bit(word: ir.Value, step: int) -> ir.Value:
    """The bit of a word for the column of the loop around, of which `step` share one."""
    i32, index, i64 = word.type, ir.IndexType.get(), ir.IntegerType.get_signless(64)

    column = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, 1)})
    unit = create("arith.divui", [column, number(step)], index)
    place = create("arith.remui", [unit, number(_BITS)], index)
    moved = create("arith.shrui", [word, create("arith.index_cast", [place], i32)], i32)
    return create("arith.andi", [moved, number(1, i32)], i32)
