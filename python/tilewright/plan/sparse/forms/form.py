# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a family of kernels for `sparse_tile.matmul` is, and the product that it is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.mlir import ir


@dataclass(frozen=True)
class Product:
    """One `sparse_tile.matmul`: `result = a @ b + c` with one operand encoded.

    Attributes:
        op: the operation.
        tesa: the encoding of the sparse operand.
        left: whether `a` is the encoded one, else `b`.
        m, n, k: sizes; below zero where a run brings them.
        parts: the tensors that hold the encoded operand, region after region.
        dense: the other operand.
        init: `c`; None where it is zero.
    """

    op: ir.Operation
    tesa: Tesa
    left: bool
    m: int
    n: int
    k: int
    parts: tuple[ir.Value, ...]
    dense: ir.Value
    init: ir.Value | None

    @property
    def encoded(self) -> ir.Value:
        """The operand that has the encoding."""
        return self.op.operands[0 if self.left else 1]

    @property
    def element(self) -> str:
        """The type of the result's elements, as text."""
        return str(ir.RankedTensorType(self.op.results[0].type).element_type)


class Form(Protocol):
    """A family of kernels. One whose time the laws of `plan/cost/sparse.py` do not tell has a method `seconds`, too.

    Attributes:
        name: what `kernel = "..."` on the operation says.
    """

    name: str

    def reason_against(self, product: Product, device: Device) -> str | None:
        """Why the family has no kernel for a product on a device; None where it has one."""
        ...

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Make the kernel and what it needs at the current insertion point; returns the product's result."""
        ...
