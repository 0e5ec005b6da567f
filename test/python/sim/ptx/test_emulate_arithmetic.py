# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opcodes against plain Python: integers of any size, Fractions where roundings matter."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from emulation import kernel_text, run

N = 64
RNG = np.random.default_rng(7)
HEAD = """
mov.u32 %r0, %tid.x;
mul.wide.u32 %d10, %r0, 8;
ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; ld.param.u64 %d2, [p2]; ld.param.u64 %d3, [p3];
add.s64 %d0, %d0, %d10; add.s64 %d1, %d1, %d10; add.s64 %d2, %d2, %d10; add.s64 %d3, %d3, %d10;
"""


def evaluate(lines: str, dtype, *values) -> np.ndarray:
    """Run lines of PTX that read a, b, c (registers of 64 bits: %d4, %d5, %d6 and halves %r4.. %h4..) and write %d7."""
    slots = []
    for value in (*values, *[np.zeros(N, np.uint64)] * (3 - len(values))):
        slot = np.zeros((N, 8), np.uint8)
        raw = np.ascontiguousarray(value).view(np.uint8).reshape(N, -1)
        slot[:, : raw.shape[1]] = raw
        slots.append(slot.view(np.uint64)[:, 0])
    body = HEAD + "mov.b64 %d7, 0;"
    for number in range(3):
        body += f"ld.global.u64 %d{4 + number}, [%d{number}];"
        body += f"cvt.u32.u64 %r{4 + number}, %d{4 + number}; cvt.u16.u64 %h{4 + number}, %d{4 + number};\n"
    body += lines + "\nst.global.u64 [%d3], %d7;"
    out = run(kernel_text(body, parameters=4, threads=N), *slots, np.zeros(N, np.uint64))[3]
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(out.view(np.uint8).reshape(N, 8)[:, :size]).view(dtype)[:, 0]


def wide(bits: int) -> str:
    """Bring the result of so many bits to %d7."""
    return {64: "", 32: "cvt.u64.u32 %d7, %r7;", 16: "cvt.u64.u16 %d7, %h7;"}[bits]


def register(bits: int) -> str:
    """The letter of registers of so many bits."""
    return {64: "d", 32: "r", 16: "h"}[bits]


def integers(dtype, count: int = N) -> np.ndarray:
    """Numbers of every size, the ends included."""
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    values >>= RNG.integers(0, info.bits - 1, count).astype(dtype)
    values[:4] = [0, 1, info.max, info.min]
    return values


def wrapped(values, dtype) -> np.ndarray:
    """Python integers as a dtype, modulo its range."""
    bits = np.iinfo(dtype).bits
    unsigned = np.dtype(f"u{bits // 8}")
    return np.array([int(value) & ((1 << bits) - 1) for value in values], unsigned).view(dtype)


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1,
    "rem": lambda a, b: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)) if b else a,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("op", BINARY)
