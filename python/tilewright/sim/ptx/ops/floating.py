# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point arithmetic with PTX's roundings: add, sub, mul, fma, div, min, max, abs, neg, copysign."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.numbers import rounding
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode

_TYPES = ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "f32x2")
_ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rni")


def is_float_op(ins) -> bool:
    """Whether the type of an instruction is a floating-point type."""
    return ins.parts[-1] in _TYPES


class Lanes:
    """How values of a type are read and written: packed types as twice as many scalars."""

    def __init__(self, ins, decode) -> None:
        self.name = ins.parts[-1]
        self.packed = self.name.endswith("x2")
        self.scalar = self.name.removesuffix("x2")
        if self.scalar not in types.NUMPY:
            raise decode.unsupported(f"type .{self.name} is not known here")
        self.dtype = types.NUMPY[self.scalar]
        self.word = f"b{16 * self.dtype.itemsize}" if self.packed else self.name
        self.ftz = ins.has("ftz") and self.scalar in ("f32", "f16")
        self.sat = ins.has("sat")
        self.relu = ins.has("relu")
        self.decode = decode

    def read(self, operand):
        """A reader of scalars: (n,), or (2 n,) of a packed type."""
        inner = self.decode.source(operand, self.word)
        if self.packed:

            def read(step):
                return np.ascontiguousarray(step.full(inner(step))).view(self.dtype)
        else:
            read = inner
        return (lambda step: rounding.flush(read(step))) if self.ftz else read

    def write(self, operand):
        """A writer of what `read` gives, saturated or flushed as the mnemonic says."""
        inner = self.decode.target(operand, self.word)
        dtype, word = self.dtype, types.NUMPY[self.word]

        def write(step, values):
            if values.dtype != dtype:
                values = values.astype(dtype)
            if self.ftz:
                values = rounding.flush(values)
            if self.sat:
                values = np.where(
                    np.isnan(values), dtype.type(0), np.clip(values, dtype.type(0), dtype.type(1))
                ).astype(dtype)
            if self.relu:
                values = np.where(values > 0, values, dtype.type(0)).astype(dtype)
            inner(step, values.view(word) if self.packed else values)

        return write


def _modifiers(ins, decode, *more):
    decode.known("ftz", "sat", "rn", "rz", "rm", "rp", "approx", "full", "relu", ins.parts[-1], *more)
    return next((part for part in ins.parts if part in _ROUNDINGS), "rn")


def float_binary(ins, decode):
    """Decode add, sub, mul, div, min, max, mad of floats."""
    head = ins.parts[0]
    mode = _modifiers(ins, decode, "NaN", "xorsign", "abs")
    if head == "mad":
        return fma(ins, decode)
    lanes = Lanes(ins, decode)
    if head in ("min", "max"):
        return _extreme(ins, decode, lanes)
    a, b, put = lanes.read(ins.args[1]), lanes.read(ins.args[2]), lanes.write(ins.args[0])
    if mode != "rn":
        if lanes.scalar not in ("f32", "f64"):
            raise decode.unsupported(f"rounding .{mode} of this type is not known")
        compute = (rounding.DIRECTED if lanes.scalar == "f32" else rounding.DIRECTED64)[head]
        return lambda step: put(step, compute(step.full(a(step)), step.full(b(step)), mode))
    plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[head]
    return lambda step: put(step, plain(a(step), b(step)))


def _extreme(ins, decode, lanes):
    least = ins.parts[0] == "min"
    operands = [lanes.read(arg) for arg in ins.args[1:]]
    put = lanes.write(ins.args[0])
    keep_nan, xorsign, absolute = ins.has("NaN"), ins.has("xorsign"), ins.has("abs")

    def run(step):
        values = [step.full(read(step)) for read in operands]
        result = np.abs(values[0]) if absolute else values[0]
        for value in values[1:]:
            result = rounding.extreme(result, np.abs(value) if absolute else value, least, keep_nan)
        if xorsign:
            sign = np.signbit(values[0]) ^ np.signbit(values[1])
            result = np.copysign(result, np.where(sign, -1, 1).astype(result.dtype))
        put(step, result)

    return run


@opcode("fma", pure=True)
def fma(ins, decode):
    """Product and sum with one rounding."""
    mode = _modifiers(ins, decode, "oob")
    if ins.has("oob"):
        raise decode.unsupported("modifier .oob is not known")
    lanes = Lanes(ins, decode)
    a, b, c = (lanes.read(arg) for arg in ins.args[1:4])
    put = lanes.write(ins.args[0])
    compute = rounding.fma(lanes.scalar, mode)
    if compute is None:
        raise decode.unsupported(f"rounding .{mode} of this type is not known")
    return lambda step: put(step, compute(a(step), b(step), c(step)))


def float_unary(ins, decode):
    """Decode abs and neg of floats: the sign bit alone changes."""
    _modifiers(ins, decode)
    lanes = Lanes(ins, decode)
    a, put = lanes.read(ins.args[1]), lanes.write(ins.args[0])
    compute = np.abs if ins.parts[0] == "abs" else np.negative
    return lambda step: put(step, compute(a(step)))


@opcode("copysign", pure=True)
def copysign(ins, decode):
    """The second operand with the sign of the first."""
    lanes = Lanes(ins, decode)
    a, b, put = lanes.read(ins.args[1]), lanes.read(ins.args[2]), lanes.write(ins.args[0])
    return lambda step: put(step, np.copysign(b(step), a(step)))


@opcode("testp", pure=True)
def testp(ins, decode):
    """Which kind of number a float is."""
    name = decode.type()
    a, put = decode.source(ins.args[1], name), decode.target(ins.args[0], "pred")
    tiny = np.finfo(types.NUMPY[name]).tiny
    kinds = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny),
        "subnormal": lambda x: (x != 0) & (np.abs(x) < tiny),
    }
    if ins.parts[1] not in kinds:
        raise decode.unsupported("this test is not known")
    test = kinds[ins.parts[1]]
    return lambda step: put(step, test(a(step)))
