# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hopper's accumulators for float8, beside the definition in exact fractions, and what is published of them."""

from fractions import Fraction
from math import floor, frexp

import ml_dtypes
import numpy as np
import pytest

from tilewright.sim.ptx.numbers.short_sums import HOPPER_FLOAT8, short_sums

DTYPES = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
LEAST = {"e4m3": -6, "e5m2": -14, "f32": -126}
BITS = HOPPER_FLOAT8


def values(kind, shape, rng, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(DTYPES[kind]).astype(np.float32)


def exponent(x, kind):
    return max(frexp(x)[1] - 1, LEAST[kind])


def cut(x, last):
    """Toward zero to a multiple of 2^last."""
    unit = Fraction(2) ** last
    return unit * (floor(abs(x) / unit) * (1 if x > 0 else -1))


def one_sum(a, b, c, kinds):
    """The definition, for one element."""
    terms = [
        (Fraction(float(x)) * Fraction(float(y)), exponent(x, kinds[0]) + exponent(y, kinds[1]))
        for x, y in zip(a, b, strict=True)
        if x and y
    ]
    if c:
        terms.append((Fraction(float(c)), exponent(c, "f32")))
    if not terms:
        return 0.0
    top = max(e for _, e in terms)
    total = sum(cut(x, top - BITS) for x, _ in terms)
    return float(cut(total, frexp(float(total))[1] - 1 - BITS)) if total else 0.0


@pytest.mark.parametrize("kinds", [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2")])
@pytest.mark.parametrize("scale", [1.0, 2.0**-7, 30.0])
def test_it_is_the_definition(kinds, scale):
    rng = np.random.default_rng(17)
    a, b = values(kinds[0], (6, 32), rng, scale), values(kinds[1], (32, 5), rng)
    a[0], a[1, ::2] = 0, 0
    c = (20 * rng.standard_normal((6, 5))).astype(np.float32)
    c[:, 0], c[:, 1] = 0, c[:, 1] * 2.0**-30
    got = short_sums(a, b, c, kinds, BITS, True)
    want = [[one_sum(a[m], b[:, n], c[m, n], kinds) for n in range(5)] for m in range(6)]
    np.testing.assert_array_equal(got, np.float32(want))


def test_batches_are_multiplied_one_by_one():
    rng = np.random.default_rng(3)
    a, b, c = values("e4m3", (2, 4, 32), rng), values("e4m3", (2, 32, 8), rng), None
    both = short_sums(a, b, c, ("e4m3", "e4m3"), BITS, True)
    for i in range(2):
        np.testing.assert_array_equal(both[i], short_sums(a[i], b[i], c, ("e4m3", "e4m3"), BITS, True))


def test_ten_bits_of_what_is_added_are_lost():
    """SageAttention2, section 3.4: with zeros for A and B the sum loses the last 10 bits of its 23."""
    zeros = np.zeros((1, 32), np.float32), np.zeros((32, 2), np.float32)
    c = np.array([[1 + 2.0**-13, -1 - 2.0**-13 - 2.0**-14]], np.float32)
    got = short_sums(*zeros, c, ("e4m3", "e4m3"), BITS, True)
    np.testing.assert_array_equal(got, [[1 + 2.0**-13, -1 - 2.0**-13]])
    assert short_sums(*zeros, c * 2.0**-120, ("e4m3", "e4m3"), BITS, True)[0, 0] == c[0, 0] * 2.0**-120


def test_numbers_that_are_none_stay_so():
    a, b = np.ones((3, 32), np.float32), np.ones((32, 1), np.float32)
    a[0, 3], a[1, 4] = np.nan, np.inf
    with np.errstate(all="ignore"):
        got = short_sums(a, b, None, ("e5m2", "e5m2"), BITS, True)[:, 0]
    assert np.isnan(got[0]) and np.isinf(got[1]) and got[2] == 32


def relative_error(depth, interval, draw):
    """Largest error over largest result of sums of products of `depth`, promoted every `interval` terms (0: never)."""
    rng = np.random.default_rng(depth)
    a, b = (draw(rng, shape).astype(DTYPES["e4m3"]).astype(np.float32) for shape in ((32, depth), (depth, 16)))
    total, part = np.zeros((32, 16), np.float32), None
    for k in range(0, depth, 32):
        part = short_sums(a[:, k : k + 32], b[k : k + 32], part, ("e4m3", "e4m3"), BITS, True)
        if (interval and (k + 32) % interval == 0) or k + 32 == depth:
            total, part = total + part, None
    want = a.astype(np.float64) @ b.astype(np.float64)
    return np.abs(total - want).max() / np.abs(want).max()


@pytest.mark.parametrize(
    "draw, errors",
    [(np.random.Generator.standard_normal, (4e-4, 1.2e-3, 3e-3)), (np.random.Generator.random, (5e-3, 5e-2, 0.2))],
)
def test_errors_grow_with_the_depth_unless_sums_are_promoted(draw, errors):
    """Without promotion the sum's own exponent cuts the products; positive ones lose all that is cut."""
    found = [relative_error(depth, 0, draw) for depth in (512, 4096, 16384)]
    promoted = [relative_error(depth, 128, draw) for depth in (512, 4096, 16384)]
    assert all(least < one < 3 * least for least, one in zip(errors, found, strict=True)), found
    assert max(promoted) < 8e-4 and promoted[2] < 1.2 * promoted[0], promoted
