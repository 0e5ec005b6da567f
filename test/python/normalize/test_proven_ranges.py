# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of random integer programs hold all numbers that a run makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.ir.generics import walk
from tilewright.ir.ranges import Ranges
from tilewright.mlir import ir

_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda x, y: x + y,
    "arith.subi": lambda x, y: x - y,
    "arith.muli": lambda x, y: x * y,
    "arith.maxsi": max,
    "arith.minsi": min,
}
_PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "slt": lambda x, y: x < y,
    "sle": lambda x, y: x <= y,
    "sgt": lambda x, y: x > y,
    "sge": lambda x, y: x >= y,
}
#: With a sign, true is -1.
_OF_BOOLS: dict[str, Callable[[int, int], int]] = {
    "andi": lambda x, y: x & y,
    "ori": lambda x, y: x | y,
    "maxsi": lambda x, y: x & y,
    "minsi": lambda x, y: x | y,
    "cmpi slt,": lambda x, y: -x < -y,
    "cmpi sge,": lambda x, y: -x >= -y,
}


def wrapped(number: int) -> int:
    """In eight bits."""
    return (number + 128) % 256 - 128


class Program:
    """A random body of two loops, as text, and what each of its values is for all iterations."""

    def __init__(self, seed: int) -> None:
        random = self.random = np.random.default_rng(seed)
        starts = random.integers(-5, 5, 2)
        ends = starts + random.integers(1, 6, 2)
        space = [(i, j) for i in range(starts[0], ends[0]) for j in range(starts[1], ends[1])]
        self.numbers = {"%i": [i for i, _ in space], "%j": [j for _, j in space]}
        self.bools: dict[str, list[int]] = {}
        self.lines: list[str] = []
        for number in range(12):
            self.step(f"%v{number}")
        bounds = [f"%b{d} = arith.constant {n} : i8" for d, n in enumerate([*starts, *ends])]
        loops = ["scf.for %i = %b0 to %b2 step %one : i8 {", "scf.for %j = %b1 to %b3 step %one : i8 {"]
        body = ["%one = arith.constant 1 : i8", *bounds, *loops, *self.lines, "}", "}", "return"]
        self.text = "\n".join(["func.func @main() {", *body, "}"])

    def pick(self, among: dict[str, list[int]]) -> str:
        return str(self.random.choice(list(among)))

    def step(self, name: str) -> None:
        """One more operation."""
        x, y = self.pick(self.numbers), self.pick(self.numbers)
        kind = self.random.integers(7)
        if kind == 0:
            constant = int(self.random.integers(-20, 20))
            self.lines.append(f"{name} = arith.constant {constant} : i8")
            self.numbers[name] = [constant] * len(self.numbers["%i"])
        elif kind == 1:
            predicate = str(self.random.choice(list(_PREDICATES)))
            self.lines.append(f"{name} = arith.cmpi {predicate}, {x}, {y} : i8")
            self.bools[name] = [
                int(_PREDICATES[predicate](*p)) for p in zip(self.numbers[x], self.numbers[y], strict=True)
            ]
        elif kind == 2 and self.bools:
            which = self.pick(self.bools)
            self.lines.append(f"{name} = arith.select {which}, {x}, {y} : i8")
            ways = zip(self.bools[which], self.numbers[x], self.numbers[y], strict=True)
            self.numbers[name] = [a if c else b for c, a, b in ways]
        elif kind == 3 and self.bools:
            p, q, op = self.pick(self.bools), self.pick(self.bools), str(self.random.choice(list(_OF_BOOLS)))
            self.lines.append(f"{name} = arith.{op} {p}, {q} : i1")
            self.bools[name] = [int(_OF_BOOLS[op](*pair)) for pair in zip(self.bools[p], self.bools[q], strict=True)]
        elif kind == 4 and self.bools:
            which = self.pick(self.bools)
            self.lines.append(f"{name} = arith.extsi {which} : i1 to i8")
            self.numbers[name] = [-bit for bit in self.bools[which]]
        else:
            op = str(self.random.choice(list(_BINARY)))
            self.lines.append(f"{name} = {op} {x}, {y} : i8")
            pairs = zip(self.numbers[x], self.numbers[y], strict=True)
            self.numbers[name] = [wrapped(_BINARY[op](a, b)) for a, b in pairs]


@pytest.mark.parametrize("seed", range(60))
def test_every_number_lies_in_its_range(seed: int) -> None:
    program = Program(seed)
    with ir.Context():
        module = ir.Module.parse(program.text)
        inner, outer = walk(module.operation, "scf.for")
        names = [line.split(" = ")[0] for line in program.lines]
        values = [op.operation.results[0] for op in list(inner.regions[0].blocks[0].operations)[:-1]]
        found = dict(zip(names, values, strict=True))
        found |= {name: loop.regions[0].blocks[0].arguments[0] for name, loop in (("%i", outer), ("%j", inner))}
        ranges = Ranges()
        for name, numbers in (program.numbers | program.bools).items():
            low, high = ranges.of(found[name]) or (1, 0)
            assert low <= min(numbers) and max(numbers) <= high, (name, program.text)
        assert ranges.of(found["%i"]) == (min(program.numbers["%i"]), max(program.numbers["%i"]))
