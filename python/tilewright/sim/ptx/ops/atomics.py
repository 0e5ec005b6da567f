# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""atom and red: read, compute, write in one go, lane after lane where addresses meet."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.memory.global_memory import Allocation
from tilewright.sim.ptx.numbers import rounding
from tilewright.sim.ptx.ops.memory import _CACHES, _MORE, _SCOPES, _SPACES, _VECTORS, state_space
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def _increment(old, limit):
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old, limit):
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _operations(name):
    scalar = types.PACKED.get(name, name)
    least, most = np.minimum, np.maximum
    if types.is_float(scalar):
        least = lambda a, b: rounding.extreme(a, b, True, False)  # noqa: E731
        most = lambda a, b: rounding.extreme(a, b, False, False)  # noqa: E731
    return {
        "add": np.add,
        "min": least,
        "max": most,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda old, new: new,
        "inc": _increment,
        "dec": _decrement,
    }


@opcode("atom", spin=True)
def atom(ins, decode):
    """Atomic with the old value as its result."""
    return _atomic(ins, decode, True)


@opcode("red")
def red(ins, decode):
    """Atomic without a result."""
    return _atomic(ins, decode, False)


def _kind(ins, decode):
    kinds = [part for part in ins.parts if part in (*_operations("u32"), "cas")]
    if len(kinds) != 1:
        raise decode.unsupported("the operation is not known")
    return kinds[0]


def _atomic(ins, decode, result):
    kind = _kind(ins, decode)
    name = next((part for part in reversed(ins.parts) if part in types.NUMPY), "")
    if not name:
        raise decode.unsupported("the type is not known")
    decode.known(*_SPACES, *_SCOPES, *_ORDERS, *_CACHES, *_MORE, *_VECTORS, "noftz", "async", kind, name)
    if ins.has("async"):
        raise decode.unsupported("the asynchronous form is not known")
    count = next((_VECTORS[part] for part in ins.parts if part in _VECTORS), 1)
    at = 1 if result else 0
    address = decode.address(ins.args[at])
    word = f"b{8 * types.size(name)}"
    value = decode.sources(ins.args[at + 1], word)
    compare = decode.source(ins.args[at + 1], word) if kind == "cas" else None
    if kind == "cas":
        value = decode.sources(ins.args[at + 2], word)
    put = decode.targets(ins.args[0], word) if result else None
    atomic = _Atomic(kind, name, count)
    space = state_space(ins)

    def run(step):
        expected = None if compare is None else step.full(compare(step))[:, None]
        old = atomic.run(step, space, np.asarray(address(step)), value(step), expected)
        if put is not None:
            put(step, old)

    return run


class _Atomic:
    def __init__(self, kind: str, name: str, count: int) -> None:
        self.kind, self.count = kind, count
        self.width = types.size(name)
        self.dtype = types.NUMPY[types.PACKED.get(name, name)]
        self.compute = _operations(name).get(kind, np.equal)  # compare-and-swap does not use it

    def run(self, step, space, addresses, values, expected):
        """Words before the operation: (n, count)."""
        machine = step.machine
        out = np.empty((step.n, self.count), types.WORDS[self.width])
        nbytes = self.width * self.count
        for mask, store, offsets in machine.access.locate(step, space, addresses, nbytes):
            part = step if mask is None else step.narrowed(mask)
            if store is machine.shared:
                machine.races.atomic(part, offsets, nbytes)
            elif machine.grid_races is not None and isinstance(store, Allocation):
                machine.grid_races.atomic(part, store, offsets, nbytes)
            machine.access.readable(part, store, offsets, nbytes, atomic=True)
            chosen = slice(None) if mask is None else mask
            rows = store.rows(self.width, self.count).reshape(-1, self.count)
            wanted = None if expected is None else expected[chosen]
            out[chosen] = self._apply(machine, rows, offsets // nbytes, values[chosen], wanted)
            store.mark(offsets, nbytes)
        if machine.trace is not None:
            machine.trace.access(step, space, addresses, nbytes, "atomic")
        return out

    def _apply(self, machine, rows, index, values, expected):
        """Rounds in which every address occurs once; with a seed, the order of lanes that meet is chance."""
        n = len(index)
        order = np.arange(n) if machine.options.seed is None else machine.random.permutation(n)
        sorted_ = order[np.argsort(index[order], kind="stable")]
        heads = np.r_[True, index[sorted_][1:] != index[sorted_][:-1]]
        starts = np.flatnonzero(heads)
        rank = np.arange(n) - np.repeat(starts, np.diff(np.r_[starts, n]))
        old = np.empty_like(values)
        for turn in range(int(rank.max()) + 1):
            lanes = sorted_[rank == turn] if len(starts) < n else sorted_
            at = index[lanes]
            old[lanes] = rows[at]
            new = self._new(old[lanes], values[lanes], None if expected is None else expected[lanes])
            rows[at] = new
            machine.progress += int((new != old[lanes]).any())  # polling with an atomic is no progress
        return old

    def _new(self, old, values, expected):
        if expected is not None:
            return np.where(old == expected, values, old)
        a, b = (np.ascontiguousarray(x).view(self.dtype) for x in (old, values))
        return np.ascontiguousarray(np.asarray(self.compute(a, b)).astype(self.dtype)).view(old.dtype)
