# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cvt: between integers and floats of all sizes, packed pairs included."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.sim.ptx.numbers import rounding
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode

_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_MODES = ("rn", "rz", "rm", "rp", "rna")
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2"}
_MAXIMUM = {
    "f16": 65504.0,
    "bf16": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
    "e4m3": 448.0,
    "e5m2": 57344.0,
    "tf32": 3.4028234663852886e38,
}


@opcode("cvt", pure=True)
def cvt(ins, decode):
    """Convert. Conversions to integers saturate; NaN becomes 0."""
    if ins.has("pack"):
        return _pack(ins, decode)
    to, source = ins.parts[-2], ins.parts[-1]
    decode.known(*_INTEGRAL, *_MODES, "ftz", "sat", "relu", "satfinite", to, source)
    if to in _PAIRS:
        return _to_pair(ins, decode, to, source)
    if source in _PAIRS:
        raise decode.unsupported("this conversion is not known")
    if to == "tf32":
        return _to_tf32(ins, decode)
    for name in (to, source):
        if name not in types.NUMPY:
            raise decode.unsupported(f".{name} is not a type that the emulator knows here")
    convert = _scalar(ins, decode, to, source)
    a, put = decode.source(ins.args[1], source), decode.target(ins.args[0], to)
    flush = ins.has("ftz") and source == "f32"
    return lambda step: put(step, convert(rounding.flush(a(step)) if flush else a(step)))


