# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies that ops on laid-out tensors bring: copied into programs, and as kernels of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.generics import body
from tilewright.mlir import ir
from tilewright.plan.mesh.collectives.layouts import Laid, laid
from tilewright.plan.mesh.shifting.block_product import BlockProduct, Part, block_product
from tilewright.plan.mesh.writer import Kernel
from tilewright.reference.program import Reader
from tilewright.sim.coremesh.program import Buffer, Cost, Program
from tilewright.sim.coremesh_ir.cost import cost_of


@dataclass(frozen=True, eq=False)
class Region(Kernel):
    """What the body of an op computes; it becomes that of a `coremesh.compute`, from which it is run."""

    op: ir.Operation
    name = "block_gemm"

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """Counted op by op, as what it becomes is."""
        own = self.op.clone(ip=False)
        return cost_of(Reader().node(own))


def block_gemm_program(op: ir.Operation) -> Program:
    """The program of a `coremesh.block_gemm`; inputs in the order of its operands."""
    *operands, result = (laid(value) for value in (*op.operands, *op.results))
    left, *rights = (_part(value) for value in operands)
    return block_product(BlockProduct(result.height, left, tuple(rights), _part(result), Region(op)))


def _part(value: Laid) -> Part:
    axes = tuple(None if split is None else split.axis for split in value.splits)
    skewed = any(split is not None and split.skew for split in value.splits)
    return Part(value.shape, value.tile, value.dtype, axes, skewed)


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
        copy = renamed(inner.operation.clone(), known)
        known.update(zip(inner.operation.results, copy.results, strict=True))
    return []


def renamed(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """The op, which, with what is in it, reads copies of what is known."""

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for at, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[at] = known[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return op
