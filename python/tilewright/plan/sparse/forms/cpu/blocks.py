# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that are kept or not, on a CPU: panels of a block's columns with lists of blocks."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import Block
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.cpu.panel_lists import Lists, block_lists, is_constant
from tilewright.plan.sparse.forms.cpu.panel_product import multiply, reason_against_panels
from tilewright.plan.sparse.forms.form import Product


class BlocksForm:
    """Block sparsity: for each column of blocks (row, where the operand is the left one) a list of those kept."""

    name = "blocks"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """It takes blocks; those of a right operand are constants, as they are sorted by columns."""
        why = reason_against_panels(product, device)
        if why:
            return why
        if not isinstance(product.tesa.regions[0].pattern, Block):
            return "the pattern is not of blocks"
        if not product.left and not is_constant(product):
            return "blocks of a right operand are sorted by columns at compile time, and these are not known then"
        return None

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Panels of a block's columns, or of a part of them."""
        pattern = product.tesa.regions[0].pattern
        assert isinstance(pattern, Block)
        columns, run = pattern.shape if product.left else pattern.shape[::-1]

        def lists(product: Product, width: int) -> Lists:
            return block_lists(product, pattern, width)

        return multiply(product, device, columns, -(-product.k // run) * run, lists)
