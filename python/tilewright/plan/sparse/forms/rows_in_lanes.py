# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with any kept elements on a CPU: rows of activations across lanes, positions as addresses.

For each row of the sparse matrix and each kept element of it, the value is broadcast and multiplied with a row of the
dense one, read from the nearest cache at the address that the position names; sums stay in registers.
"""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import kernel, launch
from tilewright.plan.sparse.forms.packing import Lists, encoded_operand, is_constant, nm_lists
from tilewright.plan.sparse.forms.rows_in_lanes_kernel import RowsKernel, rows_text

_NEAR = 0.5
"""Of the nearest cache, the part that a block of the dense operand takes; lists and sums pass through the rest."""

_SUMS = (8, 6, 4)
"""Vectors of sums in registers, from which the widths of a task are chosen: 8 hide the latency of multiply-adds."""

_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


class RowsInLanes:
    """Kept elements one by one, each with as many columns of the dense operand as registers hold."""

    name = "rows_in_lanes"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What is not taken: GPUs, blocks, several regions, N:M along the other axis, unknown positions."""
        if device.kind != "cpu":
            return f"it is for CPUs, not for {device.name}"
        if len(product.tesa.regions) != 1:
            return "the encoding has several regions"
        return _reason_pattern(product) or _reason_sizes(product)

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Lists of kept elements and a launch."""
        plan = plan_rows(product, device)
        element = ir.Type.parse(plan.element)
        lists = nm_lists(product, element, plan.block, plan.unroll, plan.position)
        return _launch(product, plan, lists)


def _reason_pattern(product: Product) -> str | None:
    (region,) = product.tesa.regions
    if not isinstance(region.pattern, NM):
        return f"the pattern is {region.pattern.kind}"
    if any(size != 1 for size in region.pattern.unit):
        return "units are blocks"
    if region.pattern.axis != (1 if product.left else 0):
        return "the windows do not lie along the sum"
    constant = is_constant(encoded_operand(product))
    if region.format is not None and not constant:
        return "codes that a run brings are not unpacked"
    return None


def _reason_sizes(product: Product) -> str | None:
    rows = product.m if product.left else product.n
    if rows < 0 or product.k < 0:
        return "sizes of the sparse operand are not known"
    if 0 in (rows, product.k, product.n if product.left else product.m):
        return "there is nothing to multiply"
    elements = {str(ir.RankedTensorType(v.type).element_type) for v in (product.dense, product.op.results[0])}
    strange = sorted(elements - _SIZES.keys())
    return f"elements are {strange[0]}" if strange else None


def plan_rows(product: Product, device: Device) -> RowsKernel:
    """Widths, blocks and tasks for a product that :meth:`RowsInLanes.reason_against` has nothing against."""
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, NM)
    given = str(ir.RankedTensorType(product.dense.type).element_type)
    element = "f64" if "f64" in (given, product.element) else "f32"
    lanes = device.units.vector_bits // (8 * _SIZES[element])
    rows, columns = (product.m, product.n) if product.left else (product.n, product.m)
    near = int(device.level("l1").bytes * _NEAR) // _SIZES[element]
    density = pattern.n / pattern.m
    choices = [_blocked(near // (sums * lanes), pattern, product.k) for sums in _SUMS]
    sums, block = min(
        zip(_SUMS, choices, strict=True), key=lambda one: predicted_cycles(one[0], density * min(one[1], product.k))
    )
    if columns >= 0:
        tasks = -(-columns // (sums * lanes))
        sums = -(-columns // (tasks * lanes))
    else:
        tasks = 1
    width = sums * lanes
    count = block // pattern.m * pattern.n
    unroll = next(u for u in (4, 2, 1) if count % u == 0)
    chunk = _chunk(rows, width * _SIZES[element], tasks, lanes, device)
    kept = -(-product.k // block) * rows * count
    panel = max(device.level("l2").bytes // 3 // (block * width * _SIZES[element]), 1)
    return RowsKernel(
        rows, product.k, columns, width, lanes, block, panel, chunk, count, unroll, 16, kept, element, given, product.element,
        across=not product.left, adds=product.init is not None,
    )  # fmt: skip


def predicted_cycles(sums: int, kept: float) -> float:
    """Cycles per kept element and vector of columns.

    Args:
        sums: vectors of columns of a task.
        kept: elements of a list, on average.
    """
    return 0.57 * (1 + 1.75 / sums) + 1.65 / kept


def _blocked(most: int, pattern: NM, depth: int) -> int:
    """Terms of a block: whole windows, of equal sizes, whose lists have a multiple of four elements where they can."""
    step = pattern.m * next(s for s in (1, 2, 4) if s * pattern.n % 4 == 0)
    if step > most or step > depth:
        step = pattern.m
    most = max(most // step * step, step)
    blocks = -(-depth // most)
    return -(-(-(-depth // blocks)) // step) * step


def _chunk(rows: int, bytes_of_row: int, tasks: int, lanes: int, device: Device) -> int:
    """Rows of a task: sums fit in half of the second cache, and every core has two tasks where there are that many."""
    fitting = max(device.level("l2").bytes // 2 // bytes_of_row, lanes)
    parts = max(-(-2 * device.units.count // tasks), -(-rows // fitting))
    return min(rows, max(-(-(-(-rows // parts)) // lanes) * lanes, 4 * lanes))


def _launch(product: Product, plan: RowsKernel, lists: Lists) -> ir.Value:
    name = kernel(rows_text(plan), "sparse_rows")
    dim = 0 if plan.across else 1
    sizes, tasks = [], _tasks(product.dense, dim, plan)
    kind = ir.RankedTensorType(product.op.results[0].type)
    if plan.columns < 0:
        sizes = [create("tensor.dim", [product.dense, _index(dim)], ir.IndexType.get())]
    target = create("tensor.empty", sizes, kind)
    more = [] if lists.starts is None else [lists.starts]
    added = [] if product.init is None else [product.init]
    grid = [tasks, -(-plan.rows // plan.chunk)]
    return launch(name, grid, [lists.values, lists.positions, *more, product.dense, *added], [target])[0]


def _tasks(dense: ir.Value, dim: int, plan: RowsKernel) -> ir.Value | int:
    if plan.columns >= 0:
        return -(-plan.columns // plan.width)
    size = create("tensor.dim", [dense, _index(dim)], ir.IndexType.get())
    return create("arith.ceildivui", [size, _index(plan.width)], ir.IndexType.get())


def _index(value: int) -> ir.Value:
    index = ir.IndexType.get()
    return create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, value)})
