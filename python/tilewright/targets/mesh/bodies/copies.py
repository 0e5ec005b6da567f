# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of generics, copied into what one core computes: indices count the whole tensor, padding does no harm."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tilewright.ir.generics import body, constant_of, create, create_number, maker
from tilewright.mlir import ir
from tilewright.targets.mesh.bodies.captures import PICK, Table, index_loop

DIVISIONS = frozenset(f"arith.{name}" for name in "divsi divui remsi remui ceildivsi ceildivui floordivsi".split())


class Copy:
    """The steps of a body at the current insertion point, each once.

    A core whose block reaches beyond the tensor computes with padding there: zeros, and what became of them. Its
    results are cut off, but an index that it picks by, and a number that it divides by, must have a meaning all the
    same: there indices end at the last element, and 1 stands for a divisor of 0.

    Attributes:
        known: copies that there are, of arguments and of values around.
        starts: the whole tensor's index of a core's first element, of loops that an axis splits.
        tables: what a core has of tensors of which elements are picked.

    Args:
        op: the generic.
        elements: one per argument of its body.
        sizes: of its loops, as far as indices are read.
        padded: loops along which blocks reach beyond the tensor.
    """

    def __init__(
        self,
        op: ir.Operation,
        elements: Sequence[ir.Value],
        sizes: Sequence[int] = (),
        padded: Collection[int] = (),
    ) -> None:
        self.known: dict[ir.Value, ir.Value] = dict(zip(body(op).arguments, elements, strict=True))
        self.starts: dict[int, ir.Value] = {}
        self.tables: dict[ir.Value, tuple[ir.Value, Table]] = {}
        self._sizes, self._padded = sizes, padded

    def value(self, value: ir.Value) -> ir.Value:
        """The copy of a value."""
        if value not in self.known:
            self._copy(value)
        return self.known[value]

    def _copy(self, value: ir.Value) -> None:
        made = maker(value)
        assert made is not None
        loop = index_loop(value)
        if constant_of(value) is not None:
            self.known[value] = create("arith.constant", [], value.type, {"value": made.attributes["value"]})
        elif loop is not None:
            self.known[value] = self._index(loop)
        elif made.name == PICK:
            self.known[value] = self._picked(made, value.type)
        else:
            inner = [self.value(operand) for operand in made.operands]
            if self._padded and made.name in DIVISIONS:
                inner[1] = not_zero(inner[1])
            copy = made.clone()
            for at, operand in enumerate(inner):
                copy.operands[at] = operand
            self.known.update(zip(made.results, copy.results, strict=True))

    def _index(self, loop: int) -> ir.Value:
        """The index of a loop in the whole tensor."""
        here = counted(loop)
        if loop not in self.starts:
            return here
        start = create("arith.index_cast", [self.starts[loop]], here.type)
        index = create("arith.addi", [start, here], here.type)
        if loop not in self._padded:
            return index
        return create("arith.minsi", [index, create_number(self._sizes[loop] - 1, here.type)], here.type)

    def _picked(self, made: ir.Operation, kind: ir.Type) -> ir.Value:
        block, table = self.tables[made.operands[0]]
        indices = [self._place(*each) for each in zip(list(made.operands)[1:], table.loops, strict=True)]
        shape = ir.RankedTensorType(block.type).shape
        if self._padded:
            indices = [
                index if loop is not None or constant_of(index) is not None else inside(index, size)
                for index, loop, size in zip(indices, table.loops, shape, strict=True)
            ]
        return create(PICK, [block, *indices], kind)

    def _place(self, index: ir.Value, loop: int | None) -> ir.Value:
        return self.value(index) if loop is None else counted(loop)


def counted(loop: int) -> ir.Value:
    """The index of a loop in a core's block."""
    i64 = ir.IntegerType.get_signless(64)
    return create("linalg.index", [], ir.IndexType.get(), {"dim": ir.IntegerAttr.get(i64, loop)})


def inside(index: ir.Value, size: int) -> ir.Value:
    """An index, moved to the nearest of a dimension."""
    low = create("arith.maxsi", [index, create_number(0, index.type)], index.type)
    return create("arith.minsi", [low, create_number(size - 1, index.type)], index.type)


def not_zero(divisor: ir.Value) -> ir.Value:
    """A divisor; 1 for 0."""
    zero, one = (create_number(number, divisor.type) for number in (0, 1))
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    is_zero = create("arith.cmpi", [divisor, zero], ir.IntegerType.get_signless(1), {"predicate": equal})
    return create("arith.select", [is_zero, one, divisor], divisor.type)
