# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`index`, and what a program demands (`cf.assert`) or leaves open (`ub.poison`)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import AssertionFailedError

PAIRS = [(7, 2), (-7, 2), (7, -2), (5, 5), (0, 3), (-8, -3)]
WORD = 1 << 64
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "divs": lambda a, b: int(a / b),
    "rems": lambda a, b: a - int(a / b) * b,
    "floordivs": lambda a, b: a // b,
    "ceildivs": lambda a, b: -(-a // b),
    "divu": lambda a, b: a % WORD // (b % WORD),
    "remu": lambda a, b: a % WORD % (b % WORD),
    "ceildivu": lambda a, b: -(-(a % WORD) // (b % WORD)),
    "maxs": max,
    "mins": min,
    "maxu": lambda a, b: max(a % WORD, b % WORD),
    "minu": lambda a, b: min(a % WORD, b % WORD),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
SHIFTS = {"shl": lambda a, b: a << b, "shrs": lambda a, b: a >> b, "shru": lambda a, b: (a % WORD) >> b}


def two(op: str) -> str:
    """A function of two indices around one op."""
    return f"func.func @main(%a: index, %b: index) -> index {{ %r = index.{op} %a, %b return %r : index }}"


@pytest.mark.parametrize("op", BINARY)
def test_arithmetic(interpret, op):
    for a, b in PAIRS:
        assert int(interpret(two(op), a, b)[0]) % WORD == BINARY[op](a, b) % WORD, (a, b)


@pytest.mark.parametrize("op", SHIFTS)
def test_shifts(interpret, op):
    for a in (5, -5):
        assert int(interpret(two(op), a, 3)[0]) % WORD == SHIFTS[op](a, 3) % WORD


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_cmp(interpret, predicate):
    relation = {"q": "__eq__", "e": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
    name = relation[predicate[1:]]
    text = f"func.func @main(%a: index, %b: index) -> i1 {{ %r = index.cmp {predicate}(%a, %b) return %r : i1 }}"
    for a, b in PAIRS:
        x, y = (a % WORD, b % WORD) if predicate[0] == "u" and len(predicate) == 3 else (a, b)
        assert bool(interpret(text, a, b)[0]) == getattr(x, name)(y)


def test_casts_and_constants(interpret):
    text = """func.func @main(%a: i8, %b: index) -> (index, index, i8, index, i1, index) {
      %s = index.casts %a : i8 to index
      %u = index.castu %a : i8 to index
      %n = index.casts %b : index to i8
      %c = index.constant -3
      %t = index.bool.constant true
      %w = index.sizeof
      return %s, %u, %n, %c, %t, %w : index, index, i8, index, i1, index }"""
    assert [int(v) for v in interpret(text, np.int8(-2), 258)] == [-2, 254, 2, -3, 1, 64]


def test_assert_speaks_in_its_own_words(interpret):
    text = """func.func @main(%n: index) -> index {
      %c3 = arith.constant 3 : index
      %ok = arith.cmpi slt, %n, %c3 : index
      cf.assert %ok, "Reshape 'r': too long"
      return %n : index }"""
    assert int(interpret(text, 2)[0]) == 2
    with pytest.raises(AssertionFailedError, match="^Reshape 'r': too long"):
        interpret(text, 3)


def test_assert_in_a_generic_holds_at_every_point(interpret):
    text = """func.func @main(%i: tensor<3xindex>, %o: tensor<3xindex>) -> tensor<3xindex> {
      %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
          iterator_types = ["parallel"]} ins(%i : tensor<3xindex>) outs(%o : tensor<3xindex>) {
      ^bb0(%x: index, %y: index):
        %c3 = arith.constant 3 : index
        %ok = arith.cmpi ult, %x, %c3 : index
        cf.assert %ok, "Gather: an index is outside"
        linalg.yield %x : index } -> tensor<3xindex>
      return %r : tensor<3xindex> }"""
    assert interpret(text, np.int64([0, 2, 1]), np.int64([0, 0, 0]))[0].tolist() == [0, 2, 1]
    with pytest.raises(AssertionFailedError, match="an index is outside"):
        interpret(text, np.int64([0, 3, 1]), np.int64([0, 0, 0]))


def test_poison_shows(interpret):
    text = """func.func @main() -> (f32, i32) {
      %f = ub.poison : f32
      %i = ub.poison : i32
      return %f, %i : f32, i32 }"""
    floating, integer = interpret(text)
    assert np.isnan(floating) and int(integer) == -7777
