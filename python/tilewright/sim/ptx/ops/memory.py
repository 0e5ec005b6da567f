# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ld, ldu, st, prefetch and what else touches memory plainly."""

from __future__ import annotations

import numpy as np

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.registry import opcode

_SPACES = {
    "global": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared::cluster",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "const": "const",
}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "mmio", "nc")
_CACHES = (
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
)
_MORE = (
    "L1::no_allocate",
    "L2::cache_hint",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_last",
    "L2::evict_normal",
    "L2::evict_first",
    "unified",
)
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def state_space(ins) -> str:
    """The state space that a mnemonic names; "generic" where it names none."""
    return next((_SPACES[part] for part in ins.parts[1:] if part in _SPACES), "generic")


def known_access(decode, *more: str) -> None:
    """Check the modifiers of a plain access."""
    decode.known(*_SPACES, *_SCOPES, *_ORDERS, *_CACHES, *_MORE, *_VECTORS, decode.type(), *more)


def _count(ins) -> int:
    return next((_VECTORS[part] for part in ins.parts if part in _VECTORS), 1)


@opcode("ld", "ldu")
def ld(ins, decode):
    """Load, of vectors too."""
    known_access(decode)
    name, count, space = decode.type(), _count(ins), state_space(ins)
    address = decode.address(ins.args[1])
    put = decode.targets(ins.args[0], name) if count > 1 else decode.target(ins.args[0], name)
    width, dtype = types.size(name), types.NUMPY[name]
    strong = any(ins.has(part) for part in ("acquire", "relaxed", "volatile"))
    acquire = ins.has("acquire")

    def run(step):
        values = step.machine.load(step, space, address(step), width, count)
        if acquire:
            step.machine.races.acquire_global(step)
        put(step, values.view(dtype))

    run.spin = strong
    return run


@opcode("st")
def st(ins, decode):
    """Store, of vectors too."""
    known_access(decode)
    name, count, space = decode.type(), _count(ins), state_space(ins)
    address = decode.address(ins.args[0])
    word = f"b{8 * types.size(name)}"
    if count == 1:
        read = decode.source(ins.args[1], word)
        get = lambda step: step.full(read(step))  # noqa: E731
    else:
        get = decode.sources(ins.args[1], word)
    release = ins.has("release")

    def run(step):
        if release:
            step.machine.races.release_global(step)
        step.machine.store(step, space, address(step), get(step))

    return run


@opcode("prefetch", "prefetchu", "discard", "applypriority")
def prefetch(ins, decode):
    """A hint for caches: the address alone is checked, for global memory."""
    if ins.has("tensormap"):
        return lambda step: None
    address = decode.address(ins.args[0])

    def run(step):
        space = state_space(ins)
        if space == "global" and ins.parts[0] == "discard":
            step.machine.access.locate(step, space, np.asarray(address(step)), 128)

    return run
