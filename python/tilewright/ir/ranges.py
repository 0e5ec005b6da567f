# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Between which numbers integers lie: an interval for each value, and one for all elements of a tensor.

MLIR's analysis of integer ranges knows scalars only; indices of imported models are tensors of a number or two.
Intervals of operations are those of interval arithmetic (Moore, 1966); where a sum may overflow, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tilewright.ir.constants import integer_constant
from tilewright.mlir import ir

Range = tuple[int, int]  # the least and the greatest

#: Elements of a constant that are looked at, at most.
_MOST = 1 << 16
_INDEX_BITS = 64
_SAME = frozenset("tensor.extract tensor.expand_shape tensor.collapse_shape tensor.extract_slice tensor.cast".split())
_CASTS = frozenset(f"arith.{name}" for name in "index_cast index_castui extui extsi trunci".split())
_SIGNED = ("arith.cmpi", "arith.maxsi", "arith.minsi")
_SLT, _SLE, _SGT, _SGE = 2, 3, 4, 5  # of arith.cmpi


def all_of(kind: ir.Type) -> Range | None:
    """The numbers of an integer type, signed; bools are 0 and 1. None: no integers."""
    element = kind.element_type if isinstance(kind, ir.ShapedType) else kind
    if isinstance(element, ir.IndexType):
        bits = _INDEX_BITS
    elif isinstance(element, ir.IntegerType):
        bits = element.width
    else:
        return None
    return (0, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)


@dataclass
class Ranges:
    """Ranges of the values of a function; what was asked for is kept.

    Attributes:
        known: what was found, and what is assumed of arguments of blocks.
    """

    known: dict[ir.Value, Range | None] = field(default_factory=dict)

    def of(self, value: ir.Value) -> Range | None:
        """Return a range that holds a value in any run; None for what is no integer."""
        whole = all_of(value.type)
        if whole is None:
            return None
        if value not in self.known:
            self.known[value] = whole  # in case it is asked for on the way
            found = self._argument(value) if isinstance(value, ir.BlockArgument) else self._result(value)
            self.known[value] = whole if found is None or not _within(found, whole) else found
        return self.known[value]

    def is_true(self, condition: ir.Value) -> bool:
        """Whether a condition holds in any run."""
        return self.of(condition) == (1, 1)

    # Results ------------------------------------------------------------------------------------------------------

    def _result(self, value: ir.Value) -> Range | None:
        op = value.owner.operation if hasattr(value.owner, "operation") else value.owner
        name = op.name
        if name == "arith.constant":
            return _constant(op.attributes["value"])
        if name in _SAME:
            return self.of(op.operands[0])
        if name in _CASTS:
            return self._cast(op)
        if name == "linalg.fill":
            return self.of(op.operands[0])
        if name == "linalg.generic":
            return self._generic(op, value)
        ranges = [self.of(operand) for operand in op.operands]
        if not ranges or any(found is None for found in ranges):
            return None
        return _apply(op, [found for found in ranges if found is not None])

    def _cast(self, op: ir.Operation) -> Range | None:
        found, source = self.of(op.operands[0]), op.operands[0].type
        if found is None or (op.name.endswith("ui") and found[0] < 0):
            return None
        if op.name in ("arith.extsi", "arith.index_cast") and all_of(source) == (0, 1):
            return -found[1], -found[0]
        return found

    def _generic(self, op: ir.Operation, value: ir.Value) -> Range | None:
        """The body's, on all that its operands may be; a reduction's after any number of iterations."""
        block, inputs = op.regions[0].blocks[0], len(op.operands) - len(op.results)
        (number,) = (i for i, result in enumerate(op.results) if result == value)
        yielded = list(block.operations)[-1].operands[number]
        first = self.of(op.operands[inputs + number])
        if first is None:
            return None

        def after(before: Range) -> Range | None:
            inner = Ranges(dict(self.known))
            for argument, operand in zip(block.arguments, op.operands, strict=True):
                inner.known[argument] = self.of(operand)
            inner.known[block.arguments[inputs + number]] = before
            return inner.of(yielded)

        if not any("reduction" in str(kind) for kind in op.attributes["iterator_types"]):
            return after(first)
        once = after(first)
        if once is None:
            return None
        several = _hull(first, once)
        again = after(several)
        if again is None or not _within(again, several):
            return None
        return again if _runs(op) else several

    # Arguments ----------------------------------------------------------------------------------------------------

    def _argument(self, value: ir.BlockArgument) -> Range | None:
        op = value.owner.owner.operation
        if op.name == "scf.for" and value.arg_number == 0:
            first, end = self.of(op.operands[0]), self.of(op.operands[1])
            step = integer_constant(op.operands[2])
            if first is not None and end is not None and step is not None and step > 0:
                return first[0], max(first[0], end[1] - 1)
        if op.name == "scf.while":
            return self._of_while(op, value)
        return None

    def _of_while(self, op: ir.Operation, value: ir.BlockArgument) -> Range | None:
        """Of the second region: what the condition lets through. Of the first one: a counter does not fall."""
        before, after = (region.blocks[0] for region in op.regions)
        condition = list(before.operations)[-1].operation
        if value.owner == after:
            passed = condition.operands[1 + value.arg_number]
            found = self.of(passed)
            return found and (found[0], min(found[1], self._limit(condition.operands[0], passed)))
        whole, first = all_of(value.type), self.of(op.operands[value.arg_number])
        if whole is None or first is None or self._limit(condition.operands[0], value) >= whole[1]:
            return None
        given = list(after.operations)[-1].operands[value.arg_number]
        passed = [i for i, operand in enumerate(list(condition.operands)[1:]) if operand == value]
        steps = {self._step(given, after.arguments[i]) for i in passed} - {None}
        return (first[0], whole[1]) if steps else None

    def _limit(self, condition: ir.Value, value: ir.Value) -> int:
        """The greatest number of a value for which a condition may hold."""
        whole = all_of(value.type)
        assert whole is not None
        if isinstance(condition, ir.BlockArgument):
            return whole[1]
        op = condition.owner
        if op.name == "arith.andi":
            return min(self._limit(operand, value) for operand in op.operands)
        if op.name != "arith.cmpi" or op.operands[0] != value:
            return whole[1]
        bound, predicate = self.of(op.operands[1]), ir.IntegerAttr(op.attributes["predicate"]).value
        if bound is None or predicate not in (_SLT, _SLE):
            return whole[1]
        return bound[1] - 1 if predicate == _SLT else bound[1]

    def _step(self, value: ir.Value, counter: ir.Value) -> int | None:
        """What is added to a counter, if that is 0 or 1: a number below another does not overflow by it."""
        if value == counter:
            return 0
        if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.addi":
            return None
        operands = list(value.owner.operands)
        if counter not in operands:
            return None
        return 1 if self.of(operands[1 - operands.index(counter)]) == (1, 1) else None


