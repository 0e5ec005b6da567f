# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars of a host program, which integers of Python are, compute what the table says of NumPy values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.core.arithmetic import COMPARISONS, CONVERSIONS, PREDICATES, SIGN_EXTENDING, ZERO_EXTENDING
from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UnsupportedError
from tilewright.core.integers import INTEGER, SIGNED, UNSIGNED
from tilewright.runtime.gpu.host_scalars import function

SAMPLES = {
    "i1": [False, True],
    "i8": [-128, -127, -7, -1, 0, 1, 2, 7, 8, 9, 127],
    "i64": [-(2**63), -3, 0, 2, 2**63 - 1],
}


def both(name: str, kind: str, operands: tuple) -> None:
    """A number of Python and a NumPy scalar: the same value, or the same division by zero."""
    values = [of_mlir(kind).type(x) for x in operands]
    with np.errstate(all="ignore"):
        expected = INTEGER[name](*values)
    found = function(name, kind, kind)(*operands)
    assert found == expected, f"{name} {operands}"
    assert isinstance(found, bool if kind == "i1" else int)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_numbers_and_arrays_agree(name: str, kind: str) -> None:
    if name == "math.absi":
        for x in SAMPLES[kind]:
            both(name, kind, (x,))
        return
    shift = name.startswith("arith.sh")
    for a, b in itertools.product(SAMPLES[kind], repeat=2):
        undefined = b == 0 and ("div" in name or "rem" in name)
        if not undefined and not (shift and kind == "i1"):  # a width of 8 stands for that of an i1 in arrays
            both(name, kind, (a, b))


@pytest.mark.parametrize("predicate", PREDICATES["arith.cmpi"])
def test_comparisons_agree(predicate: str) -> None:
    for kind, samples in SAMPLES.items():
        for a, b in itertools.product(samples, repeat=2):
            expected = COMPARISONS["arith.cmpi"](predicate, of_mlir(kind).type(a), of_mlir(kind).type(b))
            assert function("arith.cmpi", kind, "i1", predicate)(a, b) == expected


@pytest.mark.parametrize("name", [n for n in (*SIGN_EXTENDING, *ZERO_EXTENDING) if n.startswith("arith.")])
@pytest.mark.parametrize("to", ["i1", "i8", "i32", "index"])
def test_conversions_agree(name: str, to: str) -> None:
    for kind, samples in SAMPLES.items():
        for x in samples:
            expected = CONVERSIONS[name](of_mlir(kind).type(x), of_mlir(to))
            assert function(name, kind, to)(x) == expected


def test_zeros_have_signs() -> None:
    """IEEE 754-2019: -0 is below +0 (NumPy leaves it open)."""
    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        assert not np.signbit(function("arith.maximumf", "f32", "f32")(a, b))
        assert np.signbit(function("arith.minimumf", "f32", "f32")(a, b))
    assert np.signbit(function("arith.maximumf", "f64", "f64")(-0.0, -0.0))
    assert not np.signbit(function("arith.minimumf", "f64", "f64")(0.0, 0.0))


def test_unknown_operations_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"no scalar operation arith\.mulsi_extended"):
        function("arith.mulsi_extended", "i32", "i32")
