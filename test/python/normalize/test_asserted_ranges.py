# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What assertions and loops say of integers, against all numbers that a run can make."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ir.asserted_ranges import AssertedRanges
from tilewright.ir.generics import walk
from tilewright.mlir import ir

HEAD = """
func.func @main(%x: index, %y: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
"""


def ranges_of(text: str) -> tuple[int, int] | None:
    """The range of what a function returns, behind its assertions."""
    with ir.Context():
        module = ir.Module.parse(HEAD + text + "}")
        ranges = AssertedRanges()
        for assertion in walk(module.operation, "cf.assert"):
            ranges.learn(assertion)
        (end,) = walk(module.operation, "func.return")
        return ranges.of(end.operands[0])


def floor(number: int, by: int) -> int:
    return number // by


def ceil(number: int, by: int) -> int:
    return -(-number // by)


def trunc(number: int, by: int) -> int:
    return int(number / by)


MADE: dict[str, Callable[[int], int]] = {
    "%m = arith.addi %x, %c3 : index": lambda x: x + 3,
    "%m = arith.subi %x, %c3 : index": lambda x: x - 3,
    "%m = arith.subi %c3, %x : index": lambda x: 3 - x,
    "%m = arith.maxsi %x, %c3 : index": lambda x: max(x, 3),
    "%m = arith.floordivsi %x, %c3 : index": lambda x: floor(x, 3),
    "%m = arith.ceildivsi %x, %c3 : index": lambda x: ceil(x, 3),
    "%m = arith.divsi %x, %c3 : index": lambda x: trunc(x, 3),
}
HOLDS: dict[str, Callable[[int], bool]] = {
    "eq, %m, %c5": lambda m: m == 5,
    "slt, %m, %c5": lambda m: m < 5,
    "sle, %m, %c5": lambda m: m <= 5,
    "sgt, %c5, %m": lambda m: m < 5,
    "sge, %m, %c5": lambda m: m >= 5,
}


@pytest.mark.parametrize("holds", HOLDS)
@pytest.mark.parametrize("made", MADE)
def test_assertions(made: str, holds: str) -> None:
    """What a number was made of is known, too; x lies between -20 and 20 before."""
    limits = "%c20 = arith.constant 20 : index %cm = arith.constant -20 : index "
    checks = [("l", "sle, %x, %c20"), ("h", "sge, %x, %cm"), ("a", holds)]
    asserts = " ".join(f'%{name} = arith.cmpi {text} : index cf.assert %{name}, "no"' for name, text in checks)
    found = ranges_of(f"{limits} {made} {asserts} return %x : index")
    assert found is not None
    possible = [x for x in range(-20, 21) if HOLDS[holds](MADE[made](x))]
    assert found[0] <= min(possible)
    assert max(possible) <= found[1]
    if holds.startswith("eq"):
        assert found == (min(possible), max(possible))


def test_sums_that_may_overflow_say_nothing() -> None:
    """Two large numbers may add up to a small one."""
    text = '%m = arith.addi %x, %y : index %a = arith.cmpi eq, %m, %c5 : index cf.assert %a, "no" return %x : index'
    assert ranges_of(text) == (-(1 << 63), (1 << 63) - 1)


COUNTS = {
    "%t = arith.addi %s, %c2 : index scf.yield %t : index": (1, 11),
    "%b = arith.cmpi slt, %i, %x : index %u = arith.addi %s, %c3 : index "
    "%t = arith.select %b, %s, %u : index scf.yield %t : index": (1, 16),
    "%b = arith.cmpi slt, %i, %x : index %t = scf.if %b -> index { %u = arith.subi %s, %c1 : index %v = arith.addi %s, "
    "%c1 : index scf.yield %v : index } else { scf.yield %s : index } scf.yield %t : index": (1, 6),
    "%t = scf.for %j = %c0 to %c3 step %c1 iter_args(%r = %s) -> index { %u = arith.addi %r, %c1 : index "
    "scf.yield %u : index } scf.yield %t : index": (1, 16),
    "%t = arith.muli %s, %c2 : index scf.yield %t : index": (-(1 << 63), (1 << 63) - 1),
}


@pytest.mark.parametrize("step", COUNTS)
def test_counts(step: str) -> None:
    """Five times from 1 on; what is no sum is not known."""
    loop = f"%n = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %c1) -> index {{ {step} }} return %n : index"
    assert ranges_of(loop) == COUNTS[step]


def test_quotients_and_remainders() -> None:
    """Of numbers between 0 and 9."""
    inside = "%m = arith.maxsi %x, %c0 : index %n = arith.minsi %m, %c9 : index "
    assert ranges_of(inside + "%r = arith.divsi %n, %c2 : index return %r : index") == (0, 4)
    assert ranges_of(inside + "%r = arith.ceildivsi %n, %c2 : index return %r : index") == (0, 5)
    assert ranges_of(inside + "%r = arith.remsi %n, %c5 : index return %r : index") == (0, 4)
    assert ranges_of("%r = arith.remsi %x, %c5 : index return %r : index") == (-(1 << 63), (1 << 63) - 1)
