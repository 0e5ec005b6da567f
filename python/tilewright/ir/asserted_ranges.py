# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Between which numbers integers lie behind assertions, and what loops count to."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.constants import trip_count
from tilewright.ir.generics import maker, terminator
from tilewright.ir.ranges import Range, Ranges, all_of
from tilewright.mlir import ir

_EQUAL, _SLT, _SLE, _SGT, _SGE = 0, 2, 3, 4, 5  # of arith.cmpi
_MIRRORED = {_EQUAL: _EQUAL, _SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}
_DIVISIONS = frozenset(f"arith.{name}" for name in ("divsi", "floordivsi", "ceildivsi"))
_REMAINDERS = ("arith.remsi", "arith.remui")


@dataclass
class AssertedRanges(Ranges):
    """Ranges behind assertions that a caller has walked past; a run that breaks one of these ends there."""

    def __post_init__(self) -> None:
        """No assertion was told yet."""
        self._facts: dict[ir.Value, Range] = {}

    def learn(self, assertion: ir.Operation) -> None:
        """Take from a `cf.assert` what it says of numbers, and of those that they are made of."""
        before = dict(self._facts)
        self._holds(assertion.operands[0])
        if self._facts != before:
            self.known.clear()

    def is_at_most(self, value: ir.Value, most: int) -> None:
        """Note a size that an op would not have got past otherwise."""
        self._is(value, (0, most))

    def of(self, value: ir.Value) -> Range | None:
        """Return a range that holds a value in any run that gets here."""
        found, fact = super().of(value), self._facts.get(value)
        return found if found is None or fact is None else _both(found, fact)

    # Assertions ---------------------------------------------------------------------------------------------------

    def _holds(self, condition: ir.Value) -> None:
        made = maker(condition)
        if made is None:
            return
        if made.name == "arith.andi":
            for operand in made.operands:
                self._holds(operand)
        if made.name != "arith.cmpi":
            return
        predicate = ir.IntegerAttr(made.attributes["predicate"]).value
        left, right = made.operands
        if predicate in _MIRRORED:
            self._compared(predicate, left, right)
            self._compared(_MIRRORED[predicate], right, left)

    def _compared(self, predicate: int, value: ir.Value, other: ir.Value) -> None:
        bound, whole = self.of(other), all_of(value.type)
        if bound is None or whole is None:
            return
        low = bound[0] + (predicate == _SGT) if predicate in (_EQUAL, _SGT, _SGE) else whole[0]
        high = bound[1] - (predicate == _SLT) if predicate in (_EQUAL, _SLT, _SLE) else whole[1]
        self._is(value, (low, high))

    def _is(self, value: ir.Value, fact: Range) -> None:
        """Note that a number lies in a range, and what this says of the operands that it was made of."""
        old = self.of(value)
        if old is None or _both(old, fact) == old:
            return
        self._facts[value] = fact = _both(old, fact)
        self.known.clear()
        made = maker(value)
        if made is None:
            return
        if made.name == "arith.index_cast" and all_of(made.operands[0].type) != (0, 1):
            self._is(made.operands[0], fact)
        if made.name in ("arith.addi", "arith.subi", "arith.maxsi", *_DIVISIONS):
            self._made_of(made, fact)

    def _made_of(self, made: ir.Operation, fact: Range) -> None:
        if made.name in ("arith.addi", "arith.subi") and self.of_sum(made) is None:
            return  # it may overflow: large numbers may have become small
        for number, operand in enumerate(made.operands):
            rest = self.of(made.operands[1 - number])
            before = None if rest is None else _before(made.name, number, fact, rest)
            if before is not None:
                self._is(operand, before)

    def of_sum(self, made: ir.Operation) -> Range | None:
        """The range of a sum or difference by those of its operands; None where it may overflow."""
        ranges, whole = [self.of(operand) for operand in made.operands], all_of(made.results[0].type)
        left, right = ranges
        if left is None or right is None or whole is None:
            return None
        if made.name == "arith.subi":
            right = (-right[1], -right[0])
        low, high = left[0] + right[0], left[1] + right[1]
        return (low, high) if whole[0] <= low and high <= whole[1] else None

    # Results ------------------------------------------------------------------------------------------------------

    def _result(self, value: ir.Value) -> Range | None:
        op = maker(value)
        assert op is not None
        if op.name in ("scf.for", "scf.if"):
            return self._of_loop(op, value) if op.name == "scf.for" else self._of_branch(op, value)
        if op.name in _DIVISIONS or op.name in _REMAINDERS:
            left, right = (self.of(operand) for operand in op.operands)
            return None if left is None or right is None else _divided(op.name, left, right)
        return super()._result(value)

    def _argument(self, value: ir.BlockArgument) -> Range | None:
        op = value.owner.owner.operation
        if op.name == "scf.for" and value.arg_number > 0:
            return self._counted(op, value.arg_number - 1, -1)
        return super()._argument(value)

    def _of_loop(self, op: ir.Operation, value: ir.Value) -> Range | None:
        return self._counted(op, list(op.results).index(value), 0)

    def _of_branch(self, op: ir.Operation, value: ir.Value) -> Range | None:
        number = list(op.results).index(value)
        ways = [self.of(terminator(region).operands[number]) for region in op.regions]
        found = [way for way in ways if way is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if len(found) == len(ways) else None

    def _counted(self, loop: ir.Operation, number: int, less: int) -> Range | None:
        """What a loop adds up: so much in each iteration. `less`: iterations that are not there yet."""
        turns, first = self._turns(loop), self.of(loop.operands[3 + number])
        argument = loop.regions[0].blocks[0].arguments[1 + number]
        step = self._added(terminator(loop.regions[0]).operands[number], argument)
        if turns is None or first is None or step is None:
            return None
        turns = max(0, turns + less)
        return first[0] + min(0, turns * step[0]), first[1] + max(0, turns * step[1])

    def _turns(self, loop: ir.Operation) -> int | None:
        """Iterations, at most."""
        count = trip_count(loop)
        if count is not None:
            return count
        low, high, step = (self.of(loop.operands[at]) for at in range(3))
        if low is None or high is None or step is None or step[0] < 1:
            return None
        return max(0, -(-(high[1] - low[0]) // step[0]))

    def _added(self, value: ir.Value, start: ir.Value) -> Range | None:
        """What is added to a number on the way to another."""
        if value == start:
            return 0, 0
        made = maker(value)
        if made is None:
            return None
        if made.name == "arith.addi":
            return self._sum(made, start)
        ways: list[Range | None] = []
        if made.name == "arith.select":
            ways = [self._added(way, start) for way in list(made.operands)[1:]]
        if made.name == "scf.if":
            number = list(made.results).index(value)
            ways = [self._added(terminator(region).operands[number], start) for region in made.regions]
        if made.name == "scf.for":
            number = list(made.results).index(value)
            return self._nested(made, number, start)
        found = [way for way in ways if way is not None]
        if not found or len(found) < len(ways):
            return None
        return min(low for low, _ in found), max(high for _, high in found)

    def _sum(self, made: ir.Operation, start: ir.Value) -> Range | None:
        for number, operand in enumerate(made.operands):
            before, more = self._added(operand, start), self.of(made.operands[1 - number])
            if before is not None and more is not None:
                return before[0] + more[0], before[1] + more[1]
        return None

    def _nested(self, loop: ir.Operation, number: int, start: ir.Value) -> Range | None:
        """What a loop inside adds to a number that it is given."""
        before, turns = self._added(loop.operands[3 + number], start), self._turns(loop)
        argument = loop.regions[0].blocks[0].arguments[1 + number]
        step = self._added(terminator(loop.regions[0]).operands[number], argument)
        if before is None or turns is None or step is None:
            return None
        return before[0] + min(0, turns * step[0]), before[1] + max(0, turns * step[1])


def _both(one: Range, other: Range) -> Range:
    """What lies in both; the first where nothing does: no run gets there."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else one


def _divided(name: str, left: Range, right: Range) -> Range | None:
    """Quotients and remainders by positive numbers; remainders of negative numbers are not known."""
    if right[0] < 1 or (name in _REMAINDERS and left[0] < 0):
        return None
    if name in _REMAINDERS:
        return 0, min(left[1], right[1] - 1)
    ends = [_quotient(name, number, by) for number in left for by in right]
    return min(ends), max(ends)


def _quotient(name: str, number: int, by: int) -> int:
    if name == "arith.ceildivsi":
        return -(-number // by)
    return number // by if name == "arith.floordivsi" or number >= 0 else -(-number // by)


def _before(name: str, number: int, made: Range, rest: Range) -> Range | None:
    """Where an operand lies, of a result and of the other operand."""
    if name == "arith.addi":
        return made[0] - rest[1], made[1] - rest[0]
    if name == "arith.subi":
        return (made[0] + rest[0], made[1] + rest[1]) if number == 0 else (rest[0] - made[1], rest[1] - made[0])
    if name == "arith.maxsi":
        whole = -(1 << 63)
        return (made[0] if rest[1] < made[0] else whole), made[1]
    if number == 0 and rest[0] == rest[1] and rest[0] > 0 and made[0] > 0:
        by = rest[0]
        up = name == "arith.ceildivsi"
        return (made[0] - 1) * by + 1 if up else made[0] * by, made[1] * by if up else made[1] * by + by - 1
    return None
