# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logic, shifts, fields of bits, permutations of bytes, counts, small dot products."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Pair

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _bits(name: str) -> str:
    return "pred" if name == "pred" else f"u{8 * types.size(name)}"


@opcode("and", "or", "xor", pure=True)
def logic(ins, decode):
    """Bitwise logic, of predicates too."""
    name = _bits(decode.type())
    decode.known(decode.type())
    a, b, put = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.target(ins.args[0], name)
    compute = _LOGIC[ins.parts[0]]
    return lambda step: put(step, compute(a(step), b(step)))


@opcode("not", "cnot", pure=True)
def invert(ins, decode):
    """Bitwise complement; `cnot` is 1 for 0, else 0."""
    name = _bits(decode.type())
    decode.known(decode.type())
    a, put = decode.source(ins.args[1], name), decode.target(ins.args[0], name)
    if ins.parts[0] == "cnot":
        return lambda step: put(step, (a(step) == 0).astype(types.NUMPY[name]))
    return lambda step: put(step, ~a(step))


@opcode("shl", "shr", pure=True)
def shift(ins, decode):
    """Shifts; amounts from the width on give 0, or the sign."""
    name = decode.type()
    decode.known(name)
    name = name.replace("b", "u")
    dtype = types.NUMPY[name]
    width = 8 * dtype.itemsize
    a, amount, put = (
        decode.source(ins.args[1], name),
        decode.source(ins.args[2], "u32"),
        decode.target(ins.args[0], name),
    )
    if ins.parts[0] == "shl":

        def left(step):
            by = amount(step)
            value = a(step) << np.minimum(by, width - 1).astype(dtype)
            put(step, np.where(by < width, value, dtype.type(0)))

        return left
    if dtype.kind == "i":
        return lambda step: put(step, a(step) >> np.minimum(amount(step), width - 1).astype(dtype))

    def right(step):
        by = amount(step)
        value = a(step) >> np.minimum(by, width - 1).astype(dtype)
        put(step, np.where(by < width, value, dtype.type(0)))

    return right


@opcode("shf", pure=True)
def funnel(ins, decode):
    """Funnel shift of two words."""
    decode.known("l", "r", "clamp", "wrap", "b32")
    low, high, amount = (decode.source(arg, "u32") for arg in ins.args[1:4])
    put = decode.target(ins.args[0], "u32")
    wrap, left = ins.has("wrap"), ins.has("l")

    def run(step):
        by = step.full(amount(step)).astype(np.uint64)
        by = by & np.uint64(31) if wrap else np.minimum(by, np.uint64(32))
        both = step.full(high(step)).astype(np.uint64) << np.uint64(32) | step.full(low(step)).astype(np.uint64)
        value = both >> (np.uint64(32) - by) if left else both >> by
        put(step, value.astype(np.uint32))

    return run


@opcode("lop3", pure=True)
def lop3(ins, decode):
    """Any function of three bits, by its table; with `d|p`, p is (d != 0) joined with a predicate."""
    decode.known("b32", "or", "and")
    if isinstance(ins.args[0], Pair):
        return _lop3_pair(ins, decode)
    return _lop3(ins, decode, ins.args[0])


def _lop3_pair(ins, decode):
    target, flag = ins.args[0].items
    put = decode.target(flag, "pred")
    other = decode.source(ins.args[5], "pred")
    join = _LOGIC["or" if ins.has("or") else "and"]
    return _lop3(ins, decode, target, lambda step, out: put(step, join(out != 0, other(step))))


