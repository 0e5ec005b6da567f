# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of products with another dimension as the last one, for the passes that say which."""

from __future__ import annotations

from tilewright.ir.generics import create_transposed, maps, set_maps
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir


class Transposes:
    """The transposed operands of a block: products that share one share its transposed form."""

    def __init__(self) -> None:
        """Begin with none."""
        self._made: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}

    def transpose(self, op: LinalgOp, number: int, last: int) -> None:
        """Let a loop be the last dimension of an operand, transposed in front of the first product that reads it.

        Args:
            op: the product.
            number: of the operand, each of whose dimensions is a loop.
            last: the loop.
        """
        access, own = op.inputs[number], maps(op.op)
        at = access.dims.index(last)
        order = (*(d for d in range(len(access.dims)) if d != at), at)
        key = access.value, order
        if key not in self._made:
            with op.op.location, ir.InsertionPoint(op.op):
                self._made[key] = create_transposed(access.value, order)
        op.op.operands[number] = self._made[key]
        own[number] = ir.AffineMap.get(op.rank, 0, [own[number].results[d] for d in order])
        set_maps(op.op, own)
