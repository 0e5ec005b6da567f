# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the hardware approximates. The emulator rounds the float64 value, which lies within PTX's bounds."""

from __future__ import annotations

import numpy as np

from tilewright.emulate.ops.floating import Lanes
from tilewright.emulate.registry import opcode
from tilewright.emulate.rounding import directed


def _rcp(x):
    return 1.0 / x


def _rsqrt(x):
    return 1.0 / np.sqrt(x)


_FUNCTIONS = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": _rcp,
    "rsqrt": _rsqrt,
    "sqrt": np.sqrt,
}


@opcode("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", pure=True)
def function(ins, decode):
    """A function of one value, computed in float64 and rounded once."""
    decode.known("approx", "ftz", "rn", "rz", "rm", "rp", ins.parts[-1])
    lanes = Lanes(ins, decode)
    a, put = lanes.read(ins.args[1]), lanes.write(ins.args[0])
    compute = _FUNCTIONS[ins.parts[0]]
    mode = next((part for part in ins.parts if part in ("rz", "rm", "rp")), None)
    if mode and lanes.scalar != "f32":
        raise decode.unsupported(f"rounding .{mode} of this type is not known")
    if lanes.scalar == "f64":
        return lambda step: put(step, compute(a(step)))
    if mode:
        return lambda step: put(step, directed(compute(step.full(a(step)).astype(np.float64)), 0.0, mode))
    return lambda step: put(step, compute(a(step).astype(np.float64)).astype(np.float32))
