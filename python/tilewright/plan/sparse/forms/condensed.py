# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on CPUs whose left operand has zeros that a run shows: condensed to what is live, or dense.

The run decides. Zeros in whole pieces of rows (unit [1, 16] and wider): of each block of columns the live rows are
multiplied. All others: of each group of rows the live columns. See :mod:`condense`.
"""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import Dynamic
from tilewright.ir.generics import create, create_fill, create_generic, create_zero, maker
from tilewright.ir.structure import Weights
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic_cost import dense_above, geometry_of, slices_rows
from tilewright.plan.sparse.forms import condense
from tilewright.plan.sparse.forms.condense import Geometry
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import choice, contraction, kernel, launch, number
from tilewright.plan.sparse.lower_dynamic import ceil_div, empty, index_of, size_of


class CondensedForm:
    """Counts what is live, then multiplies that alone where it is little, else everything."""

    name = "condensed"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """CPUs, a dynamic left operand made at run time, and known sizes but for the rows."""
        if device.kind != "cpu":
            return "it is for CPUs"
        regions = product.tesa.regions
        if len(regions) != 1 or not isinstance(regions[0].pattern, Dynamic) or regions[0].format:
            return "it is for zeros that a run shows (dynamic)"
        if not product.left:
            return "the right operand is the one with zeros"
        if min(product.k, product.n) < 0:
            return "a run brings sizes other than the number of rows"
        return None

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Index and count; a branch with the condensed product, one with the dense one."""
        plain = plain_of(product)
        unit = product.tesa.regions[0].pattern.unit
        g = geometry_of(product, device)
        panels = _panels(product, g)
        above = dense_above(product, device)
        if slices_rows(unit, g):
            return _sliced_rows(product, plain, panels, g, min(unit[1], g.k), above)
        return _listed_columns(product, plain, panels, g, above)


def plain_of(product: Product) -> ir.Value:
    """The encoded operand as a tensor without encoding: dynamic sparsity is held as it is."""
    made = maker(product.op.operands[0])
    return made.operands[0] if made is not None and made.name == "sparse_tile.pack" else product.parts[0]


def _listed_columns(product: Product, a: ir.Value, panels: ir.Value, g: Geometry, above: float) -> ir.Value:
    groups = ceil_div(size_of(a, 0), g.rows)
    wide, i32 = ir.Type.parse(g.wide), ir.IntegerType.get_signless(32)
    places = [empty([groups, g.k + 1, g.rows], wide), empty([groups, g.k + 1], i32), empty([groups], i32)]
    made = launch(kernel(condense.condense_columns_text(g), "condense_columns"), [groups], [a], places)
    few = _is_below(made[2], groups, above * g.k)
    place = _target(product, a)

    def sparse() -> ir.Value:
        text = condense.columns_product_text(g, product.init is not None)
        tasks = [g.panels, ceil_div(groups, condense.GROUPS)]
        return launch(kernel(text, "product_of_live_columns"), tasks, [a, *made, panels], [place])[0]

    return choice(few, sparse, lambda: _dense(product, a, place))


def _sliced_rows(product: Product, a: ir.Value, panels: ir.Value, g: Geometry, depth: int, above: float) -> ir.Value:
    rows, blocks = size_of(a, 0), -(-g.k // depth)
    live, counts = index_of(a, [1, depth], 0)
    few = _is_below(counts, rows, above * blocks)
    target = _target(product, a)

    def sparse() -> ir.Value:
        groups = ceil_div(rows, g.rows)
        place = empty([blocks, groups, depth, g.rows], ir.Type.parse(g.wide))
        text = condense.condense_rows_text(g, depth)
        (packed,) = launch(kernel(text, "condense_rows"), [blocks, groups], [a, live, counts], [place])
        text = condense.rows_product_text(g, depth, product.init is not None)
        inputs = [live, counts, packed, panels]
        return launch(kernel(text, "product_of_live_rows"), [g.panels], inputs, [target])[0]

    return choice(few, sparse, lambda: _dense(product, a, target))


def _dense(product: Product, a: ir.Value, place: ir.Value) -> ir.Value:
    """The whole product, in the same place."""
    if product.init is None:
        place = create_fill(create_zero(ir.RankedTensorType(place.type).element_type), place)
    return contraction(a, product.dense, place)


def _target(product: Product, a: ir.Value) -> ir.Value:
    """Where results are written: a new place, or what is added to."""
    c = product.op.operands[2]
    if product.init is not None:
        return c
    kind = ir.RankedTensorType(c.type)
    rows = size_of(a, 0)
    return empty([rows, kind.shape[1]], kind.element_type)


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


def _is_below(counts: ir.Value, rows: ir.Value | int, each: float) -> ir.Value:
    """Whether the sum of counts is at most a share: of all, `each` per row."""
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    rank = ir.RankedTensorType(counts.type).rank
    zero = create("arith.constant", [], i64, {"value": ir.IntegerAttr.get(i64, 0)})
    place = create("tensor.from_elements", [zero], ir.RankedTensorType.get([], i64))
    total = create_generic(
        [(counts, ir.AffineMap.get_identity(rank))],
        place,
        ir.AffineMap.get(rank, 0, []),
        [True] * rank,
        lambda e: create("arith.addi", [e[1], create("arith.extsi", [e[0]], i64)], i64),
    )
    found = create("arith.index_cast", [create("tensor.extract", [total], i64)], index)
    if isinstance(rows, int):
        share = number(int(rows * each))
    else:
        share = create("arith.muli", [rows, number(int(each))], index)
    at_most = ir.IntegerAttr.get(i64, 7)  # ule
    return create("arith.cmpi", [found, share], ir.IntegerType.get_signless(1), {"predicate": at_most})
