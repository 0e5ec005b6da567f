# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg, sad, with carries."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.ops.floating import float_binary, float_unary, is_float_op
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


@opcode("add", "sub", pure=True)
def add(ins, decode):
    """Sum or difference; `.cc` writes the carry, `.sat` clamps s32."""
    if is_float_op(ins):
        return float_binary(ins, decode)
    decode.known("sat", "cc", decode.type())
    name = decode.type()
    if name in types.PACKED:
        return _packed(ins, decode, np.add if ins.parts[0] == "add" else np.subtract)
    if ins.has("cc"):
        return _carry(ins, decode, ins.parts[0] == "sub", False)
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)
    compute = np.add if ins.parts[0] == "add" else np.subtract
    if ins.has("sat"):
        limits = np.iinfo(np.int32)
        return lambda step: put(
            step,
            np.clip(compute(a(step).astype(np.int64), b(step).astype(np.int64)), limits.min, limits.max).astype(
                np.int32
            ),
        )
    return lambda step: put(step, compute(a(step), b(step)))


@opcode("addc", "subc", pure=True)
def addc(ins, decode):
    """Sum or difference with the carry."""
    decode.known("cc", decode.type())
    return _carry(ins, decode, ins.parts[0] == "subc", True)


def _carry(ins, decode, minus, uses):
    name = f"u{8 * types.size(decode.type())}"
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)
    writes = ins.has("cc")
    dtype = types.NUMPY[name]

    def run(step):
        x, y = step.full(a(step)), step.full(b(step))
        if minus:
            y = ~y
        carry = step.machine.carry[step.sel] if uses else np.full(step.n, minus)
        total = x + y
        result = total + carry.astype(dtype)
        put(step, result)
        if writes:
            step.machine.carry[step.sel] = (total < x) | (result < total)

    return run


@opcode("mul", "mul24", pure=True)
def mul(ins, decode):
    """Product: `.lo`, `.hi`, `.wide`, or of floats."""
    if is_float_op(ins):
        return float_binary(ins, decode)
    decode.known("lo", "hi", "wide", decode.type())
    product = _product24(ins, decode) if ins.parts[0] == "mul24" else _product(ins, decode)
    put = decode.target(ins.args[0], _result(ins, decode))
    return lambda step: put(step, product(step))


def _result(ins, decode):
    return _WIDE[decode.type()] if ins.has("wide") else decode.type()


def _product(ins, decode):
    name = decode.type()
    a, b = decode.source(ins.args[1], name), decode.source(ins.args[2], name)
    if ins.has("wide"):
        dtype = types.NUMPY[_WIDE[name]]
        return lambda step: np.multiply(step.full(a(step)), b(step), dtype=dtype)
    if not ins.has("hi"):
        return lambda step: a(step) * b(step)
    if types.size(name) == 8:
        signed = types.is_signed(name)
        return lambda step: _high64(step.full(a(step)), step.full(b(step)), signed)
    dtype, narrow = types.NUMPY[_WIDE[name]], types.NUMPY[name]
    shift = dtype.type(8 * types.size(name))
    return lambda step: (np.multiply(step.full(a(step)), b(step), dtype=dtype) >> shift).astype(narrow)


def _product24(ins, decode):
    """Product of the low 24 bits: its low or (.hi) its bits 16 to 47."""
    name = decode.type()
    a, b = decode.source(ins.args[1], name), decode.source(ins.args[2], name)
    dtype = types.NUMPY[_WIDE[name]]
    shift, by = np.array(dtype.itemsize * 8 - 24).astype(dtype), np.array(16 if ins.has("hi") else 0).astype(dtype)

    def run(step):
        x, y = ((step.full(read(step)).astype(dtype) << shift) >> shift for read in (a, b))
        return ((x * y) >> by).astype(types.NUMPY[name])

    return run


def _high64(x, y, signed):
    ux, uy = x.view(np.uint64), y.view(np.uint64)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1, y0, y1 = ux & low, ux >> half, uy & low, uy >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if signed:
        high = high - np.where(x < 0, uy, np.uint64(0)) - np.where(y < 0, ux, np.uint64(0))
        return high.view(np.int64)
    return high


