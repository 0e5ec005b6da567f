# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nests of which the performance model does not see what makes their tiles fast: they keep the planner's own tile."""

from __future__ import annotations

from tilewright.ir.structure import Kind, LinalgOp, Weights
from tilewright.plan.cpu.products import contraction_roles
from tilewright.plan.cpu.skinny_gemm import few_columns
from tilewright.plan.model.tiles import Tiling


def unseen(op: LinalgOp, tiling: Tiling, weights: Weights) -> str:
    """Return what the model does not see of a nest with the root `op`; empty where it sees all."""
    if tiling.block or tiling.grid:
        return "candidates have no cache blocks"
    if op.kind is not Kind.CONTRACTION:
        return ""
    if contraction_roles(op).lane_operand is None and tiling.unroll:
        return "loads of a window that results share"
    if op.unpacks:
        return "work on packed weights that rows share"
    return "partial sums of a column" if few_columns(op, weights) is not None else ""
