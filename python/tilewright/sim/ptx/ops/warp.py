# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lanes of a warp do together: shfl, vote, match, redux, activemask."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Pair, Sink

_LANES = np.arange(32)


class Warps:
    """The lanes of a step as rows of warps; lanes that do not take part leave gaps."""

    def __init__(self, step, named):
        self.step = step
        self.whole = step.lanes.is_whole(32)
        self.lane = step.ids & 31
        if not self.whole:
            warps = step.lanes.distinct_warps
            self.row = np.searchsorted(warps, step.warps)
            self.here = np.zeros((len(warps), 32), np.bool_)
            self.here[self.row, self.lane] = True
        mine = step.full(named).astype(np.int64) >> self.lane & 1
        if not mine.all():
            step.fail("convergence", "a lane runs the instruction and is not in its member mask", mine == 0)

    def rows(self, values, gap=0):
        """Values of lanes as (warps, 32), with a value for gaps."""
        values = self.step.full(values)
        if self.whole:
            return values.reshape(-1, 32)
        out = np.full(self.here.shape, gap, values.dtype)
        out[self.row, self.lane] = values
        return out

    def lanes(self, rows):
        """(warps, 32) back to lanes."""
        return rows.reshape(-1) if self.whole else rows[self.row, self.lane]

    def each(self, values):
        """One value per warp, for its lanes."""
        return np.repeat(values, 32) if self.whole else values[self.row]

    def missing(self, source):
        """Whether lanes' sources, (warps, 32), are gaps: (n,)."""
        if self.whole:
            return np.zeros(self.step.n, np.bool_)
        return ~self.here[self.row, source[self.row, self.lane]]


def together(ins, decode, place, body):
    """The run function where operand `place` is the member mask: body(step, warps) for lanes of one mask."""
    if ins.has("sync"):
        mask = decode.source(ins.args[place], "u32")
    else:
        mask = lambda step: np.uint32(0xFFFFFFFF)  # noqa: E731

    def run(step):
        named = step.full(mask(step))
        if (named == named[0]).all():
            body(step, Warps(step, named))
            return
        for value in np.unique(named):
            part = step.narrowed(named == value)
            body(part, Warps(part, value))

    run.members = mask
    return run


def result_pair(operand):
    """(result, predicate) of an operand that may be `a|p`."""
    return operand.items if isinstance(operand, Pair) else (operand, Sink())


@opcode("shfl")
def shfl(ins, decode):
    """Exchange between lanes, by the rules of segments and clamping."""
    decode.known("sync", "up", "down", "bfly", "idx", "b32")
    mode = next(part for part in ins.parts if part in ("up", "down", "bfly", "idx"))
    target, valid = result_pair(ins.args[0])
    put, put_valid = decode.target(target, "b32"), decode.target(valid, "pred")
    a, b, c = decode.source(ins.args[1], "b32"), decode.source(ins.args[2], "u32"), decode.source(ins.args[3], "u32")

    def run(step, warps):
        value, by = warps.rows(a(step)), warps.rows(b(step)).astype(np.int64) & 31
        control = warps.rows(c(step)).astype(np.int64)
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
        missing = warps.missing(source)
        if missing.any():
            step.fail("convergence", "a lane reads the value of a lane that does not take part", missing)
        put(step, warps.lanes(np.take_along_axis(value, source, axis=1)))
        put_valid(step, warps.lanes(inside))

    return together(ins, decode, 4, run)


def _ballot(value):
    """Bits of (warps, 32) flags."""
    return (value.astype(np.uint64) << _LANES.astype(np.uint64)).sum(-1).astype(np.uint32)


@opcode("vote")
def vote(ins, decode):
    """all, any, uni, ballot over a warp."""
    decode.known("sync", "all", "any", "uni", "ballot", "pred", "b32")
    kind = next(part for part in ins.parts if part in ("all", "any", "uni", "ballot"))
    a, put = decode.source(ins.args[1], "pred"), decode.target(ins.args[0], "b32" if kind == "ballot" else "pred")

    def run(step, warps):
        some = warps.rows(a(step))
        if kind == "ballot":
            return put(step, warps.each(_ballot(some)))
        none = ~some.any(1)
        every = warps.rows(a(step), True).all(1)
        return put(step, warps.each({"all": every, "any": ~none, "uni": every | none}[kind]))

    return together(ins, decode, 2, run)


@opcode("match")
def match(ins, decode):
    """Which lanes hold the same value."""
    decode.known("any", "all", "sync", "b32", "b64")
    target, same = result_pair(ins.args[0])
    put, put_same = decode.target(target, "b32"), decode.target(same, "pred")
    a = decode.source(ins.args[1], decode.type())

    def run(step, warps):
        value, here = warps.rows(a(step)), warps.rows(np.bool_(True))
        bits = _ballot((value[:, :, None] == value[:, None, :]) & here[:, None, :])
        if ins.has("any"):
            return put(step, warps.lanes(bits))
        members = _ballot(here)
        everyone = ((bits == members[:, None]) | ~here).all(1)
        put(step, warps.each(np.where(everyone, members, np.uint32(0))))
        return put_same(step, warps.each(everyone))

    return together(ins, decode, 2, run)


_REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@opcode("redux")
def redux(ins, decode):
    """Reduction over a warp."""
    decode.known("sync", *_REDUCTIONS, "abs", "NaN", decode.type())
    name = decode.type()
    kind = next(part for part in ins.parts if part in _REDUCTIONS)
    compute = _REDUCTIONS[kind]
    if types.is_float(name) and not ins.has("NaN"):
        compute = {"min": np.fmin, "max": np.fmax}.get(kind, compute)
    a, put = decode.source(ins.args[1], name), decode.target(ins.args[0], name)
    absolute, repeats = ins.has("abs"), kind in ("add", "xor")

    def run(step, warps):
        value = warps.rows(a(step))
        if not warps.whole and not repeats:  # gaps repeat a value that takes part
            first = np.take_along_axis(value, warps.here.argmax(1)[:, None], axis=1)
            value = np.where(warps.here, value, first)
        value = np.abs(value) if absolute else value
        put(step, warps.each(compute.reduce(value, axis=1, dtype=value.dtype)))

    return together(ins, decode, 2, run)


@opcode("activemask")
def activemask(ins, decode):
    """The lanes of the warp that run this together."""
    put = decode.target(ins.args[0], "b32")

    def run(step):
        bits = np.zeros(step.machine.lanes // 32, np.uint64)
        np.bitwise_or.at(bits, step.warps, np.uint64(1) << (step.ids & 31).astype(np.uint64))
        put(step, bits[step.warps].astype(np.uint32))

    return run
