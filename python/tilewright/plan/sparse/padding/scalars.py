# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars of a body at padding: between which bounds they are, and whether leaving padding out changes them.

Bounds hold in the model as it is and in the one that leaves padding out. Where both bounds are one number, both models
have it. What is not known of floats counts as no NaN; zero times anything is zero, as it is wherever zeros are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import product

from tilewright.core.arithmetic import PREDICATES
from tilewright.ir.generics import constant_of
from tilewright.ir.structure import captured
from tilewright.mlir import ir

#: What sums of products are below in size, as everywhere that masks are left out (`plan/attention/masks.py`).
USUAL = 1e30
#: Rounded to f32, this is infinite; to f16.
_HUGE, _HUGE_HALF = 3.4028236e38, 65520.0
#: The exponential of numbers below is zero: of up to 32 bits, and of 64.
_VANISHES, _VANISHES_WIDE = -104.0, -746.0
#: By what part of itself a function's result may differ from the number that it stands for.
_OFF = 1e-5


class Trust(IntEnum):
    """How a number relates to that of the model as it is: the same, another one that is finite, or any."""

    SAME = 0
    BLANK = 1
    LOST = 2


@dataclass(frozen=True)
class Scalar:
    """What is known of a number.

    Attributes:
        low: it is not below.
        high: it is not above.
        trust: what leaving padding out does to it.
        kept: whether it is the accumulator as it came.
        floor: of an accumulator that holds a maximum: what it is not below in the end.
    """

    low: float = -math.inf
    high: float = math.inf
    trust: Trust = Trust.SAME
    kept: bool = False
    floor: float = -math.inf

    @classmethod
    def exactly(cls, number: float) -> Scalar:
        """A number that is known."""
        return cls(float(number), float(number))

    @property
    def known(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    @property
    def zero(self) -> bool:
        """Whether it is zero in both models."""
        return self.low == self.high == 0 and self.trust is Trust.SAME

    def with_trust(self, trust: Trust) -> Scalar:
        """The number, if it is told of by this much."""
        settled = Trust.SAME if self.known and trust is Trust.BLANK else trust
        return Scalar(trust=settled) if settled is Trust.LOST else replace(self, trust=settled)


UNKNOWN = Scalar()
LOST = Scalar(trust=Trust.LOST)
KEPT = Scalar(kept=True)

Rule = Callable[[ir.Operation, Sequence[Scalar]], Scalar]


def evaluate(body: ir.Block, arguments: Sequence[Scalar]) -> Scalar:
    """What a body with one result yields for its arguments."""
    found = dict(zip(body.arguments, arguments, strict=True))
    *operations, end = body.operations
    for op in operations:
        operation = op.operation
        operands = [_of(found, value) for value in (*operation.operands, *captured(operation))]
        for result in operation.results:
            found[result] = _apply(operation, operands)
    return _of(found, end.operation.operands[0])


def _of(found: dict[ir.Value, Scalar], value: ir.Value) -> Scalar:
    if value in found:
        return found[value]
    number = constant_of(value)
    if number is None:
        return UNKNOWN
    # A bit that is set may be told as -1.
    return Scalar.exactly(abs(number) if _is_bit(value.type) else number)


def _is_bit(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.width == 1


def _apply(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    if any(operand.kept for operand in operands):
        return _accumulated(op, operands)
    worst = max((operand.trust for operand in operands), default=Trust.SAME)
    if op.name == "arith.select":
        return _select(operands)
    rule = _RULES.get(op.name)
    if worst is Trust.LOST or (rule is None and worst is Trust.BLANK):
        return LOST
    return UNKNOWN if rule is None else _fitting(rule(op, operands), worst, op.results[0].type)


def _fitting(made: Scalar, worst: Trust, kind: ir.Type) -> Scalar:
    """A result as its type holds it: with infinities for what floats do not, unknown where integers overflow."""
    trust = max(worst, made.trust)
    if isinstance(kind, ir.FloatType):
        most = largest(kind)
        low, high = (math.copysign(math.inf, end) if abs(end) >= most else end for end in (made.low, made.high))
        return Scalar(low, high).with_trust(trust)
    least, most = (0, 1) if _is_bit(kind) else _between(kind)
    fits = made.low >= least and made.high <= most
    return made.with_trust(trust) if fits else Scalar(trust=Trust.LOST if trust else Trust.SAME)


def _between(kind: ir.Type) -> tuple[int, int]:
    """Integers that a type holds, with or without a sign; indices, at least, as in 32 bits."""
    half = 1 << (min(kind.width if isinstance(kind, ir.IntegerType) else 32, 32) - 1)
    return -half, half - 1


def largest(kind: ir.FloatType) -> float:
    """Numbers of this size or more may become infinities in a type."""
    if isinstance(kind, ir.F16Type):
        return _HUGE_HALF
    return _HUGE if kind.width >= 16 else 0.0


def _accumulated(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    """An accumulator that goes through an operation: as it came where what it meets is neutral."""
    others = [operand for operand in operands if not operand.kept]
    if op.name == "math.fma" and operands[2].kept and len(others) == 2:
        others = [_times(op, others).with_trust(max(other.trust for other in others))]
    if len(others) == 1 and _is_neutral(op.name, others[0], next(one for one in operands if one.kept)):
        return next(operand for operand in operands if operand.kept)
    return UNKNOWN if all(other.trust is Trust.SAME for other in others) else LOST


def _is_neutral(name: str, other: Scalar, held: Scalar) -> bool:
    if other.trust is Trust.LOST:
        return False
    if name in ("arith.maximumf", "arith.maxnumf"):
        return other.high < held.floor
    if name in ("arith.mulf", "arith.muli"):
        return other.low == other.high == 1
    return name in ("arith.addf", "arith.addi", "arith.ori", "math.fma") and other.low == other.high == 0


def _select(operands: Sequence[Scalar]) -> Scalar:
    condition, yes, no = operands
    if condition.known:
        return yes if condition.low else no
    trust = max(operand.trust for operand in operands)
    return Scalar(min(yes.low, no.low), max(yes.high, no.high)).with_trust(trust)


def _times(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    a, b = operands[:2]
    endless = any(one.trust is Trust.BLANK and (math.isinf(one.low) or math.isinf(one.high)) for one in (a, b))
    if endless:  # what takes the place of a finite number may be infinite
        return LOST
    if a.low == a.high == 0 or b.low == b.high == 0:
        return Scalar.exactly(0)
    corners = [0.0 if math.isnan(p) else p for p in (x * y for x, y in product((a.low, a.high), (b.low, b.high)))]
    return Scalar(min(corners), max(corners))


def _over(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    a, b = operands
    if b.low > 0 or b.high < 0:
        corners = [x / y for x, y in product((a.low, a.high), (b.low, b.high))]
        return UNKNOWN if any(map(math.isnan, corners)) else Scalar(min(corners), max(corners))
    if b.trust is Trust.BLANK or a.trust is Trust.BLANK:
        return LOST
    return Scalar.exactly(0) if a.zero else UNKNOWN


def _plus(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    a, b = operands
    if (a.low == -math.inf and b.high == math.inf) or (a.high == math.inf and b.low == -math.inf):
        return UNKNOWN if a.trust is b.trust is Trust.SAME else LOST
    return Scalar(a.low + b.low, a.high + b.high)


def _minus(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    return _plus(op, [operands[0], _negated(op, operands[1:])])


def _negated(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    return Scalar(-operands[0].high, -operands[0].low, operands[0].trust)


def _largest(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    a, b = operands
    return Scalar(max(a.low, b.low), max(a.high, b.high))


def _smallest(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    a, b = operands
    return Scalar(min(a.low, b.low), min(a.high, b.high))


def _unchanged(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    return operands[0]


def _unsigned(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    """An integer without a sign, of more bits or as a float: negative ones become large."""
    return operands[0] if operands[0].low >= 0 else Scalar(0, trust=Trust.LOST if operands[0].trust else Trust.SAME)


def _signed(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    """A signed integer, of more bits or as a float: a bit alone is 0 or -1."""
    return _negated(op, operands) if _is_bit(op.operands[0].type) else operands[0]


def _narrowed(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    fits = abs(operands[0].low) <= 1 and abs(operands[0].high) <= 1 and operands[0].low >= 0
    return operands[0] if fits else replace(UNKNOWN, trust=operands[0].trust)


def _exponential(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    (x,) = operands
    wide = ir.FloatType(op.results[0].type).width > 32
    if x.high < (_VANISHES_WIDE if wide else _VANISHES):
        return Scalar.exactly(0)
    return Scalar(0, math.exp(x.high) if x.high < 80 else math.inf, Trust.LOST if x.trust and x.high > 80 else x.trust)


def _logarithm(_: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    """Of 0 and 1 exact, of others with what functions may be off by; that of negative numbers counts as no NaN."""
    (x,) = operands
    low, high = (math.log(end) if 0 < end < math.inf else end if end > 0 else -math.inf for end in (x.low, x.high))
    low, high = (end - sign * _OFF * abs(end) if math.isfinite(end) else end for end, sign in ((low, 1), (high, -1)))
    return Scalar(low, high, Trust.LOST if x.trust and x.low <= 0 else x.trust)


def _compared(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
    predicate = PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
    name = predicate[-2:]
    either = Scalar(0, 1)
    # Bits and negative numbers compare otherwise where they are read with another sign.
    unsure = op.name == "arith.cmpi" and min(a.low for a in operands) < 0 and predicate[0] == "u"
    unsure |= op.name == "arith.cmpi" and name not in ("eq", "ne") and _is_bit(op.operands[0].type)
    if unsure or name not in _ORDERS:
        return either
    held = _ORDERS[name](*operands)
    return either if held is None else Scalar.exactly(held)


def _ordered(a: Scalar, b: Scalar, strict: bool) -> bool | None:
    """Whether a < b, or a <= b; None: not known."""
    if a.high < b.low or (not strict and a.high <= b.low):
        return True
    if a.low > b.high or (strict and a.low >= b.high):
        return False
    return None


def _equal(a: Scalar, b: Scalar) -> bool | None:
    if a.known and b.known and a.low == b.low:
        return True
    return False if a.high < b.low or b.high < a.low else None


def _not(held: bool | None) -> bool | None:
    return None if held is None else not held


_ORDERS: dict[str, Callable[[Scalar, Scalar], bool | None]] = {
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "lt": lambda a, b: _ordered(a, b, True),
    "le": lambda a, b: _ordered(a, b, False),
    "gt": lambda a, b: _ordered(b, a, True),
    "ge": lambda a, b: _ordered(b, a, False),
}


def _bits(join: Callable[[int, int], int], absorbing: int | None) -> Rule:
    """A rule of two bits; of wider integers, where both are known."""

    def rule(op: ir.Operation, operands: Sequence[Scalar]) -> Scalar:
        a, b = operands
        if a.known and b.known and min(a.low, b.low) >= 0 and max(a.low, b.low) < 2**31:
            return Scalar.exactly(join(int(a.low), int(b.low)))
        if not _is_bit(op.results[0].type):
            return UNKNOWN if a.trust is b.trust is Trust.SAME else LOST
        if absorbing is not None and absorbing in [x.low for x in (a, b) if x.known]:
            return Scalar.exactly(absorbing)
        return Scalar(0, 1)

    return rule


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("arith.addf", "arith.addi"), _plus),
    **dict.fromkeys(("arith.subf", "arith.subi"), _minus),
    **dict.fromkeys(("arith.mulf", "arith.muli"), _times),
    "arith.divf": _over,
    "arith.negf": _negated,
    **dict.fromkeys(("arith.maximumf", "arith.maxnumf", "arith.maxsi"), _largest),
    **dict.fromkeys(("arith.minimumf", "arith.minnumf", "arith.minsi"), _smallest),
    **dict.fromkeys(("arith.extf", "arith.truncf"), _unchanged),
    **dict.fromkeys(("arith.extui", "arith.uitofp"), _unsigned),
    **dict.fromkeys(("arith.extsi", "arith.sitofp"), _signed),
    "arith.trunci": _narrowed,
    "math.exp": _exponential,
    "math.log": _logarithm,
    **dict.fromkeys(("arith.cmpf", "arith.cmpi"), _compared),
    "arith.andi": _bits(lambda a, b: a & b, 0),
    "arith.ori": _bits(lambda a, b: a | b, 1),
    "arith.xori": _bits(lambda a, b: a ^ b, None),
}
