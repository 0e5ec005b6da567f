# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-assert-early`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import maker, may_trap, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class AssertEarly(Pass):
    """Move assertions to where their conditions are known.

    A tensor whose sizes an assertion checks is computed behind it: what the check guards may then rely on it, as
    loops do that run over the sizes of a result. The arithmetic of a condition moves with it.

    Before:
    ```mlir
    func.func @main(%n: index) -> tensor<?xf32> {
      %v = arith.constant 1.0 : f32
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %c = arith.constant 4 : index
      %ok = arith.cmpi eq, %n, %c : index
      cf.assert %ok, "the size is not 4"
      return %y : tensor<?xf32>
    }
    ```
    After:
    ```mlir
    %c = arith.constant 4 : index
    %ok = arith.cmpi eq, %n, %c : index
    cf.assert %ok, "the size is not 4"
    ...
    %y = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    ```
    """

    name: ClassVar[str] = "tile-assert-early"

    def run(self, op: ir.Operation) -> None:
        """Sort each block that holds assertions."""
        seen: list[ir.Block] = []
        for assertion in walk(op, "cf.assert"):
            if assertion.block not in seen:
                seen.append(assertion.block)
                _hoist(assertion.block)


def _hoist(block: ir.Block) -> None:
    """Move what assertions need, and them, behind the last operation that they depend on."""
    ops = [op.operation for op in block.operations]
    start = ops[0]
    order = {op: number for number, op in enumerate(ops)}
    #: the last operation that was moved behind an operation that stays; key -1: to the start of the block
    tails: dict[int, ir.Operation] = {}
    home: dict[ir.Operation, int] = {}  # where an operation stands now: the number of the one that stays before it
    for op in ops:
        if not _moves(op):
            home[op] = order[op]
            continue
        anchor = max([-1, *(home[m] for v in op.operands if (m := _maker(v, block)) is not None)])
        home[op] = anchor
        tail = tails.get(anchor)
        if tail is not None:
            op.move_after(tail)
        elif anchor >= 0:
            op.move_after(ops[anchor])
        else:
            op.move_before(start)
        tails[anchor] = op


def _maker(value: ir.Value, block: ir.Block) -> ir.Operation | None:
    """The op of the block whose result a value is."""
    op = maker(value)
    return op if op is not None and op.block == block else None


def _moves(op: ir.Operation) -> bool:
    if op.name in ("cf.assert", "tensor.dim"):
        return True
    if not op.name.startswith(("arith.", "index.")) or may_trap(op):
        return False
    return not any(isinstance(value.type, ir.ShapedType) for value in (*op.operands, *op.results))
