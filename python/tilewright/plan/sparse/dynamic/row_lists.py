# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows that a list of the run names, side by side and back at their places (PIT's SRead and SWrite on rows).

What is computed between is an ordinary tensor with a number of rows that the run brings: it is planned like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.generics import create, create_fill, create_generic, create_number
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.lower_dynamic import empty
from tilewright.plan.sparse.forms.indices import number


@dataclass(frozen=True)
class RowList:
    """Rows that are taken, ascending.

    Attributes:
        list: their numbers, i32.
        count: how many there are, an index.
        total: how many rows there are before they are taken.
    """

    list: ir.Value
    count: ir.Value
    total: ir.Value | int

    def gathered(self, source: ir.Value) -> ir.Value:
        """The listed rows of a tensor, side by side."""
        return gathered(source, self.list)

    def places(self) -> ir.Value:
        """For each of all rows its number in the list, or -1: a gather by these writes each row once."""
        i32, one = ir.IntegerType.get_signless(32), ir.AffineMap.get_identity(1)

        def count(_: list[ir.Value]) -> ir.Value:
            at = create("linalg.index", [], ir.IndexType.get(), {"dim": _axis()})
            return create("arith.index_cast", [at], i32)

        numbers = create_generic([], empty([self.count], i32), one, [False], count)
        none = create_fill(create_number(-1, i32), empty([self.total], i32))
        return create("sparse_tile.scatter", [numbers, none, self.list], none.type, {"axis": _axis()})

    def put(self, rows: ir.Value, into: ir.Value | None) -> ir.Value:
        """Rows at their places: in a tensor that is there, or among zeros."""
        if into is None:
            return gathered(rows, self.places())
        return create("sparse_tile.scatter", [rows, into, self.list], into.type, {"axis": _axis()})


def row_list(live: ir.Value, count: ir.Value, total: ir.Value | int) -> RowList:
    """A list of rows as `sparse_tile.index` makes it.

    Args:
        live: [total] of i32, dead ones at its end.
        count: a tensor with one element.
        total: how many rows there are.
    """
    rank = ir.RankedTensorType(count.type).rank
    held = create("tensor.extract", [count, *[number(0)] * rank], ir.IntegerType.get_signless(32))
    size = create("arith.index_cast", [held], ir.IndexType.get())
    return RowList(_first(live, size), size, total)


def gathered(source: ir.Value, indices: ir.Value) -> ir.Value:
    """Slices of a tensor along its first dimension; zeros for indices that are none."""
    kind = ir.RankedTensorType(source.type)
    shape = [ir.RankedTensorType(indices.type).shape[0], *list(kind.shape)[1:]]
    result = ir.RankedTensorType.get(shape, kind.element_type)
    return create("sparse_tile.gather", [source, indices], result, {"axis": _axis()})


def _axis() -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)


def _first(value: ir.Value, count: ir.Value) -> ir.Value:
    """The first elements of a list."""
    kind = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    result = ir.RankedTensorType.get([dynamic], kind.element_type)
    return create(
        "tensor.extract_slice",
        [value, count],
        result,
        {
            "static_offsets": ir.DenseI64ArrayAttr.get([0]),
            "static_sizes": ir.DenseI64ArrayAttr.get([dynamic]),
            "static_strides": ir.DenseI64ArrayAttr.get([1]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 1, 0]),
        },
    )
