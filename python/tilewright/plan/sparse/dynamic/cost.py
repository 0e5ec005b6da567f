# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What dynamic sparsity costs: sizes of the kernels on a CPU, and the share of live elements up to which they pay."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.devices.device import Device
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import remark
from tilewright.plan.sparse.dynamic.condense import Geometry
from tilewright.plan.sparse.forms.form import Product

#: Registers of a CPU with AVX-512; with fewer, fewer rows are multiplied at once.
_MANY_REGISTERS = 32
#: What a live element costs, against one of the dense product, by the rows up to which it does: with few, rows of a
#: weight come from memory, where those that lie apart come slower than those that follow each other.
_PER_LIVE = ((2, 2.3), (16, 1.6))
_PER_LIVE_OF_MANY = 1.3
#: The same with few registers: a panel's row is read for half as many rows.
_PER_LIVE_OF_FOUR = 1.75
#: What finding and packing costs, as a share of the dense product.
_FOUND = 0.05
#: Rows from which on live ones are listed; a product of fewer mostly reads its weight, however many there are.
LEAST_LISTED = 64
#: What a row costs among as many as the run brings, against one of a number that is known.
_PER_LISTED = 1.12
#: Neighbours in a row that are zero together from which on rows are condensed, not columns.
_LONG = 16


def geometry_of(product: Product, device: Device) -> Geometry:
    """Rows and columns that the registers of a CPU hold, for a product."""
    element = str(ir.RankedTensorType(product.op.operands[0].type).element_type)
    wide = "f64" if product.element == "f64" else "f32"
    rows, width = rows_and_width(product.n, device, 64 if wide == "f64" else 32)
    limit = int(0.9 * product.k)
    return Geometry(product.m, product.k, product.n, rows, width, element, wide, product.element, limit)


def rows_and_width(n: int, device: Device, bits: int = 32) -> tuple[int, int]:
    """Rows and columns of a product with `n` columns that registers hold, sums being of `bits` bits."""
    lanes = device.lanes(bits)
    rows = 8 if device.units.registers >= _MANY_REGISTERS else 4
    return rows, min((3 * lanes, 2 * lanes), key=lambda w: -(-n // w) * w * (1 if w == 3 * lanes else 1.04))


def experts_tile(n: int, device: Device) -> tuple[int, int]:
    """Rows and columns of an expert's product that registers hold: more rows, as those are read where they lie.

    Sixteen registers hold 6 x 2 vectors of sums, like 4 x 3, with a panel of the weight that is narrower by a third: of
    a depth of 512 it just fits the first-level cache.
    """
    if device.units.registers >= _MANY_REGISTERS:
        return rows_and_width(n, device)
    return 6, 2 * device.lanes(32)


def slices_rows(unit: Sequence[int], g: Geometry) -> bool:
    """Whether zeros come in pieces of rows, so that rows are condensed."""
    return unit[0] < g.rows and unit[1] >= min(_LONG, g.k)


def given_share(op: ir.Operation, name: str) -> float | None:
    """A share that the `tile.sparsity` of an operation names; None where it does not."""
    given = decisions.SPARSITY.get(op)
    return float(given[name]) if given and name in given else None


def dense_above(product: Product, device: Device) -> float:
    """The share of live elements above which the dense product is faster.

    `dense_above` in the `tile.sparsity` of the operation, where that is given.
    """
    given = given_share(product.op, "dense_above")
    if given is not None:
        return given
    many = _PER_LIVE_OF_MANY
    if device.kind == "cpu" and device.units.registers < _MANY_REGISTERS:
        many = _PER_LIVE_OF_FOUR
    cost = next((cost for rows, cost in _PER_LIVE if 0 <= product.m <= rows), many)
    return (1 - _FOUND) / cost


def rows_above(product: Product, device: Device) -> float:
    """The share of live rows above which none are left out: gathering those and putting results back takes time.

    `rows_above` in the `tile.sparsity` of the operation, where that is given; else rows are read and written once more.
    """
    given = given_share(product.op, "rows_above")
    if given is not None:
        return given
    size = 8 if product.element == "f64" else 4
    moved = 2 * size * (product.k + product.n) / (device.memory.bandwidth or 1e10)
    return 1 / (_PER_LISTED + moved * device.units.peak_of(product.element) / (2 * product.n * product.k))


def whole_rows_above(product: Product, device: Device) -> float:
    """The share of live rows above which none are left out, where zeros come in whole rows alone.

    Shares of rows and of elements are one then: of those that are given, in `tile.sparsity`, the smallest counts.
    """
    given = {name: given_share(product.op, name) for name in ("rows_above", "dense_above")}
    shares = {name: share for name, share in given.items() if share is not None}
    if "dense_above" in shares:
        least = min(shares, key=lambda name: shares[name])
        above = f"{shares[least]:g} of live rows ({least})"
        remark(product.op, f"all rows are multiplied above {above}: zeros are whole rows")
    if shares:
        return min(shares.values())
    return rows_above(product, device) if device.kind == "cpu" else dense_above(product, device)


def index_share(m: int, n: int, k: int, element: str, device: Device) -> float:
    """What finding the live elements of `a` [m, k] costs, as a share of the dense product's time.

    The index reads `a` once, from memory; the product computes, or reads its weights.
    """
    size = 8 if element == "f64" else 4
    bandwidth = device.memory.bandwidth or 1e10
    dense = max(2 * m * n * k / device.units.peak_of(element), n * k * size / bandwidth)
    return m * k * size / bandwidth / dense
