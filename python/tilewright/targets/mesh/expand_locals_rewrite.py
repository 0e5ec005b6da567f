# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-expand-locals` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.dialects.coremesh import ProgramBuilder, block_type
from tilewright.dialects.coremesh import program as coremesh_program
from tilewright.ir.generics import uses, walk
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.plan.mesh.collectives.layouts import Laid, laid
from tilewright.plan.mesh.collectives.regions import copied
from tilewright.sim.coremesh_ir.expressions import to_affine


def _expand(op: ir.Operation) -> None:
    reads, writes = [laid(value) for value in op.operands], [laid(value) for value in op.results]
    grid = (reads or writes)[0]
    kinds = [value.type for value in op.results]
    with ir.InsertionPoint(op), op.location:
        with coremesh_program("local", (grid.height, grid.width), list(op.operands), kinds) as builder:
            _write(op, builder, reads, writes)
        results = list(builder.op.results)
    for old, new in zip(op.results, results, strict=True):
        for user, number in uses(old):
            user.operands[number] = new
    op.erase()


def _write(op: ir.Operation, builder: ProgramBuilder, reads: list[Laid], writes: list[Laid]) -> None:
    sources = [builder.buffer(f"in{at}", block_type(value.type)) for at, value in enumerate(op.operands)]
    targets = [builder.buffer(f"out{at}", block_type(value.type)) for at, value in enumerate(op.results)]
    for value, buffer, how in zip(builder.inputs, sources, reads, strict=True):
        builder.place(value, buffer[0], [to_affine(one.expr) for one in how.blocks()], how.order)
    with builder.compute("local", [one[0] for one in sources], [one[0] for one in targets]) as tiles:
        builder.yield_(*copied(op, tiles))
    made = [
        builder.collect([(buffer[0], [to_affine(one.expr) for one in how.blocks()])], value.type, how.order)
        for value, buffer, how in zip(op.results, targets, writes, strict=True)
    ]
    builder.yield_(*made)


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit all of them."""
    for found in walk(op, "coremesh.local"):
        try:
            _expand(found)
        except TilewrightError as error:
            raise located(error, found) from error
