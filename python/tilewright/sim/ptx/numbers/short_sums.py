# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products in accumulators that are shorter than f32: float8 by wgmma on Hopper.

DeepSeek-V3's report (arXiv 2412.19437, sections 3.3.2 and 3.5.2) found about 14 bits; SageAttention2 (arXiv 2411.10958)
8 bits of exponent and 13 of fraction; MMA-Sim (Xie et al., arXiv 2511.10909) an algorithm whose results are those of
an H100 bit by bit: its truncated fused dot product and addition with 13 fraction bits, which stands here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: Fraction bits of Hopper's accumulators for float8: of the terms of a sum when they are aligned, and of the sum.
HOPPER_FLOAT8 = 13

#: The exponent of the smallest normal number: subnormal ones have it, too.
_LEAST = {"e4m3": -6, "e5m2": -14}
#: Zeros have the least exponent of f32 (half of it for a factor): they never align the others.
_ZERO = -126
#: Sums that are computed at a time.
_CACHED = 16384


def short_sums(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, kinds: tuple[str, str], bits: int, rounds: bool
) -> np.ndarray:
    """One instruction's ``a @ b + c`` with an accumulator of `bits` fraction bits.

    All products and c are aligned to the largest of their exponents (a product's is the sum of its factors'), cut
    toward zero behind the last fraction bit, and added exactly. The sum is cut to as many fraction bits again.

    Args:
        a: (..., m, k), f32.
        b: (..., k, n), f32.
        c: (..., m, n), f32; None: nothing is added.
        kinds: PTX names of the operands' types.
        bits: fraction bits.
        rounds: whether the sum stays f32 and is cut; False: the caller rounds it to its own type.

    Returns:
        (..., m, n), f32. Where a term is infinite or no number the result is what f32 gives.
    """
    b = np.ascontiguousarray(b)
    ea, eb = _exponents(a, _LEAST[kinds[0]]), _exponents(b, _LEAST[kinds[1]])
    plain = a @ b if c is None else a @ b + c
    top = np.full(plain.shape, _ZERO, np.int16) if c is None else _exponents(c, _ZERO)
    sums = np.zeros(plain.shape, np.float32)
    for one_a, one_b, one_ea, one_eb, highest, one in _in_cache(a, b, ea, eb, top, sums):
        _align(one_ea, one_eb, highest)
        _add(one_a, one_b, bits - highest, one)
    if c is not None:
        sums += np.trunc(np.ldexp(c, bits - top))
    sums = np.ldexp(sums, top - bits)
    if rounds:
        sums = (sums.view(np.uint32) & np.uint32(2**32 - 2 ** (23 - bits))).view(np.float32)
    return np.where(np.isfinite(plain), sums, plain)


def _in_cache(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Views of some matrices of each array at a time, so few that the last one's stay in the cache."""
    flat = [array.reshape(-1, *array.shape[-2:]) for array in arrays]
    count = max(_CACHED // flat[-1][0].size, 1)
    for first in range(0, len(flat[0]), count):
        yield [array[first : first + count] for array in flat]


def _align(ea: np.ndarray, eb: np.ndarray, top: np.ndarray) -> None:
    """Raise the exponents `top` to those of all products."""
    one = np.empty_like(top)
    for k in range(ea.shape[-1]):
        np.add(ea[..., k, None], eb[..., k, None, :], out=one)
        np.maximum(top, one, out=top)


def _add(a: np.ndarray, b: np.ndarray, shift: np.ndarray, sums: np.ndarray) -> None:
    """Add all products times 2^shift, cut to whole numbers, to the sums."""
    # Where all products are zero the scale may be any: 2^127 is the largest that f32 has.
    scale = np.ldexp(np.float32(1), np.minimum(shift, 127))
    one = np.empty_like(sums)
    for k in range(a.shape[-1]):
        np.multiply(a[..., k, None], b[..., k, None, :], out=one)
        np.multiply(one, scale, out=one)
        np.trunc(one, out=one)
        np.add(sums, one, out=sums)


def _exponents(values: np.ndarray, least: int) -> np.ndarray:
    """Exponents as the hardware sees them, i16: subnormal numbers are not normalized."""
    found = np.maximum(np.frexp(values)[1] - 1, least)
    return np.where(values == 0, _ZERO, found).astype(np.int16)
