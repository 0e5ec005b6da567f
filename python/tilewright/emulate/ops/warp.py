# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lanes of a warp do together: shfl, vote, match, redux, activemask."""

from __future__ import annotations

import numpy as np

from tilewright.emulate import types
from tilewright.emulate.registry import opcode
from tilewright.emulate.syntax import Pair, Sink

_LANES = np.arange(32)


def rows(step, values):
    """Values of whole warps as (warps, 32)."""
    return step.full(values).reshape(-1, 32)


def members(step, read):
    """The lanes that the member mask of each warp names: bool (warps, 32). All that run must be named."""
    mask = rows(step, read(step))[:, :1]
    named = (mask >> _LANES.astype(np.uint32) & np.uint32(1)).astype(bool)
    if not named.all():
        step.fail("convergence", "a lane runs the instruction and is not in its member mask", ~named.ravel())
    return named


def result_pair(operand):
    """(result, predicate) of an operand that may be `a|p`."""
    return operand.items if isinstance(operand, Pair) else (operand, Sink())


@opcode("shfl", sync=32)
def shfl(ins, decode):
    """Exchange between lanes, by the rules of segments and clamping."""
    decode.known("sync", "up", "down", "bfly", "idx", "b32")
    mode = next(part for part in ins.parts if part in ("up", "down", "bfly", "idx"))
    target, valid = result_pair(ins.args[0])
    put, put_valid = decode.target(target, "b32"), decode.target(valid, "pred")
    a, b, c = decode.source(ins.args[1], "b32"), decode.source(ins.args[2], "u32"), decode.source(ins.args[3], "u32")
    mask = decode.source(ins.args[4], "u32") if ins.has("sync") else None

    def run(step):
        if mask is not None:
            members(step, mask)
        value, by, control = (
            rows(step, a(step)),
            rows(step, b(step)).astype(np.int64) & 31,
            rows(step, c(step)).astype(np.int64),
        )
        segment, clamp = control >> 8 & 31, control & 31
        highest = (_LANES & segment) | (clamp & ~segment)
        lowest = _LANES & segment
        if mode == "up":
            source = _LANES - by
            inside = source >= highest
        elif mode == "down":
            source = _LANES + by
            inside = source <= highest
        elif mode == "bfly":
            source = _LANES ^ by
            inside = source <= highest
        else:
            source = lowest | (by & ~segment)
            inside = source <= highest
        source = np.where(inside, source, _LANES)
        put(step, np.take_along_axis(value, source, axis=1).ravel())
        put_valid(step, inside.ravel())

    return run


@opcode("vote", sync=32)
def vote(ins, decode):
    """all, any, uni, ballot over a warp."""
    decode.known("sync", "all", "any", "uni", "ballot", "pred", "b32")
    kind = next(part for part in ins.parts if part in ("all", "any", "uni", "ballot"))
    a, put = decode.source(ins.args[1], "pred"), decode.target(ins.args[0], "b32" if kind == "ballot" else "pred")
    mask = decode.source(ins.args[2], "u32") if ins.has("sync") else None

    def run(step):
        if mask is not None:
            members(step, mask)
        value = rows(step, a(step))
        if kind == "ballot":
            bits = (value.astype(np.uint64) << _LANES.astype(np.uint64)).sum(1).astype(np.uint32)
            return put(step, np.repeat(bits, 32))
        answer = {"all": value.all(1), "any": value.any(1), "uni": value.all(1) | ~value.any(1)}[kind]
        return put(step, np.repeat(answer, 32))

    return run


@opcode("match", sync=32)
def match(ins, decode):
    """Which lanes hold the same value."""
    decode.known("any", "all", "sync", "b32", "b64")
    target, same = result_pair(ins.args[0])
    put, put_same = decode.target(target, "b32"), decode.target(same, "pred")
    a, mask = decode.source(ins.args[1], decode.type()), decode.source(ins.args[2], "u32")

    def run(step):
        members(step, mask)
        value = rows(step, a(step))
        equal = value[:, :, None] == value[:, None, :]
        bits = (equal.astype(np.uint64) << _LANES.astype(np.uint64)).sum(2).astype(np.uint32)
        if ins.has("any"):
            return put(step, bits.ravel())
        everyone = equal.all((1, 2))
        put(step, np.repeat(np.where(everyone, np.uint32(0xFFFFFFFF), np.uint32(0)), 32))
        return put_same(step, np.repeat(everyone, 32))

    return run


@opcode("redux", sync=32)
def redux(ins, decode):
    """Reduction over a warp."""
    decode.known("sync", "add", "min", "max", "and", "or", "xor", "abs", "NaN", decode.type())
    name = decode.type()
    kind = next(part for part in ins.parts if part in ("add", "min", "max", "and", "or", "xor"))
    compute = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[kind]
    if types.is_float(name) and not ins.has("NaN"):
        compute = {"min": np.fmin, "max": np.fmax}.get(kind, compute)
    a, put, mask = decode.source(ins.args[1], name), decode.target(ins.args[0], name), decode.source(ins.args[2], "u32")
    absolute = ins.has("abs")

    def run(step):
        members(step, mask)
        value = rows(step, a(step))
        value = np.abs(value) if absolute else value
        put(step, np.repeat(compute.reduce(value, axis=1, dtype=value.dtype), 32))

    return run


@opcode("activemask")
def activemask(ins, decode):
    """The lanes of the warp that run this together."""
    put = decode.target(ins.args[0], "b32")

    def run(step):
        bits = np.zeros(step.machine.lanes // 32, np.uint64)
        np.bitwise_or.at(bits, step.warps, np.uint64(1) << (step.ids & 31).astype(np.uint64))
        put(step, bits[step.warps].astype(np.uint32))

    return run
