# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products as the matrix units form them: which types go together, and how sums are rounded.

Products are exact and are summed in float32 (float64 for f64, 32-bit integers for whole numbers). Hardware keeps fewer
bits while it aligns the products of one step, so results agree within the rounding of the accumulator's type, not bit
for bit. Where it keeps much fewer (float8 by wgmma) so do we: `short_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.sim.ptx.numbers.element_types import ELEMENT_TYPES, ElementType
from tilewright.sim.ptx.numbers.short_sums import short_sums

_INTEGERS_8, _INTEGERS_4 = ("s8", "u8"), ("s4", "u4")
_FP8 = ("e4m3", "e5m2")
_PARTNERS = {name: group for group in (_INTEGERS_8, _INTEGERS_4, _FP8) for name in group}
_ACCUMULATORS = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f64": ("f64",),
    "e4m3": ("f16", "f32"),
    "e5m2": ("f16", "f32"),
}


@dataclass(frozen=True)
class Product:
    """The types of ``d = a * b + c``.

    Args:
        a: element type of the left operand.
        b: of the right operand.
        accumulator: PTX type of c and d.
        saturate: clamp 32-bit sums instead of wrapping them.
        bitwise: ``and`` or ``xor``: population counts of one-bit elements; ```` for products.
    """

    a: ElementType
    b: ElementType
    accumulator: str
    saturate: bool = False
    bitwise: str = ""

    @staticmethod
    def make(accumulator: str, a: str, b: str, saturate: bool = False, bitwise: str = "") -> Product:
        """The product of these types. Raises ValueError where no matrix unit combines them."""
        if a not in ELEMENT_TYPES or b not in _PARTNERS.get(a, (a,)):
            raise ValueError(f".{a} and .{b} do not go together")
        if accumulator not in _ACCUMULATORS.get(a, ("s32",)):
            raise ValueError(f".{a} does not accumulate in .{accumulator}")
        if saturate and accumulator != "s32":
            raise ValueError(".satfinite is for whole numbers")
        if (a == "b1") != bool(bitwise):
            raise ValueError(".b1 needs .and.popc or .xor.popc, and no other type has them")
        return Product(ELEMENT_TYPES[a], ELEMENT_TYPES[b], accumulator, saturate, bitwise)

    def multiply(self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, float8_bits: int = 0) -> np.ndarray:
        """``(..., m, k) @ (..., k, n) + (..., m, n)``; operands as ``unpack`` gives them, c as ``unpack_sums``.

        Args:
            a: left operand.
            b: right operand.
            c: what is added; None: nothing.
            float8_bits: fraction bits of the unit's accumulator for float8; 0: those of f32.

        Returns:
            float32, float64 or int32, still to be rounded to an f16 accumulator.
        """
        with np.errstate(all="ignore"):
            if float8_bits and self.a.name in _FP8:
                return short_sums(a, b, c, (self.a.name, self.b.name), float8_bits, self.accumulator == "f32")
            sums = a @ b
            if self.bitwise == "xor":
                sums = a.sum(-1, keepdims=True) + b.sum(-2, keepdims=True) - 2 * sums
            if not self.a.is_integer:
                return sums if c is None else sums + c
        whole = sums.astype(np.int64)
        if c is not None:
            whole += c
        if self.saturate:
            whole = np.clip(whole, -(2**31), 2**31 - 1)
        return whole.astype(np.int32)
