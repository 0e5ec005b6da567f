# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The product of any encoded operand as a dense one: right for all patterns, and no faster than without them."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import contraction


class DenseForm:
    """Unpacks the encoded operand and multiplies all of it."""

    name = "dense"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """None: it takes everything."""
        del product, device
        return None

    def lower(self, product: Product, device: Device) -> ir.Value:
        """`sparse_tile.unpack`, which is lowered by itself, and a contraction."""
        del device
        encoded = product.op.operands[0 if product.left else 1]
        kind = ir.RankedTensorType(encoded.type)
        plain = create("sparse_tile.unpack", [encoded], ir.RankedTensorType.get(kind.shape, kind.element_type))
        a, b = (plain, product.dense) if product.left else (product.dense, plain)
        return contraction(a, b, product.op.operands[2])
