# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith` against NumPy and against plain Python integers."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest

from tilewright.reference import InterpreterError

SAMPLES = [-128, -127, -8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 8, 126, 127]
PAIRS = [(a, b) for a in SAMPLES for b in SAMPLES]


def wrap(x: int, bits: int = 8) -> int:
    """Two's complement value of ``x`` in ``bits``."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def u(x: int) -> int:
    """The unsigned reading of an i8."""
    return x & 0xFF


def c_division(a: int, b: int) -> int:
    """Quotient toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ANY = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "maxsi": max,
    "minsi": min,
    "maxui": lambda a, b: max(u(a), u(b)),
    "minui": lambda a, b: min(u(a), u(b)),
}
NONZERO = {
    "divsi": c_division,
    "remsi": lambda a, b: a - b * c_division(a, b),
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: u(a) // u(b),
    "remui": lambda a, b: u(a) % u(b),
    "ceildivui": lambda a, b: -(-u(a) // u(b)),
}
SHIFTS = {
    "shli": lambda a, b: a << b,
    "shrsi": lambda a, b: a >> b,
    "shrui": lambda a, b: u(a) >> b,
}
INTEGER_CASES = [
    *((name, f, PAIRS) for name, f in ANY.items()),
    *((name, f, [(a, b) for a, b in PAIRS if b and (a, b) != (-128, -1)]) for name, f in NONZERO.items()),
    *((name, f, [(a, b) for a, b in PAIRS if 0 <= b < 8]) for name, f in SHIFTS.items()),
]


@pytest.mark.parametrize(("name", "function", "pairs"), INTEGER_CASES, ids=[case[0] for case in INTEGER_CASES])
def test_i8(elementwise, name, function, pairs):
    a, b = (np.array(column, np.int8) for column in zip(*pairs, strict=True))
    got = elementwise(f"arith.{name} {{0}} : {{types[0]}}", ["i8", "i8"], "i8", a, b)
    assert got.tolist() == [wrap(function(x, y)) for x, y in pairs]


@pytest.mark.parametrize("name", ["addi", "muli", "subi", "xori", "andi", "ori", "maxsi", "minsi", "maxui", "minui"])
def test_i1_is_one_bit_two_complement(elementwise, name):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    got = elementwise(f"arith.{name} {{0}} : {{types[0]}}", ["i1", "i1"], "i1", a, b)
    expected = {
        "addi": a ^ b,
        "subi": a ^ b,
        "xori": a ^ b,
        "muli": a & b,
        "andi": a & b,
        "maxsi": a & b,  # true is -1
        "minui": a & b,
    }.get(name, a | b)
    assert got.dtype == np.bool_
    assert got.tolist() == expected.tolist()


def test_division_by_zero_is_reported(elementwise):
    with pytest.raises(InterpreterError, match="division by zero"):
        elementwise("arith.divsi {0} : {types[0]}", ["i32", "i32"], "i32", np.int32([1]), np.int32([0]))


NAN = math.nan
FLOATS = np.array([1.5, -2.25, 0.0, np.inf, -np.inf, NAN, 3.0], np.float32)
OTHER = np.array([NAN, 0.5, -1.0, np.inf, 2.0, NAN, 2.0], np.float32)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("remf", np.fmod),
        ("maximumf", np.maximum),
        ("minimumf", np.minimum),
        ("maxnumf", np.fmax),
        ("minnumf", np.fmin),
    ],
)
@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_floats(elementwise, name, function, type_):
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}[type_]
    a, b = FLOATS.astype(dtype), OTHER.astype(dtype)
    got = elementwise(f"arith.{name} {{0}} : {{types[0]}}", [type_, type_], type_, a, b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got.astype(np.float64), function(a, b).astype(np.float64))
    assert got.dtype == dtype


def test_max_propagates_nan_and_maxnum_does_not(elementwise):
    args = (["f32", "f32"], "f32", np.float32([NAN, 1]), np.float32([1, NAN]))
    assert np.isnan(elementwise("arith.maximumf {0} : {types[0]}", *args)).all()
    assert elementwise("arith.maxnumf {0} : {types[0]}", *args).tolist() == [1, 1]


PREDICATES = {
    "oeq": lambda a, b: a == b,
    "ogt": lambda a, b: a > b,
    "oge": lambda a, b: a >= b,
    "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b,
    "one": lambda a, b: a < b or a > b,
    "ord": lambda a, b: a == a and b == b,
    "ueq": lambda a, b: not (a < b or a > b),
    "ugt": lambda a, b: not a <= b,
    "uge": lambda a, b: not a < b,
    "ult": lambda a, b: not a >= b,
    "ule": lambda a, b: not a > b,
    "une": lambda a, b: a != b,
    "uno": lambda a, b: a != a or b != b,
    "false": lambda a, b: False,
    "true": lambda a, b: True,
}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_cmpf(elementwise, predicate):
    got = elementwise(f"arith.cmpf {predicate}, {{0}} : {{types[0]}}", ["f32", "f32"], "i1", FLOATS, OTHER)
    expected = [PREDICATES[predicate](x, y) for x, y in zip(FLOATS.tolist(), OTHER.tolist(), strict=True)]
    assert got.tolist() == expected


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_cmpi(elementwise, predicate):
    a, b = (np.array(column, np.int8) for column in zip(*PAIRS, strict=True))
    got = elementwise(f"arith.cmpi {predicate}, {{0}} : {{types[0]}}", ["i8", "i8"], "i1", a, b)
    view = u if predicate.startswith("u") else int
    function = getattr(operator, predicate.lstrip("su") if predicate not in ("eq", "ne") else predicate)
    assert got.tolist() == [function(view(x), view(y)) for x, y in PAIRS]