def _lop3(ins, decode, target, after=None):
    a, b, c = (decode.source(arg, "u32") for arg in ins.args[1:4])
    put = decode.target(target, "u32")
    table = decode.constant(ins.args[4])

    def run(step):
        x, y, z = a(step), b(step), c(step)
        out = np.zeros(step.n, np.uint32)
        for row in range(8):
            if table >> row & 1:
                out |= (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
        put(step, out)
        if after is not None:
            after(step, out)

    return run


def _prmt_selectors(mode, selector):
    """Per byte of the result: number of the byte (4 bits: 3 of place, 1 of sign) for the special modes."""
    low = selector & np.uint32(3)
    table = {
        "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
        "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
        "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
        "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
        "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
        "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
    }[mode]
    return np.array(table, np.uint32)[low]


@opcode("prmt", pure=True)
def prmt(ins, decode):
    """Bytes of two words, chosen by a selector."""
    modes = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    decode.known("b32", *modes)
    mode = next((part for part in ins.parts if part in modes), None)
    a, b, s = (decode.source(arg, "u32") for arg in ins.args[1:4])
    put = decode.target(ins.args[0], "u32")
    places = np.arange(4, dtype=np.uint32) * np.uint32(4)

    def run(step):
        pool = np.empty((step.n, 2), np.uint32)
        pool[:, 0], pool[:, 1] = a(step), b(step)
        selector = step.full(s(step))
        chosen = _prmt_selectors(mode, selector) if mode else selector[:, None] >> places & np.uint32(15)
        octets = np.take_along_axis(pool.view(np.uint8), (chosen & 7).astype(np.intp), axis=1)
        signs = np.where(octets & 0x80, 0xFF, 0).astype(np.uint8)
        put(step, np.where(chosen & 8, signs, octets).astype(np.uint8).view(np.uint32)[:, 0])

    return run


@opcode("bfe", pure=True)
def bfe(ins, decode):
    """A field of bits, with its sign for signed types."""
    name = decode.type()
    decode.known(name)
    dtype = types.NUMPY[name]
    width = 8 * dtype.itemsize
    a, start, length = (
        decode.source(ins.args[1], name),
        decode.source(ins.args[2], "u32"),
        decode.source(ins.args[3], "u32"),
    )
    put = decode.target(ins.args[0], name)
    word = types.WORDS[dtype.itemsize]

    def run(step):
        value = step.full(a(step))
        pos = step.full(start(step)).astype(np.int64) & 0xFF
        count = step.full(length(step)).astype(np.int64) & 0xFF
        shifted = np.where(pos < width, value.view(word) >> np.minimum(pos, width - 1).astype(word), word.type(0))
        mask = np.where(
            count >= width, ~word.type(0), (word.type(1) << np.minimum(count, width - 1).astype(word)) - word.type(1)
        )
        field = shifted & mask
        if dtype.kind == "i":
            top = np.minimum(pos + count - 1, width - 1)
            sign = (value.view(word) >> np.maximum(top, 0).astype(word)) & word.type(1)
            field = np.where((sign != 0) & (count > 0), field | ~mask, field)
            field = np.where((pos >= width) & (sign != 0) & (count > 0), ~word.type(0), field)
        put(step, field.view(dtype))

    return run


@opcode("bmsk", pure=True)
def bmsk(ins, decode):
    """A mask of ones from a position on."""
    decode.known("clamp", "wrap", "b32")
    start, length, put = (
        decode.source(ins.args[1], "u32"),
        decode.source(ins.args[2], "u32"),
        decode.target(ins.args[0], "u32"),
    )
    wrap = ins.has("wrap")

    def run(step):
        pos, count = (step.full(read(step)).astype(np.uint64) for read in (start, length))
        if wrap:
            pos, count = pos & np.uint64(31), count & np.uint64(31)
        pos, count = np.minimum(pos, np.uint64(32)), np.minimum(count, np.uint64(32))
        put(step, (((np.uint64(1) << count) - np.uint64(1)) << pos).astype(np.uint32))

    return run


@opcode("szext", pure=True)
def szext(ins, decode):
    """Keep so many low bits, extended by zeros or by the sign."""
    name = decode.type()
    decode.known("clamp", "wrap", name)
    a, size, put = decode.source(ins.args[1], name), decode.source(ins.args[2], "u32"), decode.target(ins.args[0], name)
    wrap, dtype = ins.has("wrap"), types.NUMPY["s64" if name == "s32" else "u64"]

    def run(step):
        count = step.full(size(step))
        count = np.minimum(count & np.uint32(31) if wrap else count, 32)
        shift = (64 - count.astype(np.int64)).astype(dtype)
        value = step.full(a(step)).astype(dtype) << (shift & dtype.type(63)) >> (shift & dtype.type(63))
        put(step, np.where(count == 0, dtype.type(0), value).astype(types.NUMPY[name]))

    return run


@opcode("bfi", pure=True)
def bfi(ins, decode):
    """Insert a field of bits."""
    name = f"u{8 * types.size(decode.type())}"
    decode.known(decode.type())
    word = types.NUMPY[name]
    width = 8 * word.itemsize
    a, b = decode.source(ins.args[1], name), decode.source(ins.args[2], name)
    start, length = decode.source(ins.args[3], "u32"), decode.source(ins.args[4], "u32")
    put = decode.target(ins.args[0], name)

    def run(step):
        pos = step.full(start(step)).astype(np.int64) & 0xFF
        count = np.minimum(step.full(length(step)).astype(np.int64) & 0xFF, np.maximum(width - pos, 0))
        ones = np.where(
            count >= width, ~word.type(0), (word.type(1) << np.minimum(count, width - 1).astype(word)) - word.type(1)
        )
        by = np.minimum(pos, width - 1).astype(word)
        mask = ones << by
        put(step, (b(step) & ~mask) | ((a(step) << by) & mask))

    return run


def _count_ones(values, width):
    return np.unpackbits(np.ascontiguousarray(values).view(np.uint8)).reshape(-1, width).sum(1).astype(np.uint32)


@opcode("popc", "clz", "brev", pure=True)
def counts(ins, decode):
    """Number of ones, of leading zeros; bits in reverse order."""
    name = f"u{8 * types.size(decode.type())}"
    decode.known(decode.type())
    width = 8 * types.size(name)
    a = decode.source(ins.args[1], name)
    put = decode.target(ins.args[0], name if ins.parts[0] == "brev" else "u32")
    head = ins.parts[0]

    def run(step):
        value = np.ascontiguousarray(step.full(a(step)))
        if head == "popc":
            return put(step, _count_ones(value, width))
        bits = np.unpackbits(value.byteswap().view(np.uint8)).reshape(-1, width)  # highest first
        if head == "brev":
            return put(step, np.packbits(bits[:, ::-1], axis=1).view(types.NUMPY[name]).byteswap()[:, 0])
        return put(step, np.where(value == 0, width, bits.argmax(1)).astype(np.uint32))

    return run


@opcode("bfind", pure=True)
def bfind(ins, decode):
    """Place of the most significant bit that is not a sign bit."""
    name = decode.type()
    decode.known("shiftamt", name)
    dtype = types.NUMPY[name]
    word, width = types.WORDS[dtype.itemsize], 8 * dtype.itemsize
    a, put = decode.source(ins.args[1], name), decode.target(ins.args[0], "u32")
    amount = ins.has("shiftamt")

    def run(step):
        value = step.full(a(step))
        plain = np.where(value < 0, ~value, value).view(word) if dtype.kind == "i" else value
        bits = np.unpackbits(np.ascontiguousarray(plain).byteswap().view(np.uint8)).reshape(-1, width)
        place = bits.argmax(1) if amount else width - 1 - bits.argmax(1)
        put(step, np.where(plain == 0, 0xFFFFFFFF, place).astype(np.uint32))

    return run


@opcode("dp4a", "dp2a", pure=True)
def dot(ins, decode):
    """Dot product of 4 bytes (with bytes) or 2 halves (with bytes), added to a word."""
    decode.known("u32", "s32", "lo", "hi")
    four = ins.parts[0] == "dp4a"
    kinds = [part for part in ins.parts[1:] if part in ("u32", "s32")]
    first = {"u32": np.uint8, "s32": np.int8} if four else {"u32": np.uint16, "s32": np.int16}
    second = {"u32": np.uint8, "s32": np.int8}
    a, b = decode.source(ins.args[1], "u32"), decode.source(ins.args[2], "u32")
    c = decode.source(ins.args[3], "s32")
    put = decode.target(ins.args[0], "s32")
    part = slice(0, 4) if four else slice(2, 4) if ins.has("hi") else slice(0, 2)

    def run(step):
        x = np.ascontiguousarray(step.full(a(step))).view(first[kinds[0]]).reshape(step.n, -1).astype(np.int32)
        y = np.ascontiguousarray(step.full(b(step))).view(second[kinds[1]]).reshape(step.n, 4)[:, part].astype(np.int32)
        put(step, (x * y).sum(1, dtype=np.int32) + c(step))

    return run
