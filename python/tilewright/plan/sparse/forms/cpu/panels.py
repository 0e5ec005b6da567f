# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""N:M patterns whose units are several columns, on a CPU: panels with a list of as many slices each."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.cpu.panel_lists import Lists, nm_lists
from tilewright.plan.sparse.forms.cpu.panel_product import multiply, reason_against_panels
from tilewright.plan.sparse.forms.form import Product


class PanelsForm:
    """Vector-wise and block-wise N:M (nmSPARSE, MLSys 2023): every panel has a list of equal length."""

    name = "panels"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """It takes N:M along the depth, of units of at least two columns."""
        why = reason_against_panels(product, device)
        if why:
            return why
        pattern = product.tesa.regions[0].pattern
        if not isinstance(pattern, NM):
            return "the pattern is not N:M"
        if pattern.axis != int(product.left):
            return "the pattern is not along what is summed over"
        if _columns(product, pattern) < 2:
            return "each column has a list of its own"
        return None

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Panels of a unit's columns, or of a part of them."""
        pattern = product.tesa.regions[0].pattern
        assert isinstance(pattern, NM)
        window = pattern.m * pattern.unit[1 - _across(product)]
        depth = -(-product.k // window) * window

        def lists(product: Product, width: int) -> Lists:
            return nm_lists(product, pattern, width)

        return multiply(product, device, _columns(product, pattern), depth, lists)


def _across(product: Product) -> int:
    return 0 if product.left else 1


def _columns(product: Product, pattern: NM) -> int:
    """Columns that share an index."""
    return pattern.unit[_across(product)] if pattern.unit else 1
