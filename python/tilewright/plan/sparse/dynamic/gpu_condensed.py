# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on GPUs whose left operand has zeros that a run shows: live rows or columns gathered, or dense.

Rows are gathered where all of a row is zero at once (unit [1, k]), else the live columns of 32 rows. See
:mod:`gathered`.
"""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.cost import dense_above, whole_rows_above
from tilewright.plan.sparse.dynamic.counted import (
    is_below,
    plain_of,
    reason_against,
    target_of,
    unit_of,
    whole_product,
)
from tilewright.plan.sparse.dynamic.gathered import Block, gathered_columns_text, gathered_rows_text
from tilewright.plan.sparse.dynamic.lower_dynamic import ceil_div, index_of, size_of
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import choice, filled, kernel, launch

_ROWS, _COLUMNS, _DEPTH = 32, 64, 32


class GpuCondensedForm:
    """Lists what is live, then gathers that alone where it is little, else multiplies everything."""

    name = "gpu_condensed"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """GPUs; a dynamic left operand; sums of floats of 32 bits at least."""
        if device.kind != "gpu":
            return "it is for GPUs"
        if product.element not in ("f32", "f64"):
            return f"sums of {product.element} are not for it"
        return reason_against(product)

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Index and count; a branch with the gathering kernel, one with the dense product."""
        a = plain_of(product)
        kinds = [str(ir.RankedTensorType(value.type).element_type) for value in (a, product.dense)]
        block = Block(product.m, product.k, product.n, _ROWS, _COLUMNS, _DEPTH, kinds[0], kinds[1], product.element)
        rows, unit = size_of(a, 0), unit_of(product)
        whole = unit[0] < _ROWS and unit[1] >= product.k
        if whole:
            live, counts = index_of(a, [1, product.k], 0)
            few = is_below(counts, rows, whole_rows_above(product, device))
        else:
            live, counts = index_of(a, [_ROWS, 1], 1)
            few = is_below(counts, ceil_div(rows, _ROWS), dense_above(product, device) * product.k)
        place, init = target_of(product, a), product.init is not None

        def sparse() -> ir.Value:
            text = gathered_rows_text(block, init) if whole else gathered_columns_text(block, init)
            name = kernel(text, "product_of_live_rows" if whole else "product_of_live_columns")
            start = filled(place) if whole and not init else place
            tasks = [ceil_div(rows, _ROWS), -(-product.n // _COLUMNS)]
            return launch(name, tasks, [a, live, counts, product.dense], [start])[0]

        return choice(few, sparse, lambda: whole_product(product, a, place))
