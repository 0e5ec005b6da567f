# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the hardware approximates: results anywhere within the errors that PTX documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.sim.ptx.numbers.rounding import directed
from tilewright.sim.ptx.ops.floating import Lanes
from tilewright.sim.ptx.syntax.registry import opcode


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


def _of_power(x, y):
    """Of the power of two below the result: an absolute error for results in [1, 2)."""
    return 2.0**-22.5 * np.exp2(np.floor(np.log2(np.abs(y))))


def _of_logarithm(x, y):
    return 2.0**-22 * np.where((x > 0.5) & (x < 2.0), 1.0, np.abs(y))


def _of_angle(x, y):
    return np.where(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)


def _relative(error: float) -> Callable:
    return lambda x, y: error * np.abs(y)


#: The largest error of an approximation in f32, from its argument and its exact result (PTX ISA, "Floating point
#: instructions"; angles up to 100 pi).
_BOUNDS: dict[str, Callable] = {
    "ex2": _of_power,
    "lg2": _of_logarithm,
    "sin": _of_angle,
    "cos": _of_angle,
    "tanh": _relative(2.0**-11),
    "rcp": lambda x, y: np.spacing(np.abs(y).astype(np.float32)).astype(np.float64),
    "rsqrt": _relative(2.0**-22.9),
    "sqrt": _relative(2.0**-23),
}
_UP_TO_ONE = frozenset({"sin", "cos", "tanh"})


def approximate(name: str, x: np.ndarray) -> np.ndarray:
    """Return what a unit may give for float32 arguments: an error within its bound, the same for the same argument.

    Results that float32 holds exactly (2 to a whole number) come out exactly.

    >>> float(approximate("ex2", np.float32([3.0]))[0])
    8.0
    """
    wide = np.asarray(x, np.float64)
    exact = _FUNCTIONS[name](wide)
    nearest = exact.astype(np.float32)
    mixed = np.asarray(x, np.float32).view(np.uint32) * np.uint32(0x9E3779B1)
    mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x85EBCA77)
    share = ((mixed >> np.uint32(8)).astype(np.float64) / 2.0**23) - 1.0  # from -1 to 1
    bound = _BOUNDS[name](wide, exact)
    moved = exact + share * bound
    if name in _UP_TO_ONE:
        moved = np.clip(moved, -1.0, 1.0)
    result = moved.astype(np.float32)
    within = np.isfinite(result) & (np.abs(result - exact) <= bound) & (nearest != exact)
    return np.where(within, result, nearest)


@opcode("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", pure=True)
def function(ins, decode):
    """A function of one value: rounded once from float64, or an approximation of f32 within its bounds."""
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
    if "approx" in ins.parts and lanes.scalar == "f32":
        name = ins.parts[0]
        return lambda step: put(step, approximate(name, step.full(a(step)).astype(np.float32)))
    return lambda step: put(step, compute(a(step).astype(np.float64)).astype(np.float32))
