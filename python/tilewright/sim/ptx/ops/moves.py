# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mov, selp, setp, set, slct, cvta, isspacep, createpolicy."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.memory.global_memory import FIRST, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, SLOT
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode
from tilewright.sim.ptx.syntax.tree import Pair, Sink, Symbol

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


@opcode("mov", pure=True)
def mov(ins, decode):
    """A copy; also packs and unpacks, and takes addresses."""
    name = decode.type()
    decode.known(name)
    a = decode.source(ins.args[1], name)
    put = decode.target(ins.args[0], name)
    return lambda step: put(step, a(step))


@opcode("call")
def call(ins, decode):
    """Functions are inlined by whoever makes the PTX."""
    names = [arg.name for arg in ins.args if isinstance(arg, Symbol)]
    raise decode.unsupported(
        f"calls are not supported, here of {', '.join(names) or 'a function'}: inline it (functions __nv_* "
        "come from libdevice, which must be linked when the PTX is made)"
    )


@opcode("selp", pure=True)
def selp(ins, decode):
    """One of two values, by a predicate."""
    name = decode.type()
    decode.known(name)
    a, b, p = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.source(ins.args[3], "pred")
    put = decode.target(ins.args[0], name)
    word = types.WORDS[types.size(name)]

    def run(step):
        put(step, np.where(p(step), np.asarray(a(step)).view(word), np.asarray(b(step)).view(word)))

    return run


@opcode("slct", pure=True)
def slct(ins, decode):
    """One of two values, by the sign of a third."""
    name, kind = ins.parts[-2], ins.parts[-1]
    a, b, c = decode.source(ins.args[1], name), decode.source(ins.args[2], name), decode.source(ins.args[3], kind)
    put = decode.target(ins.args[0], name)
    return lambda step: put(step, np.where(c(step) >= 0, a(step), b(step)))


def comparison(ins, decode):
    """The comparison of a setp or set: a function of two arrays."""
    name = ins.parts[1]
    if name in _COMPARE:
        plain = _COMPARE[name]
        if name != "ne" or not types.is_float(ins.parts[-1].removesuffix("x2")):
            return plain
        return lambda x, y: (x != y) & ~(np.isnan(x) | np.isnan(y))
    if name == "num":
        return lambda x, y: ~(np.isnan(x) | np.isnan(y))
    if name == "nan":
        return lambda x, y: np.isnan(x) | np.isnan(y)
    if name[-1] == "u" and name[:-1] in _COMPARE:
        plain = _COMPARE[name[:-1]]
        return lambda x, y: plain(x, y) | np.isnan(x) | np.isnan(y)
    raise decode.unsupported(f"the comparison .{name} is not known")


def _scalars(decode, operand, name):
    """A reader of scalars; (n, 2) of packed types."""
    if not name.endswith("x2"):
        return decode.source(operand, name.replace("b", "u") if name[0] == "b" and name[1].isdigit() else name)
    inner, dtype = decode.source(operand, "u32"), types.NUMPY[types.PACKED[name]]
    return lambda step: np.ascontiguousarray(step.full(inner(step))).view(dtype).reshape(step.n, 2)


@opcode("setp", pure=True)
def setp(ins, decode):
    """Compare into one or two predicates, optionally joined with a third."""
    name = decode.type()
    join = next((part for part in ins.parts[2:] if part in _LOGIC), None)
    decode.known(ins.parts[1], "and", "or", "xor", "ftz", name)
    compare = comparison(ins, decode)
    a, b = _scalars(decode, ins.args[1], name), _scalars(decode, ins.args[2], name)
    third = decode.source(ins.args[3], "pred") if join else None
    items = ins.args[0].items if isinstance(ins.args[0], Pair) else (ins.args[0], Sink())
    put, other = decode.target(items[0], "pred"), decode.target(items[1], "pred")
    packed = name.endswith("x2")

    def run(step):
        result = compare(a(step), b(step))
        if packed:
            put(step, result[:, 0])
            other(step, result[:, 1])
            return
        inverse = ~result
        if third is not None:
            with_ = third(step)
            result, inverse = _LOGIC[join](result, with_), _LOGIC[join](inverse, with_)
        put(step, result)
        other(step, inverse)

    return run


@opcode("set", pure=True)
def set_(ins, decode):
    """Compare into a number: all ones (integers) or 1.0."""
    name, result_name = ins.parts[-1], ins.parts[-2]
    compare = comparison(ins, decode)
    join = next((part for part in ins.parts[2:] if part in _LOGIC), None)
    third = decode.source(ins.args[3], "pred") if join else None
    a, b = _scalars(decode, ins.args[1], name), _scalars(decode, ins.args[2], name)
    packed = name.endswith("x2")
    scalar = types.PACKED.get(result_name, result_name)
    dtype = types.NUMPY[scalar]
    yes = dtype.type(1) if types.is_float(scalar) else np.array(-1).astype(dtype)[()]
    put = decode.target(ins.args[0], "u32" if packed else result_name)

    def run(step):
        result = compare(a(step), b(step))
        if third is not None:
            result = _LOGIC[join](result, third(step))
        values = np.where(result, yes, dtype.type(0)).astype(dtype)
        put(step, np.ascontiguousarray(values).view(np.uint32)[:, 0] if packed else values)

    return run


@opcode("cvta", pure=True)
def cvta(ins, decode):
    """Addresses of a state space to generic ones, or back."""
    space = ins.parts[2] if ins.has("to") else ins.parts[1]
    decode.known("to", space, decode.type())
    kind = space.split("::")[0]
    if kind not in ("global", "const", *_WINDOWS):
        raise decode.unsupported(f"the state space .{space} is not known")
    window = np.uint64(_WINDOWS.get(kind, 0) << SLOT)
    a, put = decode.source(ins.args[1], "u64"), decode.target(ins.args[0], "u64")
    if ins.has("to"):
        return lambda step: put(step, a(step) - window)
    return lambda step: put(step, a(step) + window)


@opcode("isspacep", pure=True)
def isspacep(ins, decode):
    """Whether a generic address lies in a state space."""
    kind = ins.parts[1].split("::")[0]
    if kind not in ("global", "const", *_WINDOWS):
        raise decode.unsupported(f"the state space .{kind} is not known")
    a, put = decode.source(ins.args[1], "u64"), decode.target(ins.args[0], "pred")

    def run(step):
        window = step.full(a(step)) >> np.uint64(SLOT)
        if kind in _WINDOWS:
            return put(step, window == _WINDOWS[kind])
        # constants are allocations like others, marked so
        known = step.machine.memory.allocations
        constant = np.array([getattr(known.get(int(n)), "constant", False) for n in window])
        return put(step, constant if kind == "const" else (window >= FIRST) & ~constant)

    return run


@opcode("createpolicy")
def createpolicy(ins, decode):
    """A hint for the L2 cache: the emulator has no caches."""
    put = decode.target(ins.args[0], "u64")
    return lambda step: put(step, np.uint64(0))
