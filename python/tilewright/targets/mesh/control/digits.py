# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that loops count: of one over all elements of a shape, one for each dimension, by division and remainder."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.ir.constants import integer_constant, trip_count
from tilewright.ir.generics import create, create_number, descendants, uses
from tilewright.mlir import ir

_DIVIDES = {"arith.divsi": True, "arith.divui": True, "arith.remsi": False, "arith.remui": False}


@dataclass(frozen=True, eq=False)
class Digit:
    """An index that runs from 0 to `size` - 1 in a loop.

    Attributes:
        values: that are it.
    """

    loop: ir.Operation
    size: int
    values: tuple[ir.Value, ...]


def digits_of(op: ir.Operation) -> list[Digit]:
    """The indices of all loops in an op, those of one loop with the slowest first."""
    loops = [one for one in (op, *descendants(op)) if one.name == "scf.for"]
    return [digit for loop in loops for digit in reversed(_digits(loop))]


def _digits(loop: ir.Operation) -> list[Digit]:
    """The indices of one loop, the fastest first; none where it does not count from 0 to a known number."""
    count = trip_count(loop)
    if count is None or [integer_constant(loop.operands[at]) for at in (0, 2)] != [0, 1]:
        return []
    found: list[Digit] = []
    values: tuple[ir.Value, ...] = (loop.regions[0].blocks[0].arguments[0],)
    while (by := _divisor(values)) is not None and by > 0 and count % by == 0 and count > by:
        quotients, rests = _parts(values)
        found.append(Digit(loop, by, rests))
        values, count = quotients, count // by
    return [*found, Digit(loop, count, values)]


def _divisor(values: tuple[ir.Value, ...]) -> int | None:
    """What each user of an index divides it by; None where there is no such number."""
    users = [(user, number) for value in values for user, number in uses(value)]
    if not all(user.name in _DIVIDES and number == 0 for user, number in users):
        return None
    divisors = {integer_constant(user.operands[1]) for user, _ in users}
    return divisors.pop() if len(divisors) == 1 else None


def _parts(values: tuple[ir.Value, ...]) -> tuple[tuple[ir.Value, ...], tuple[ir.Value, ...]]:
    """Quotients and rests of an index."""
    users = [user for value in values for user, _ in uses(value)]
    quotients = tuple(user.results[0] for user in users if _DIVIDES[user.name])
    return quotients, tuple(user.results[0] for user in users if not _DIVIDES[user.name])


def counted_anew(loop: ir.Operation, sizes: list[int]) -> list[ir.Value]:
    """Let a loop count indices of other sizes, the slowest first; these, at the begin of its body.

    What the loop had of them is left as it is.
    """
    with ir.InsertionPoint(loop):
        index = ir.IndexType.get()
        loop.operands[1] = create_number(prod(sizes), index)
    block = loop.regions[0].blocks[0]
    made: list[ir.Value] = []
    with ir.InsertionPoint.at_block_begin(block):
        place: ir.Value = block.arguments[0]
        for size in reversed(sizes[1:]):
            by = create_number(size, index)
            made.append(create("arith.remsi", [place, by], index))
            place = create("arith.divsi", [place, by], index)
    return [place, *reversed(made)]


def without_counting(inner: list[ir.Operation]) -> list[ir.Operation]:
    """Ops of a body; quotients and rests that nothing reads any more are erased."""
    kept: list[ir.Operation] = []
    for one in reversed(inner):
        if one.name in _DIVIDES and not list(uses(one.results[0])):
            one.erase()
        else:
            kept.append(one)
    return kept[::-1]
