# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies that ops on laid-out tensors bring: copied into programs, and as kernels of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.generics import body
from tilewright.mlir import ir
from tilewright.plan.mesh.writer import Kernel
from tilewright.sim.coremesh.program import Buffer, Cost


@dataclass(frozen=True, eq=False)
class Region(Kernel):
    """What the body of an op computes; it becomes that of a `coremesh.compute`, from which it is run and counted."""

    op: ir.Operation
    name = "block_gemm"

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """None yet: who reads the program counts the ops."""
        return Cost()


def copied(op: ir.Operation, tiles: Sequence[ir.Value]) -> list[ir.Value]:
    """Copies of what a body computes at the current insertion point.

    Args:
        tiles: what it reads, in the order of its arguments.

    Returns:
        what it yields.
    """
    known = dict(zip(body(op).arguments, tiles, strict=True))
    for inner in body(op).operations:
        if inner.operation.name == "coremesh.yield":
            return [known.get(value, value) for value in inner.operands]
        copy = inner.operation.clone()
        _rename(copy, known)
        known.update(zip(inner.operation.results, copy.results, strict=True))
    return []


def _rename(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Let an op, and what is in it, read copies."""

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for at, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[at] = known[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)
