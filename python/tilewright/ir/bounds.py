# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest sizes that tensors of run-time sizes can have.

What the host function checks before its first loop may be relied on: a symbolic dimension with a range, or one that a
table limits. What is made of such sizes by arithmetic has a bound, too. Tasks have buffers for as much (`tile.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.constants import integer_constant
from tilewright.ir.generics import maker
from tilewright.ir.structure import LinalgOp
from tilewright.mlir import ir

_SLE, _ULE = 3, 7
#: Results of operations that grow with their operands.
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
    "arith.maxsi": max,
}


class Bounds:
    """What the checks at the start of the functions inside `op` say."""

    def __init__(self, op: ir.Operation) -> None:
        self._most: dict[ir.Value, int] = {}
        for function in op.regions[0].blocks[0].operations:
            if function.operation.name == "func.func" and len(function.operation.regions[0].blocks):
                self._read(function.operation.regions[0].blocks[0])

    def _read(self, block: ir.Block) -> None:
        for inner in block.operations:
            if inner.operation.name == "linalg.generic" or len(inner.operation.regions):
                return
            if inner.operation.name == "cf.assert":
                self._note(maker(inner.operation.operands[0]))

    def _note(self, condition: ir.Operation | None) -> None:
        if condition is None or condition.name != "arith.cmpi":
            return
        most = integer_constant(condition.operands[1])
        if most is not None and ir.IntegerAttr(condition.attributes["predicate"]).value in (_SLE, _ULE):
            size = condition.operands[0]
            self._most[size] = min(most, self._most.get(size, most))

    def most(self, size: ir.Value) -> int | None:
        """The largest value of a size, None where no bound is known."""
        found = self._most.get(size, integer_constant(size))
        made = maker(size)
        if found is not None or made is None:
            return found
        if made.name == "arith.minsi":
            known = [n for n in map(self.most, made.operands) if n is not None]
            return min(known, default=None)
        combine = _ARITHMETIC.get(made.name)
        if combine is None:
            return None
        first, second = (self.most(operand) for operand in made.operands)
        return None if first is None or second is None or min(first, second) < 0 else combine(first, second)

    def of_loops(self, op: LinalgOp) -> list[int]:
        """The largest extent of each loop; -1 where no bound is known."""
        result = [-1 if d in op.dynamic else extent for d, extent in enumerate(op.extents)]
        for access in (op.output, *op.inputs):
            for t, d in enumerate(access.dims):
                if d in op.dynamic and d is not None and result[d] < 0:
                    size = _size(access.value, t)
                    most = None if size is None else self.most(size)
                    result[d] = -1 if most is None else most
        return result


def _size(tensor: ir.Value, dim: int) -> ir.Value | None:
    """The value that a run-time size of a tensor is known as."""
    made = maker(tensor)
    while made is not None and made.name in ("linalg.generic", "linalg.fill"):
        number = ir.OpResult(tensor).result_number - len(made.results)
        tensor = made.operands[len(made.operands) + number]
        made = maker(tensor)
    if made is not None and made.name in ("tensor.empty", "tensor.expand_shape"):
        dynamic = [t for t, size in enumerate(ir.RankedTensorType(tensor.type).shape) if size < 0]
        sizes = list(made.operands)[-len(dynamic) :]
        return sizes[dynamic.index(dim)] if dim in dynamic else None
    for use in tensor.uses:
        reader = use.owner.operation
        if reader.name == "tensor.dim" and use.operand_number == 0 and integer_constant(reader.operands[1]) == dim:
            return reader.results[0]
    return None