def test_integer_arithmetic(op: str, kind: str) -> None:
    """Against Python's integers, modulo the type's range; division rounds toward zero."""
    bits = int(kind[1:])
    dtype = np.dtype(("u" if kind[0] == "u" else "i") + str(bits // 8))
    a, b = integers(dtype), RNG.permutation(integers(dtype))
    reg = register(bits)
    got = evaluate(f"{op}.{kind} %{reg}7, %{reg}4, %{reg}5;" + wide(bits), dtype, a, b)
    want = wrapped([BINARY[op](int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_high_halves_of_products(kind: str) -> None:
    """mul.hi."""
    bits = int(kind[1:])
    dtype = np.dtype(("u" if kind[0] == "u" else "i") + str(bits // 8))
    a, b = integers(dtype), RNG.permutation(integers(dtype))
    reg = register(bits)
    got = evaluate(f"mul.hi.{kind} %{reg}7, %{reg}4, %{reg}5;" + wide(bits), dtype, a, b)
    np.testing.assert_array_equal(got, wrapped([int(x) * int(y) >> bits for x, y in zip(a, b, strict=True)], dtype))


def test_128_bit_sums_by_carries() -> None:
    """add.cc, addc.cc, addc over three words; madc too."""
    a, b = integers(np.uint64), RNG.permutation(integers(np.uint64))
    lines = """
    mov.b64 {%r10, %r11}, %d4; mov.b64 {%r12, %r13}, %d5;
    add.cc.u32 %r14, %r10, %r12; addc.cc.u32 %r15, %r11, %r13; addc.u32 %r16, 0, 0;
    mov.b64 %d7, {%r15, %r16};
    """
    got = evaluate(lines, np.uint64, a, b)
    want = [(int(x) + int(y)) >> 32 for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got, np.array(want, np.uint64))


@pytest.mark.parametrize(
    ("op", "kind"), [*(("shl", f"b{n}") for n in (16, 32, 64)), *(("shr", k) for k in ("b16", "s32", "u64"))]
)
def test_shifts_clamp(op: str, kind: str) -> None:
    """Amounts beyond the width give 0 or the sign."""
    bits = int(kind[1:])
    dtype = np.dtype(("i" if kind[0] == "s" else "u") + str(bits // 8))
    a, by = integers(dtype), RNG.integers(0, bits + 8, N).astype(np.uint32)
    reg = register(bits)
    got = evaluate(f"{op}.{kind} %{reg}7, %{reg}4, %r5;" + wide(bits), dtype, a, by)
    pairs = zip(a, by, strict=True)
    want = [int(x) << int(s) if op == "shl" else int(x) >> int(s) for x, s in pairs]
    np.testing.assert_array_equal(got, wrapped(want, dtype))


def test_funnel_shift_fields_and_bytes() -> None:
    """shf, bfe, bfi, prmt, lop3, popc, clz, brev."""
    a, b, c = integers(np.uint32), RNG.permutation(integers(np.uint32)), RNG.integers(0, 64, N).astype(np.uint32)
    both = [(int(y) << 32 | int(x), int(s)) for x, y, s in zip(a, b, c, strict=True)]
    got = evaluate("shf.l.wrap.b32 %r7, %r4, %r5, %r6;" + wide(32), np.uint32, a, b, c)
    np.testing.assert_array_equal(got, wrapped([v << (s & 31) >> 32 for v, s in both], np.uint32))
    got = evaluate("shf.r.clamp.b32 %r7, %r4, %r5, %r6;" + wide(32), np.uint32, a, b, c)
    np.testing.assert_array_equal(got, wrapped([v >> min(s, 32) for v, s in both], np.uint32))
    got = evaluate("bfe.s32 %r7, %r4, 5, 9;" + wide(32), np.int32, a)
    np.testing.assert_array_equal(got, [((int(x) >> 5 & 511) ^ 256) - 256 for x in a])
    got = evaluate("bfi.b32 %r7, %r4, %r5, 7, 12;" + wide(32), np.uint32, a, b)
    mask = 4095 << 7
    np.testing.assert_array_equal(got, [int(y) & ~mask | int(x) << 7 & mask for x, y in zip(a, b, strict=True)])
    got = evaluate("prmt.b32 %r7, %r4, %r5, 0xF170;" + wide(32), np.uint32, a, b)
    octets = np.stack([a, b], 1).view(np.uint8)
    want = np.stack([octets[:, 0], octets[:, 7], octets[:, 1], np.where(octets[:, 7] & 128, 255, 0)], 1).astype(
        np.uint8
    )
    np.testing.assert_array_equal(got, want.copy().view(np.uint32)[:, 0])
    got = evaluate("lop3.b32 %r7, %r4, %r5, %r6, 0xCA;" + wide(32), np.uint32, a, b, c)
    np.testing.assert_array_equal(got, a & b | ~a & c)
    got = evaluate("popc.b32 %r7, %r4;" + wide(32), np.uint32, a)
    np.testing.assert_array_equal(got, [int(x).bit_count() for x in a])
    got = evaluate("clz.b32 %r7, %r4;" + wide(32), np.uint32, a)
    np.testing.assert_array_equal(got, [32 - int(x).bit_length() for x in a])
    got = evaluate("brev.b64 %d7, %d4;", np.uint64, a.astype(np.uint64))
    np.testing.assert_array_equal(got, [int(f"{int(x):064b}"[::-1], 2) for x in a])


def test_dot_products_of_bytes() -> None:
    """dp4a with signs."""
    a, b, c = integers(np.uint32), RNG.permutation(integers(np.uint32)), integers(np.int32)
    got = evaluate("dp4a.s32.u32 %r7, %r4, %r5, %r6;" + wide(32), np.int32, a, b, c)
    sums = (a.view(np.int8).reshape(-1, 4).astype(np.int64) * b.view(np.uint8).reshape(-1, 4)).sum(1) + c
    np.testing.assert_array_equal(got, wrapped(sums, np.int32))


def singles(count: int = N) -> np.ndarray:
    """float32 of many magnitudes, with zeros of both signs, ends, subnormals."""
    values = (RNG.standard_normal(count) * np.exp2(RNG.integers(-20, 20, count))).astype(np.float32)
    values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -1e-45]
    return values


def rounded(value: Fraction, mode: str, bits: int = 24, low: int = -149) -> float:
    """A Fraction as the float with so many bits of mantissa, rounded by PTX's mode."""
    if value == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(value))) - bits + 1, low)
    while abs(value) / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    down = math.floor(scaled)
    choice = {"rm": down, "rp": math.ceil(scaled), "rz": math.trunc(scaled), "rn": round(scaled)}[mode]
    return float(Fraction(choice) * Fraction(2) ** exponent)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma"])
def test_float_roundings_are_exact(op: str, mode: str) -> None:
    """Against Fractions: one rounding."""
    a, b, c = (singles()[8:] for _ in range(3))
    a, b, c = (np.concatenate([x, x[:8]]) for x in (a, b, c))
    c[:16] = (-a[:16].astype(np.float64) * b[:16] * (1 + 2.0**-26)).astype(np.float32)
    third = ", %r6" if op == "fma" else ""
    got = evaluate(f"{op}.{mode}.f32 %r7, %r4, %r5{third};" + wide(32), np.float32, a, b, c)
    exact = {
        "add": lambda x, y, z: x + y,
        "sub": lambda x, y, z: x - y,
        "mul": lambda x, y, z: x * y,
        "div": lambda x, y, z: x / y,
        "fma": lambda x, y, z: x * y + z,
    }[op]
    rows = zip(a, b, c, strict=True)
    want = np.array([rounded(exact(*(Fraction(float(v)) for v in row)), mode) for row in rows], np.float32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_directed_roundings_of_doubles(op: str, mode: str) -> None:
    """Against Fractions."""
    a, b = RNG.standard_normal(N), RNG.standard_normal(N)
    got = evaluate(f"{op}.{mode}.f64 %d7, %d4, %d5;", np.float64, a, b)
    exact = {"add": Fraction.__add__, "sub": Fraction.__sub__, "mul": Fraction.__mul__, "div": Fraction.__truediv__}[op]
    want = [rounded(exact(Fraction(x), Fraction(y)), mode, 53, -1074) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got, want)


def test_24_bit_products_masks_and_packs() -> None:
    """mul24, mad24, bmsk, szext, cvt.pack, lop3 with a predicate."""
    a, b, c = integers(np.uint32), RNG.permutation(integers(np.uint32)), RNG.integers(0, 31, N).astype(np.uint32)
    low = [(int(x) & 0xFFFFFF) * (int(y) & 0xFFFFFF) for x, y in zip(a, b, strict=True)]
    got = evaluate("mul24.hi.u32 %r7, %r4, %r5;" + wide(32), np.uint32, a, b)
    np.testing.assert_array_equal(got, wrapped([v >> 16 for v in low], np.uint32))
    got = evaluate("mad24.lo.u32 %r7, %r4, %r5, %r6;" + wide(32), np.uint32, a, b, c)
    np.testing.assert_array_equal(got, wrapped([v + int(z) for v, z in zip(low, c, strict=True)], np.uint32))
    got = evaluate("bmsk.clamp.b32 %r7, %r6, 7;" + wide(32), np.uint32, a, b, c)
    np.testing.assert_array_equal(got, wrapped([0x7F << int(z) for z in c], np.uint32))
    got = evaluate("szext.wrap.s32 %r7, %r4, %r6;" + wide(32), np.int32, a, b, c)
    want = [
        0 if not z else ((int(x) & (1 << int(z)) - 1) ^ (1 << int(z) - 1)) - (1 << int(z) - 1)
        for x, z in zip(a, c, strict=True)
    ]
    np.testing.assert_array_equal(got, want)
    got = evaluate("cvt.pack.sat.s8.s32.b32 %r7, %r4, %r5, 0x1234;" + wide(32), np.uint32, a, b)
    x, y = (np.clip(v.view(np.int32), -128, 127).astype(np.uint8).astype(np.uint32) for v in (a, b))
    np.testing.assert_array_equal(got, x << 8 | y | 0x12340000)
    lines = "setp.eq.u32 %p1, %r4, %r4; lop3.and.b32 %r7|%p0, %r4, %r5, %r6, 0x80, %p1; selp.u64 %d7, 1, 0, %p0;"
    np.testing.assert_array_equal(evaluate(lines, np.uint64, a, b, c), (a & b & c) != 0)


def test_fma_f64_and_bf16_round_once() -> None:
    """float64 through Fractions, bf16 through float64 sums that are exact."""
    a, b, c = (RNG.standard_normal(N) for _ in range(3))
    c[:32] = -a[:32] * b[:32]
    got = evaluate("fma.rn.f64 %d7, %d4, %d5, %d6;", np.float64, a, b, c)
    want = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(got, want)
    h = [x.astype(ml_dtypes.bfloat16) for x in (a, b, c)]
    got = evaluate("fma.rn.bf16 %h7, %h4, %h5, %h6;" + wide(16), ml_dtypes.bfloat16, *h)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(*h, strict=True)]
    np.testing.assert_array_equal(got.astype(np.float64), [rounded(v, "rn", 8, -133) for v in exact])


def test_minimum_of_zeros_and_nan() -> None:
    """-0 is below +0, a number wins against NaN, NaN wins with .NaN."""
    a = np.resize(np.array([0.0, -0.0, np.nan, 1.0, np.nan], np.float32), N)
    b = np.resize(np.array([-0.0, 0.0, 2.0, np.nan, np.nan], np.float32), N)
    got = evaluate("min.f32 %r7, %r4, %r5;" + wide(32), np.float32, a, b)[:5]
    np.testing.assert_array_equal(got, [-0.0, -0.0, 2.0, 1.0, np.nan])
    assert np.signbit(got[:2]).all()
    got = evaluate("max.NaN.f32 %r7, %r4, %r5;" + wide(32), np.float32, a, b)[:5]
    np.testing.assert_array_equal(np.isnan(got), [False, False, True, True, True])
    assert not np.signbit(got[:2]).any()


def test_subnormals_are_flushed_only_by_ftz() -> None:
    """add.f32 keeps them, add.ftz.f32 makes zeros of operands and results."""
    a, b = np.full(N, 1e-40, np.float32), np.zeros(N, np.float32)
    assert (evaluate("add.f32 %r7, %r4, %r5;" + wide(32), np.float32, a, b) == np.float32(1e-40)).all()
    assert (evaluate("add.ftz.f32 %r7, %r4, %r5;" + wide(32), np.float32, a, b) == 0).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_packed_halves(dtype) -> None:
    """Sums, products and fma of pairs."""
    name = "f16x2" if dtype is np.float16 else "bf16x2"
    a, b, c = (RNG.standard_normal(2 * N).astype(dtype) for _ in range(3))
    for op, want in (("add", a + b), ("mul", a * b), ("sub", a - b), ("max", np.maximum(a, b))):
        got = evaluate(f"{op}.{name} %r7, %r4, %r5;" + wide(32), np.uint32, a, b)
        np.testing.assert_array_equal(got.view(dtype), want)
    got = evaluate(f"fma.rn.{name} %r7, %r4, %r5, %r6;" + wide(32), np.uint32, a, b, c).view(dtype)
    wide_sum = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), wide_sum, rtol=2**-8 if name[0] == "b" else 2**-11, atol=1e-7)


#: What PTX documents: the largest error, from argument and result.
BOUNDS = {
    "ex2": lambda x, y: 2**-22.5 * 2 ** np.floor(np.log2(y)),
    "lg2": lambda x, y: 2**-22 * np.where((x > 0.5) & (x < 2), 1, np.abs(y)),
    "sin": lambda x, y: 2**-20.5,
    "cos": lambda x, y: 2**-20.5,
    "tanh": lambda x, y: 2**-11 * np.abs(y),
    "rcp": lambda x, y: 2**-23 * np.abs(y),
    "rsqrt": lambda x, y: 2**-22.9 * y,
    "sqrt": lambda x, y: 2**-23 * y,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_approximations(name: str) -> None:
    """Off by what a GPU may be off, no more, and the same each time."""
    a = np.abs(RNG.standard_normal(N)).astype(np.float32)
    got = evaluate(f"{name}.approx.f32 %r7, %r4;" + wide(32), np.float32, a)
    x = a.astype(np.float64)
    value = {"ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "rsqrt": lambda v: v**-0.5}.get(name) or getattr(
        np, name
    )
    exact = value(x)
    assert np.all(np.abs(got - exact) <= np.maximum(BOUNDS[name](x, exact), np.spacing(np.float32(exact)) / 2))
    if name != "sqrt":  # its bound is half a unit or little more
        assert np.any(got != exact.astype(np.float32))
    np.testing.assert_array_equal(got, evaluate(f"{name}.approx.f32 %r7, %r4;" + wide(32), np.float32, a))


def test_approximations_at_ends() -> None:
    a = np.float32([0.0, np.inf, 1.0, 4.0] * (N // 4))
    for name, want in {"rsqrt": [np.inf, 0, 1, 0.5], "ex2": [1, np.inf, 2, 16], "lg2": [-np.inf, np.inf, 0, 2]}.items():
        got = evaluate(f"{name}.approx.f32 %r7, %r4;" + wide(32), np.float32, a)
        np.testing.assert_array_equal(got, np.float32(want * (N // 4)))


def test_comparisons_with_nan_and_joins() -> None:
    """lt is false for NaN, ltu true; two predicates, joined with a third."""
    a = np.resize(np.array([1.0, 2.0, np.nan, 3.0], np.float32), N)
    b = np.resize(np.array([2.0, 1.0, 1.0, np.nan], np.float32), N)
    for text, want in (
        ("lt", [1, 0, 0, 0]),
        ("ltu", [1, 0, 1, 1]),
        ("ne", [1, 1, 0, 0]),
        ("neu", [1, 1, 1, 1]),
        ("nan", [0, 0, 1, 1]),
    ):
        got = evaluate(f"setp.{text}.f32 %p0, %r4, %r5; selp.b64 %d7, 1, 0, %p0;", np.uint64, a, b)[:4]
        np.testing.assert_array_equal(got, want)
    lines = "setp.gt.f32 %p2, %r4, 0f3FC00000; setp.lt.and.f32 %p0|%p1, %r4, %r5, %p2; selp.u64 %d7, 1, 0, %p1;"
    np.testing.assert_array_equal(evaluate(lines, np.uint64, a, b)[:4], [0, 1, 0, 1])


def test_conversions() -> None:
    """Saturation, rounding to integers, narrow floats, halves of words."""
    a = np.resize(np.array([2.5, -2.5, 3.5, 1e20, -1e20, np.nan, 0.49999997, -7.9], np.float32), N)
    for mode, want in (
        ("rni", [2, -2, 4, 2**31 - 1, -(2**31), 0, 0, -8]),
        ("rzi", [2, -2, 3, 2**31 - 1, -(2**31), 0, 0, -7]),
        ("rmi", [2, -3, 3, 2**31 - 1, -(2**31), 0, 0, -8]),
    ):
        np.testing.assert_array_equal(evaluate(f"cvt.{mode}.s32.f32 %r7, %r4;" + wide(32), np.int32, a)[:8], want)
    got = evaluate("cvt.rzi.u8.f32 %r7, %r4;" + wide(32), np.uint32, a)[:8]
    np.testing.assert_array_equal(got, [2, 0, 3, 255, 0, 0, 0, 0])
    b = RNG.standard_normal(N).astype(np.float32)
    got = evaluate("cvt.rn.bf16x2.f32 %r7, %r4, %r5;" + wide(32), np.uint32, a, b).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got[0::2], b.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(got[1::2].astype(np.float32), a.astype(ml_dtypes.bfloat16).astype(np.float32))
    got = evaluate("cvt.rn.satfinite.e4m3x2.f32 %h7, %r4, %r5;" + wide(16), np.uint16, a, b).view(
        ml_dtypes.float8_e4m3fn
    )
    np.testing.assert_array_equal(got[0::2].astype(np.float32), b.astype(ml_dtypes.float8_e4m3fn).astype(np.float32))
    assert got[1::2].astype(np.float32)[3] == 448.0
    got = evaluate("cvt.rna.tf32.f32 %r7, %r4;" + wide(32), np.float32, b)
    assert (np.abs(got - b) <= np.abs(b) * 2.0**-11).all() and (got.view(np.uint32) & 0x1FFF == 0).all()
    c = integers(np.int64)
    got = evaluate("cvt.rn.f32.s64 %r7, %d4;" + wide(32), np.float32, c)
    np.testing.assert_array_equal(got, c.astype(np.float32))
    got = evaluate("cvt.s64.s8 %d7, %d4;", np.int64, c)
    np.testing.assert_array_equal(got, c.astype(np.int8).astype(np.int64))
    got = evaluate("cvt.rz.f16.f32 %h7, %r4;" + wide(16), np.float16, b)
    want = [rounded(Fraction(float(x)), "rz", 11, -24) for x in b]
    np.testing.assert_array_equal(got.astype(np.float64), want)
