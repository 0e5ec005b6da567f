# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer views: how signed, unsigned and 1-bit arithmetic is done on NumPy values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_MASKS = {"int4": 15, "int2": 3}


def signed(x: Any) -> Any:
    """Return ``x`` as signed integers; the i1 value true is -1."""
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def unsigned(x: Any) -> Any:
    """Return ``x`` as unsigned integers of the same width."""
    if x.dtype == np.bool_:
        return x.astype(np.uint8)
    if x.dtype.name in _MASKS:
        return x.astype(np.uint8) & np.uint8(_MASKS[x.dtype.name])
    return x.astype(f"uint{x.dtype.itemsize * 8}") if x.dtype.kind == "i" else x


def narrow(x: Any, dtype: np.dtype) -> Any:
    """Return integers ``x`` modulo the width of ``dtype``."""
    return (x & 1).astype(np.bool_) if dtype == np.bool_ else x.astype(dtype)


def on_signed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function`` work on signed views, its result wrapped to the operands' type."""
    return lambda a, *rest: narrow(function(signed(a), *map(signed, rest)), a.dtype)


def on_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function`` work on unsigned views, its result wrapped to the operands' type."""
    return lambda a, *rest: narrow(function(unsigned(a), *map(unsigned, rest)), a.dtype)
