# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a product of small numbers is multiplied wide: `tile.widened`, which `tile-verify-plan` tells."""

from __future__ import annotations

from tilewright.ir import decisions
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir

#: The attribute that holds the reason.
ATTRIBUTE = decisions.WIDENED


def mark(op: ir.Operation, what: str, why: str) -> None:
    """Keep what is multiplied wide, and why; `tile-verify-plan` tells it."""
    op.attributes[ATTRIBUTE] = ir.StringAttr.get(f"{what}: {why}", op.context)


def settle(op: LinalgOp, taken: bool) -> None:
    """Forget the reason where an instruction takes the product after all: orders and tasks were not known before."""
    if taken and ATTRIBUTE in op.op.attributes:
        del op.op.attributes[ATTRIBUTE]
