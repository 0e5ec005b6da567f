# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the families for zeros that a run shows share: which products they take, the count, the dense product."""

from __future__ import annotations

from tilewright.dialects.sparse_tile.patterns import Dynamic
from tilewright.ir.generics import create, create_generic, maker
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.lower_dynamic import empty, size_of
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.indices import number
from tilewright.plan.sparse.forms.making import contraction, filled

_PARTS = 1000


def reason_against(product: Product) -> str | None:
    """A dynamic left operand, and known sizes but for the rows; else why not."""
    regions = product.tesa.regions
    if len(regions) != 1 or not isinstance(regions[0].pattern, Dynamic) or regions[0].format:
        return "it is for zeros that a run shows (dynamic)"
    if not product.left:
        return "the right operand is the one with zeros"
    if min(product.k, product.n) < 0:
        return "a run brings sizes other than the number of rows"
    return None


def unit_of(product: Product) -> tuple[int, ...]:
    """The blocks in which zeros come."""
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, Dynamic)
    return pattern.unit


def plain_of(product: Product) -> ir.Value:
    """The encoded operand as a tensor without encoding: dynamic sparsity is held as it is."""
    made = maker(product.op.operands[0])
    return made.operands[0] if made is not None and made.name == "sparse_tile.pack" else product.parts[0]


def whole_product(product: Product, a: ir.Value, place: ir.Value) -> ir.Value:
    """The whole product, in the same place."""
    if product.init is None:
        place = filled(place)
    return contraction(a, product.dense, place)


def target_of(product: Product, a: ir.Value) -> ir.Value:
    """Where results are written: a new place, or what is added to."""
    if product.init is not None:
        return product.init
    kind = ir.RankedTensorType(product.op.results[0].type)
    rows = size_of(a, 0)
    return empty([rows, kind.shape[1]], kind.element_type)


def is_below(counts: ir.Value, rows: ir.Value | int, each: float) -> ir.Value:
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
    return is_at_most(found, rows, each)


def is_at_most(found: ir.Value, rows: ir.Value | int, each: float) -> ir.Value:
    """Whether a number is at most a share: `each` per row. A share of open rows counts in thousandths."""
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    if isinstance(rows, int):
        share = number(int(rows * each))
    else:
        share = create("arith.muli", [rows, number(int(each * _PARTS))], index)
        share = create("arith.divui", [share, number(_PARTS)], index)
    at_most = ir.IntegerAttr.get(i64, 7)  # ule
    return create("arith.cmpi", [found, share], ir.IntegerType.get_signless(1), {"predicate": at_most})
