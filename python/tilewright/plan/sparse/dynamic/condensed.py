# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on CPUs whose left operand has zeros that a run shows: condensed to what is live, or dense.

The run decides. Rows that are zero as a whole are left out first: the others are gathered, and multiplied like a tensor
of as many rows. Of these, zeros in pieces of rows (unit [1, 16] and wider) are left out by the live rows of each block
of columns; all others by the live columns of each group of rows. See :mod:`condense`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.devices.device import Device
from tilewright.ir.generics import create, create_generic
from tilewright.ir.structure import Weights
from tilewright.ir.views import create_joined
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic import condense
from tilewright.plan.sparse.dynamic.condense import Geometry
from tilewright.plan.sparse.dynamic.cost import (
    LEAST_LISTED,
    dense_above,
    geometry_of,
    rows_above,
    slices_rows,
    whole_rows_above,
)
from tilewright.plan.sparse.dynamic.counted import (
    is_at_most,
    is_below,
    plain_of,
    reason_against,
    target_of,
    unit_of,
    whole_product,
)
from tilewright.plan.sparse.dynamic.lower_dynamic import ceil_div, empty, index_of, size_of
from tilewright.plan.sparse.dynamic.row_lists import row_list
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import choice, kernel, launch


class CondensedForm:
    """Counts what is live, then multiplies that alone where it is little, else everything."""

    name = "condensed"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """CPUs, a dynamic left operand made at run time, and known sizes but for the rows."""
        if device.kind != "cpu":
            return "it is for CPUs"
        return reason_against(product)

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Index and count; a branch with the condensed product, one with the dense one."""
        plain, unit = plain_of(product), unit_of(product)
        g = geometry_of(product, device)
        rows = slices_rows(unit, g)
        if rows and unit[1] >= g.k:
            return _listed_rows(product, plain, whole_rows_above(product, device), whole_product)
        panels = _panels(product, g)
        if rows:
            return _sliced_rows(product, plain, panels, g, unit[1], dense_above(product, device))

        def columns(part: Product, a: ir.Value, place: ir.Value) -> ir.Value:
            return _listed_columns(part, a, place, panels, geometry_of(part, device), dense_above(part, device))

        if 0 <= g.m < LEAST_LISTED:
            return columns(product, plain, target_of(product, plain))
        return _listed_rows(product, plain, rows_above(product, device), columns)


def _listed_rows(
    product: Product, a: ir.Value, above: float, multiply: Callable[[Product, ir.Value, ir.Value], ir.Value]
) -> ir.Value:
    """Multiply the rows that are not zero as a whole, or all of them where more than a share `above` are live."""
    rows = size_of(a, 0)
    live, count = index_of(a, [1, product.k], 0)
    listed = row_list(create_joined(live, [[0, 1]]), count, rows)
    few = is_at_most(listed.count, rows, above)

    def sparse() -> ir.Value:
        part = replace(product, m=-1, init=None if product.init is None else listed.gathered(product.init))
        packed = listed.gathered(a)
        return listed.put(multiply(part, packed, target_of(part, packed)), product.init)

    return choice(few, sparse, lambda: multiply(product, a, target_of(product, a)))


def _listed_columns(
    product: Product, a: ir.Value, place: ir.Value, panels: ir.Value, g: Geometry, above: float
) -> ir.Value:
    groups = ceil_div(size_of(a, 0), g.rows)
    wide, i32 = ir.Type.parse(g.wide), ir.IntegerType.get_signless(32)
    places = [empty([groups, g.k + 1, g.rows], wide), empty([groups, g.k + 1], i32), empty([groups], i32)]
    made = launch(kernel(condense.condense_columns_text(g), "condense_columns"), [groups], [a], places)
    few = is_below(made[2], groups, above * g.k)

    def sparse() -> ir.Value:
        text = condense.columns_product_text(g, product.init is not None)
        tasks = [g.panels, ceil_div(groups, condense.GROUPS)]
        return launch(kernel(text, "product_of_live_columns"), tasks, [a, *made, panels], [place])[0]

    return choice(few, sparse, lambda: whole_product(product, a, place))


def _sliced_rows(product: Product, a: ir.Value, panels: ir.Value, g: Geometry, depth: int, above: float) -> ir.Value:
    rows, blocks = size_of(a, 0), -(-g.k // depth)
    live, counts = index_of(a, [1, depth], 0)
    few = is_below(counts, rows, above * blocks)
    target = target_of(product, a)

    def sparse() -> ir.Value:
        groups = ceil_div(rows, g.rows)
        place = empty([blocks, groups, depth, g.rows], ir.Type.parse(g.wide))
        text = condense.condense_rows_text(g, depth)
        (packed,) = launch(kernel(text, "condense_rows"), [blocks, groups], [a, live, counts], [place])
        text = condense.rows_product_text(g, depth, product.init is not None)
        inputs = [live, counts, packed, panels]
        return launch(kernel(text, "product_of_live_rows"), [g.panels], inputs, [target])[0]

    return choice(few, sparse, lambda: whole_product(product, a, target))


def _panels(product: Product, g: Geometry) -> ir.Value:
    """`b` in panels: packed at compile time where it is a weight."""
    b, wide = product.dense, ir.Type.parse(g.wide)
    kind = ir.RankedTensorType(b.type)
    if not Weights().only(b):
        text = condense.panels_text(g, str(kind.element_type))
        return launch(kernel(text, "pack_panels"), [g.panels], [b], [empty([g.panels, g.k, g.width], wide)])[0]
    if str(kind.element_type) != g.wide:
        place, same = empty(list(kind.shape), wide), ir.AffineMap.get_identity(2)
        b = create_generic([(b, same)], place, same, [False] * 2, lambda e: create("arith.extf", [e[0]], wide))
    place = empty([g.panels, g.k, g.width], wide)
    zero = create("arith.constant", [], wide, {"value": ir.FloatAttr.get(wide, 0.0)})
    return ir.Operation.create(
        "linalg.pack",
        results=[place.type],
        operands=[b, place, zero],
        attributes={
            "outer_dims_perm": ir.DenseI64ArrayAttr.get([1, 0]),
            "inner_dims_pos": ir.DenseI64ArrayAttr.get([1]),
            "static_inner_tiles": ir.DenseI64ArrayAttr.get([g.width]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0]),
        },
    ).result
