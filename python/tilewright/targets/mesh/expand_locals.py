# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-expand-locals`: what each core computes alone becomes a program, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import TilewrightError
from tilewright.dialects.coremesh import ProgramBuilder, block_type
from tilewright.dialects.coremesh import program as coremesh_program
from tilewright.ir.generics import body, uses, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, located, register
from tilewright.plan.mesh.collectives.layouts import Laid, laid
from tilewright.sim.coremesh_ir.expressions import to_affine


@register
@dataclass(frozen=True)
class ExpandLocals(Pass):
    """Replace `coremesh.local` by a `coremesh.program` of one computation, on blocks as their layouts say.

    Before:
    ```mlir
    #tile = #coremesh.layout<grid(3, 2), [y, x]>
    func.func @f(%a: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
      %0 = coremesh.local (%x = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
        %1 = arith.negf %x : tensor<3x4xf32>
        coremesh.yield %1 : tensor<3x4xf32>
      }
      return %0 : tensor<7x8xf32, #tile>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : ...
    coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      ...
    }
    %r = coremesh.collect @out0 block(y, x) : ...
    ```
    """

    name: ClassVar[str] = "tile-expand-locals"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)

    def run(self, op: ir.Operation) -> None:
        """Visit all of them."""
        for found in walk(op, "coremesh.local"):
            try:
                _expand(found)
            except TilewrightError as error:
                raise located(error, found) from error


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
        known = dict(zip(body(op).arguments, tiles, strict=True))
        for inner in body(op).operations:
            copy = inner.operation.clone()
            _rename(copy, known)
            known.update(zip(inner.operation.results, copy.results, strict=True))
    made = [
        builder.collect([(buffer[0], [to_affine(one.expr) for one in how.blocks()])], value.type, how.order)
        for value, buffer, how in zip(op.results, targets, writes, strict=True)
    ]
    builder.yield_(*made)


def _rename(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Let an op, and what is in it, read copies."""

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for at, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[at] = known[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)
