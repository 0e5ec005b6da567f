# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a pass says of an operation: an error at its place, a remark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.mlir import ir


def located(error: Exception, op: ir.Operation | ir.OpView) -> Exception:
    """Return ``error`` with the location of ``op``: ``raise located(UnsupportedError("..."), op)``."""
    error.mlir_location = op.location  # type: ignore[attr-defined]
    return error


def remark(op: ir.Operation | ir.OpView, message: str) -> None:
    """Say something of ``op`` that a user should know (what is slow, and why): it ends up in the report."""
    from tilewright.mlir._mlir_libs import _tilewright

    _tilewright.remark(op.operation, message)