def _constant(attribute: ir.Attribute) -> Range | None:
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value), int(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        number = attribute.value
        return (abs(number),) * 2 if all_of(attribute.type) == (0, 1) else (number, number)
    if not isinstance(attribute, ir.DenseElementsAttr) or not 0 < len(attribute) <= _MOST:
        return None
    array = np.array(attribute)
    return (int(array.min()), int(array.max())) if array.dtype.kind in "bi" else None


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _hull(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _runs(op: ir.Operation) -> bool:
    """Whether a reduction surely has an element."""
    return all(
        not isinstance(v.type, ir.ShapedType) or (v.type.has_static_shape and 0 not in v.type.shape)
        for v in op.operands
    )


def _corners(function: Callable[[int, int], int], x: Range, y: Range) -> Range:
    ends = [function(a, b) for a in x for b in y]
    return min(ends), max(ends)


def _bits(both: bool) -> Callable[[Range, Range], Range | None]:
    """And, or: of bools."""
    choose = min if both else max

    def combine(x: Range, y: Range) -> Range | None:
        known = _within(x, (0, 1)) and _within(y, (0, 1))
        return (choose(x[0], y[0]), choose(x[1], y[1])) if known else None

    return combine


_BINARY: dict[str, Callable[[Range, Range], Range | None]] = {
    "arith.addi": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "arith.subi": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "arith.muli": lambda x, y: _corners(lambda a, b: a * b, x, y),
    "arith.maxsi": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "arith.minsi": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "arith.andi": _bits(True),
    "arith.ori": _bits(False),
}


def _apply(op: ir.Operation, ranges: list[Range]) -> Range | None:
    """The range of an operation of integers; None: the type's."""
    if op.name == "tensor.from_elements":
        return _hull(*ranges)
    if op.name == "arith.select":
        condition, *ways = ranges
        return _hull(*ways) if condition == (0, 1) else ways[0] if condition == (1, 1) else ways[1]
    if op.name in _SIGNED and all_of(op.operands[0].type) == (0, 1):
        ranges = [(-high, -low) for low, high in ranges]  # a bool with a sign: true is -1
        if op.name != "arith.cmpi":
            low, high = _BINARY[op.name](*ranges) or (-1, 0)
            return -high, -low
    if op.name == "arith.cmpi":
        return _compared(ir.IntegerAttr(op.attributes["predicate"]).value, *ranges)
    return _BINARY[op.name](*ranges) if op.name in _BINARY else None


def _compared(predicate: int, x: Range, y: Range) -> Range | None:
    """1 where it always holds, 0 where never."""
    if predicate in (_SGT, _SGE):
        predicate, x, y = {_SGT: _SLT, _SGE: _SLE}[predicate], y, x
    if predicate == _SLT:
        return int(x[1] < y[0]), int(x[0] < y[1])
    if predicate == _SLE:
        return int(x[1] <= y[0]), int(x[0] <= y[1])
    if predicate in (0, 1):  # eq, ne
        same, apart = x == y and x[0] == x[1], x[1] < y[0] or y[1] < x[0]
        return (int(same), int(not apart)) if predicate == 0 else (int(apart), int(not same))
    return None
