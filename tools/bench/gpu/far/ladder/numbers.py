# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the types of GPUs by NumPy alone: what a type stores, as f64 and back; and inputs of rungs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: What holds a type's elements.
STORED = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "f8e4m3fn": np.uint8,
    "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "u32": np.uint32, "i32": np.int32, "i64": np.int64,
}  # fmt: skip


def _e4m3(code: int) -> float:
    """The value of an e4m3 code (OCP 8-bit floating point, 1.0): bias 7, no infinities, 0x7f is NaN."""
    sign, exponent, fraction = (-1.0 if code & 128 else 1.0), code >> 3 & 15, code & 7
    if code & 127 == 127:
        return float("nan")
    return sign * (fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7))


_E4M3 = np.array([_e4m3(code) for code in range(256)])


def widened(kind: str, array: np.ndarray) -> np.ndarray:
    """The numbers that an array of a type holds, in f64."""
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "f8e4m3fn":
        return _E4M3[array]
    return array.astype(np.float64)


def drawn(kind: str, shape: Sequence[int], how: str, random: np.random.Generator) -> np.ndarray:
    """Random inputs, the same for the same generator: "normal", "positive" from 1 to 2, or "short": normal with
    the bits of f16.

    Raises:
        ValueError: no such type or distribution.
    """
    if how not in ("normal", "positive", "short") or kind not in STORED:
        raise ValueError(
            f"no {how!r} inputs of type {kind!r}; there are normal, positive and short ones of {list(STORED)}"
        )
    if kind == "f8e4m3fn":  # codes of 1.0 to 1.875; with a sign for "normal"
        codes = random.integers(0x38, 0x40, shape).astype(np.uint8)
        return codes | (random.integers(0, 2, shape).astype(np.uint8) << 7 if how == "normal" else np.uint8(0))
    values = random.uniform(1, 2, shape) if how == "positive" else random.standard_normal(shape)
    return rounded(kind, values.astype(np.float16) if how == "short" else values)


def constants(kind: str, shape: Sequence[int]) -> np.ndarray:
    """Positive constants of a model, the same wherever they are drawn."""
    return drawn(kind, shape, "positive", np.random.default_rng(21))


def rounded(kind: str, values: np.ndarray) -> np.ndarray:
    """Numbers as a type of at least 16 bits stores them, to nearest even."""
    if kind == "bf16":
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return values.astype(STORED[kind])


def error(result: np.ndarray, wanted: np.ndarray) -> float:
    """max|result - wanted| / max|wanted|; infinite where a result is not finite."""
    if not np.isfinite(result).all():
        return float("inf")
    return float(np.abs(result - wanted).max() / (np.abs(wanted).max() or 1.0))
