# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How two numbers become one, where cores reduce: the names of `coremesh.combine`, in the dialect's order."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

Combine = Literal["add", "max", "min", "umax", "umin", "mul"]
NAMES: tuple[Combine, ...] = get_args(Combine)

#: The op of integers, and the one of floats, which have a sign always.
OPS: dict[Combine, tuple[str, str]] = {
    "add": ("arith.addi", "arith.addf"),
    "max": ("arith.maxsi", "arith.maximumf"),
    "min": ("arith.minsi", "arith.minimumf"),
    "umax": ("arith.maxui", "arith.maximumf"),
    "umin": ("arith.minui", "arith.minimumf"),
    "mul": ("arith.muli", "arith.mulf"),
}


def is_float(dtype: np.dtype) -> bool:
    """Whether numbers of a type have fractions."""
    return dtype.kind not in "iub"


def op_of(how: Combine, floating: bool) -> str:
    """The op that combines two numbers."""
    return OPS[how][floating]


def combined(how: Combine, old: Any, new: Any) -> Any:
    """Two arrays of one type, element by element."""
    from tilewright.core.arithmetic import FUNCTIONS  # NumPy's functions: passes name combinations without NumPy

    if how == "add" and is_float(old.dtype):
        return np.add(old, new)
    return FUNCTIONS[op_of(how, is_float(old.dtype))](old, new)


def identity(how: Combine, dtype: np.dtype) -> float:
    """What changes no number that it is combined with."""
    if how in ("add", "mul"):
        return int(how == "mul")
    if is_float(dtype):
        return float("inf") if how.endswith("min") else -float("inf")
    if dtype == np.bool_:  # as a signed number, true is -1
        return int(how in ("max", "umin"))
    if how[0] == "u":
        every_bit = np.array(-1 if dtype.kind == "i" else np.iinfo(dtype).max, dtype)
        return int(every_bit) if how == "umin" else 0
    return int(np.iinfo(dtype).min if how == "max" else np.iinfo(dtype).max)


def is_identity(how: Combine, dtype: np.dtype, number: float | None) -> bool:
    """Whether a constant, of integers in any of its forms, changes nothing."""
    if number is None or is_float(dtype):
        return number == identity(how, dtype)
    bits = 1 if dtype == np.bool_ else 8 * dtype.itemsize
    return (int(number) - int(identity(how, dtype))) % (1 << bits) == 0