def _pack(ins, decode):
    """Two s32, saturated, into the low bits; what a third operand holds moves up where it is given."""
    decode.known("pack", "sat", "s32", "b32", "u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")
    kind = ins.parts[3]
    bits, signed = int(kind[1:]), kind[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    a, b, put = decode.source(ins.args[1], "s32"), decode.source(ins.args[2], "s32"), decode.target(ins.args[0], "u32")
    rest = decode.source(ins.args[3], "u32") if len(ins.args) > 3 else None
    mask = np.uint64((1 << bits) - 1)

    def run(step):
        x, y = (np.clip(step.full(read(step)).astype(np.int64), low, high).astype(np.uint64) & mask for read in (a, b))
        word = x << np.uint64(bits) | y
        if rest is not None:
            word |= step.full(rest(step)).astype(np.uint64) << np.uint64(2 * bits)
        put(step, word.astype(np.uint32))

    return run


def _scalar(ins, decode, to, source):
    if types.is_float(source):
        return _float_to_float(ins, decode, to, source) if types.is_float(to) else _float_to_integer(ins, to)
    if types.is_float(to):
        return _integer_to_float(ins, decode, to)
    dtype = types.NUMPY[to]
    if ins.has("sat"):
        limits = np.iinfo(dtype)
        from_ = np.iinfo(types.NUMPY[source])
        low, high = max(limits.min, from_.min), min(limits.max, from_.max)
        return lambda x: np.clip(x, low, high).astype(dtype)
    return lambda x: x.astype(dtype)


def _float_to_integer(ins, to):
    integral = next((_INTEGRAL[part] for part in ins.parts if part in _INTEGRAL), np.trunc)
    limits = np.iinfo(types.NUMPY[to])
    # the largest number that float64 and the type both have
    top = float(limits.max) if limits.bits < 64 else float(np.nextafter(float(limits.max), 0))

    def convert(x):
        value = integral(x.astype(np.float64))
        inside = np.clip(np.nan_to_num(value, nan=0.0, posinf=top, neginf=float(limits.min)), float(limits.min), top)
        result = inside.astype(types.NUMPY[to])
        if limits.bits == 64:
            result = np.where(value > top, types.NUMPY[to].type(limits.max), result)
        return result

    return convert


def _integer_to_float(ins, decode, to):
    mode = next((part for part in ins.parts if part in _MODES), "rn")
    dtype = types.NUMPY[to]
    if mode == "rn":
        if to in ("f32", "f64", "f16"):
            return lambda x: x.astype(dtype)
        return lambda x: rounding.narrow(x.astype(np.float64), dtype)
    if to != "f32":
        raise decode.unsupported(f"rounding .{mode} to this type is not known")

    def convert(x):
        wide = x.astype(np.float64)
        lost = x.astype(object) - wide.astype(object) if x.dtype.itemsize == 8 else 0.0
        return rounding.directed(wide, np.asarray(lost, np.float64), mode)

    return convert


def _float_to_float(ins, decode, to, source):
    dtype = types.NUMPY[to]
    integral = next((_INTEGRAL[part] for part in ins.parts if part in _INTEGRAL), None)
    mode = next((part for part in ins.parts if part in _MODES), "rn")
    steps = []
    if integral is not None:
        steps.append(lambda x: integral(x.astype(np.float64)))
    if types.size(to) >= types.size(source):
        steps.append(lambda x: x.astype(dtype))
    elif mode == "rn":
        steps.append(lambda x: rounding.narrow(x.astype(np.float64), dtype))
    elif to == "f32":
        steps.append(lambda x: rounding.directed(x.astype(np.float64), 0.0, mode))
    elif to in ("f16", "bf16"):
        steps.append(lambda x: toward(x.astype(np.float64), dtype, mode))
    else:
        raise decode.unsupported(f"rounding .{mode} to this type is not known")
    steps += _limits(ins, to)

    def convert(x):
        for each in steps:
            x = each(np.asarray(x))
        return x

    return convert


def toward(values: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """float64 rounded in a direction ("rz", "rm", "rp") to a 16-bit float."""
    near = rounding.narrow(values, dtype)
    rest = values - near.astype(np.float64)
    down = {"rm": rest < 0, "rp": np.zeros_like(rest, bool), "rz": (rest < 0) & (values > 0)}[mode]
    up = {"rm": np.zeros_like(rest, bool), "rp": rest > 0, "rz": (rest > 0) & (values < 0)}[mode]
    infinity = dtype.type(np.inf)
    return np.where(down, np.nextafter(near, -infinity), np.where(up, np.nextafter(near, infinity), near)).astype(dtype)


def _limits(ins, to):
    """What .sat, .relu and .satfinite do to the result."""
    dtype = types.NUMPY[to]
    steps = []
    if ins.has("sat"):
        steps.append(
            lambda x: np.where(np.isnan(x), dtype.type(0), np.clip(x, dtype.type(0), dtype.type(1))).astype(dtype)
        )
    if ins.has("relu"):
        steps.append(lambda x: np.where(x > 0, x, np.where(np.isnan(x), x, dtype.type(0))).astype(dtype))
    if ins.has("satfinite") and to in _MAXIMUM:
        top = dtype.type(_MAXIMUM[to])
        steps.append(lambda x: np.where(np.isinf(x), np.copysign(top, x), x).astype(dtype))
    return steps


def to_narrow(values: np.ndarray, name: str, ins) -> np.ndarray:
    """float values to a 16-bit or 8-bit type by the rounding and saturation that an instruction's modifiers say."""
    dtype = types.NUMPY[name]
    wide = values.astype(np.float64)
    if ins.has("relu"):
        wide = np.where(wide > 0, wide, np.where(np.isnan(wide), wide, 0.0))
    if ins.has("satfinite"):
        top = _MAXIMUM[name]
        wide = np.clip(wide, -top, top)
    if ins.has("rz"):
        return toward(wide, dtype, "rz")
    return rounding.narrow(wide, dtype)


def _to_pair(ins, decode, to, source):
    scalar = _PAIRS[to]
    size = types.size(scalar)
    word = f"b{16 * size}"
    put = decode.target(ins.args[0], word)
    if source == "f32":
        high, low = decode.source(ins.args[1], "f32"), decode.source(ins.args[2], "f32")
        flush = ins.has("ftz")

        def run(step):
            pair = np.empty((step.n, 2), np.float32)
            pair[:, 0], pair[:, 1] = low(step), high(step)
            values = to_narrow(rounding.flush(pair) if flush else pair, scalar, ins)
            put(step, np.ascontiguousarray(values).view(types.NUMPY[word])[:, 0])

        return run
    if source not in _PAIRS:
        raise decode.unsupported("this conversion is not known")
    inner, dtype = decode.source(ins.args[1], f"b{16 * types.size(_PAIRS[source])}"), types.NUMPY[_PAIRS[source]]

    def repack(step):
        values = np.ascontiguousarray(step.full(inner(step))).view(dtype).reshape(step.n, 2)
        out = to_narrow(values, scalar, ins)
        put(step, np.ascontiguousarray(out).view(types.NUMPY[word])[:, 0])

    return repack


def _to_tf32(ins, decode):
    """Round float32 to 10 bits of mantissa: to nearest, ties away (rna) or to even (rn), or toward zero."""
    a, put = decode.source(ins.args[1], "f32"), decode.target(ins.args[0], "b32")
    away, zero = ins.has("rna"), ins.has("rz")
    relu = ins.has("relu")

    def run(step):
        value = step.full(a(step))
        bits = value.view(np.uint32)
        if zero:
            rounded = bits
        elif away:
            rounded = bits + np.uint32(0x1000)
        else:
            rounded = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
        result = np.where(np.isfinite(value), rounded & np.uint32(0xFFFFE000), bits)
        put(step, np.where(value > 0, result, np.uint32(0)) if relu else result)

    return run