@opcode("mad", "mad24", "madc", pure=True)
def mad(ins, decode):
    """Product plus a third operand."""
    if is_float_op(ins):
        return float_binary(ins, decode)
    decode.known("lo", "hi", "wide", "cc", "sat", decode.type())
    name = _result(ins, decode)
    product = _product24(ins, decode) if ins.parts[0] == "mad24" else _product(ins, decode)
    third = decode.source(ins.args[3], name)
    put = decode.target(ins.args[0], name)
    if ins.has("sat"):  # .hi.s32 only
        limits = np.iinfo(np.int32)
        return lambda step: put(
            step,
            np.clip(product(step).astype(np.int64) + third(step), limits.min, limits.max).astype(np.int32),
        )
    if not ins.has("cc") and ins.parts[0] != "madc":
        return lambda step: put(step, product(step) + third(step))
    word = types.WORDS[types.size(name)]
    uses, writes = ins.parts[0] == "madc", ins.has("cc")

    def run(step):
        x, y = step.full(product(step)).view(word), step.full(third(step)).view(word)
        total = x + y
        result = total + step.machine.carry[step.sel].astype(word) if uses else total
        put(step, result)
        if writes:
            step.machine.carry[step.sel] = (total < x) | (result < total)

    return run


def truncated(x, y):
    """Quotient rounded toward zero; divisor 0 gives all ones, as the hardware does."""
    zero = y == 0
    safe = np.where(zero, y.dtype.type(1), y)
    quotient = x // safe
    if x.dtype.kind == "i":
        quotient = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return quotient, zero


@opcode("div", pure=True)
def div(ins, decode):
    """Quotient; integers round toward zero."""
    if is_float_op(ins):
        return float_binary(ins, decode)
    decode.known(decode.type())
    name = decode.type()
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)
    ones = np.array(-1).astype(types.NUMPY[name])

    def run(step):
        quotient, zero = truncated(step.full(a(step)), step.full(b(step)))
        if zero.any():
            if step.check("arithmetic"):
                step.fail("arithmetic", "an integer is divided by zero", zero)
            quotient = np.where(zero, ones, quotient)
        put(step, quotient)

    return run


@opcode("rem", pure=True)
def rem(ins, decode):
    """Remainder with the dividend's sign."""
    decode.known(decode.type())
    name = decode.type()
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)

    def run(step):
        x, y = step.full(a(step)), step.full(b(step))
        quotient, zero = truncated(x, y)
        if zero.any() and step.check("arithmetic"):
            step.fail("arithmetic", "the remainder of an integer divided by zero", zero)
        put(step, np.where(zero, x, x - quotient * y))

    return run


@opcode("min", "max", pure=True)
def minimum(ins, decode):
    """Smaller or larger value."""
    if is_float_op(ins):
        return float_binary(ins, decode)
    compute = np.minimum if ins.parts[0] == "min" else np.maximum
    name = decode.type()
    decode.known("relu", name)
    if name in types.PACKED:
        return _packed(ins, decode, compute)
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)
    relu = ins.has("relu")

    def run(step):
        value = compute(a(step), b(step))
        put(step, np.maximum(value, value.dtype.type(0)) if relu else value)

    return run


def _packed(ins, decode, compute):
    dtype = types.NUMPY[types.PACKED[decode.type()]]
    a, b, put = decode.source(ins.args[1], "u32"), decode.source(ins.args[2], "u32"), decode.target(ins.args[0], "u32")

    def run(step):
        x, y = (np.ascontiguousarray(step.full(read(step))).view(dtype) for read in (a, b))
        put(step, compute(x, y).view(np.uint32))

    return run


@opcode("abs", "neg", pure=True)
def unary(ins, decode):
    """Absolute value, negative."""
    if is_float_op(ins):
        return float_unary(ins, decode)
    name = decode.type()
    decode.known(name)
    a, put = decode.source(ins.args[1], name), decode.target(ins.args[0], name)
    compute = np.abs if ins.parts[0] == "abs" else np.negative
    return lambda step: put(step, compute(a(step)))


@opcode("sad", pure=True)
def sad(ins, decode):
    """Sum of the absolute difference and a third operand."""
    name = decode.type()
    decode.known(name)
    a, b, c = (decode.source(arg, name) for arg in ins.args[1:4])
    put = decode.target(ins.args[0], name)

    def run(step):
        x, y = a(step), b(step)
        put(step, np.where(x < y, y - x, x - y) + c(step))

    return run
