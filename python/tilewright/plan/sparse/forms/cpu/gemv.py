# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of N:M weights with few rows of activations on a CPU: weights pass once, from memory.

Rows of the sparse matrix lie across lanes; the few columns of the dense one lie in the nearest cache, from which the
positions gather. Values and positions, a byte each up to windows of 128, are all that comes from memory. Of windows of
four, positions are two bits, and choose between four registers: a gather of 16 elements takes longer than memory does.
"""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.plan.cost.sparse import streams_of
from tilewright.plan.sparse.forms.cpu.gemv_kernel import GemvKernel, gemv_text
from tilewright.plan.sparse.forms.cpu.packing import nm_across_lanes
from tilewright.plan.sparse.forms.cpu.rows_in_lanes import SIZES, reason_for_rows, type_of_sums
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import kernel, launch

FEW = 4
"""Columns of the dense operand, at most: with more, `rows_in_lanes` fills its lanes with them."""

_UNROLLED = 32
"""Kept elements of a window, at most: they are one iteration of the kernel's loop."""

TABLE = 4
"""Elements of a window that an instruction picks from in each quarter of a register, f32 on x86 with AVX."""

_PADDING = 0.05
"""Registers of zeros that may fill the last iteration, of those that there are: they are stored and read, too."""

_TASKS = 8
"""Tasks for each core: shares of memory are uneven."""


class Gemv:
    """Rows of weights across lanes, few columns of activations in the nearest cache."""

    name = "gemv"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What `rows_in_lanes` does not take, unstructured operands, many or unknown columns, an x beyond the cache."""
        why = reason_for_rows(product, device)
        if why is not None:
            return why
        pattern = product.tesa.regions[0].pattern
        if not isinstance(pattern, NM):
            return "rows have lists of different lengths"
        if pattern.n > _UNROLLED:
            return f"windows keep more than {_UNROLLED} elements"
        columns = product.n if product.left else product.m
        if not 0 < columns <= FEW:
            return f"it is for 1 to {FEW} columns of the dense operand"
        fits = device.level("l2").bytes // 2 // (columns * SIZES[type_of_sums(product)])
        return None if product.k <= fits else "the dense operand does not fit into the second cache"

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Values and positions side by side for the lanes, and a launch."""
        plan = plan_gemv(product, device)
        words = plan.kept if plan.chosen else 0
        values, positions = nm_across_lanes(product, plan.groups, plan.lanes, plan.reach, words)
        name = kernel(gemv_text(plan), "sparse_gemv")
        target = create("tensor.empty", [], ir.RankedTensorType(product.op.results[0].type))
        added = [] if product.init is None else [product.init]
        return launch(name, [-(-plan.groups // plan.chunk)], [values, positions, product.dense, *added], [target])[0]


def plan_gemv(product: Product, device: Device) -> GemvKernel:
    """Lanes and tasks for a product that :meth:`Gemv.reason_against` has nothing against."""
    pattern, element = product.tesa.regions[0].pattern, type_of_sums(product)
    assert isinstance(pattern, NM)
    rows, columns = (product.m, product.n) if product.left else (product.n, product.m)
    lanes = device.units.vector_bits // (8 * SIZES[element])
    groups = -(-rows // lanes)
    tabled = pattern.m == TABLE and element == "f32" and device.units.vector_bits >= 256
    most = streams_of(device, columns, tabled)
    streams = next(s for s in range(most, 0, -1) if s == 1 or -groups % s <= _PADDING * groups)
    tasks = _TASKS * device.units.count
    held = str(ir.RankedTensorType(product.op.operands[0 if product.left else 1].type).element_type)
    return GemvKernel(
        rows=rows,
        depth=product.k,
        columns=columns,
        lanes=lanes,
        chunk=-(-rows // (lanes * streams * tasks)) * streams,
        streams=streams,
        n=pattern.n,
        m=pattern.m,
        held=held,
        size=SIZES[held],
        element=element,
        given=str(ir.RankedTensorType(product.dense.type).element_type),
        result=product.element,
        across=not product.left,
        adds=product.init is not None,
        tabled=tabled,
        ahead=int(device.rate("sparse.ahead")),
    )
