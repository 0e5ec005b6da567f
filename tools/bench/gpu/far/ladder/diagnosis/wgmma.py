# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a chain of wgmma instructions computes from the bytes of shared memory that its descriptors name.

Source: PTX ISA, "Asynchronous warpgroup-level matrix shared memory layout": core matrices of 8 rows of 16 bytes,
strides between them (leading and stride dimension byte offset), canonical layouts of each swizzle; register fragments
of A and D.
"""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder.diagnosis.layout import placed
from bench.gpu.far.ladder.setup import OperandSetup, WgmmaSetup

ROWS = 64
#: bytes of an element along k and bytes of one instruction along k
ELEMENT_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1}
_DEPTH_BYTES = 32


def depth(dtype: str) -> int:
    """Elements of k of one instruction."""
    return _DEPTH_BYTES // ELEMENT_BYTES[dtype]


def addresses(operand: OperandSetup, outer: int, dtype: str, step: int = 0) -> np.ndarray:
    """First byte of each element (outer, k) of an operand, by its descriptor; outer: rows of A or columns of B."""
    size = ELEMENT_BYTES[dtype]
    r, k = np.arange(outer)[:, None], np.arange(depth(dtype))[None, :]
    along, across = (k * size, r) if operand.k_major else (r * size, k)
    if operand.swizzle:
        span, panel = along % operand.swizzle, along // operand.swizzle
        offset = span + across % 8 * operand.swizzle + across // 8 * operand.stride
        offset = offset + (0 if operand.k_major else panel * operand.leading)
    elif operand.k_major:
        offset = along % 16 + along // 16 * operand.leading + across % 8 * 16 + across // 8 * operand.stride
    else:
        offset = along % 16 + along // 16 * operand.stride + across % 8 * 16 + across // 8 * operand.leading
    start = operand.address + step * operand.advance
    return placed(start + offset, operand.swizzle, operand.base_offset)


def values(image: np.ndarray, at: np.ndarray, dtype: str) -> np.ndarray | None:
    """Elements whose first bytes lie at these addresses, as float64; None where one lies outside the image."""
    size = ELEMENT_BYTES[dtype]
    if int(at.min()) < 0 or int(at.max()) + size > len(image):
        return None
    words = image.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])[at // size]
    if dtype == "bf16":
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return words.view({"f16": np.float16, "s8": np.int8, "u8": np.uint8}[dtype]).astype(np.float64)


def product(
    setup: WgmmaSetup, image: np.ndarray, registers: np.ndarray | None = None, held: str = ""
) -> np.ndarray | None:
    """d (64, n) as float64; None where a descriptor leaves the image.

    Args:
        setup: the instructions.
        image: bytes of shared memory, uint8.
        registers: A (64, steps * k) where it comes from registers, whole numbers.
        held: element type that registers really hold; "": that of the set-up.
    """
    if registers is not None and held and held != setup.dtype:
        registers = values(encode(registers, held).view(np.uint8).ravel(), _every(registers, held), setup.dtype)
    total = np.full((ROWS, setup.n), setup.initial if setup.scale_d else 0.0)
    sign = -1.0 if setup.negate_a != setup.negate_b else 1.0
    k = depth(setup.dtype)
    for step in range(setup.steps):
        b = values(image, addresses(setup.b, setup.n, setup.dtype, step), setup.dtype)
        if setup.a is not None:
            a = values(image, addresses(setup.a, ROWS, setup.dtype, step), setup.dtype)
        else:
            a = None if registers is None else registers[:, step * k : (step + 1) * k].astype(np.float64)
        if a is None or b is None:
            return None
        total = total + sign * (a @ b.T)
    return total


def _every(numbers: np.ndarray, dtype: str) -> np.ndarray:
    return ELEMENT_BYTES[dtype] * np.arange(numbers.size).reshape(numbers.shape)


def fragment_of_d(lane: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of d that a thread of the warpgroup holds, in the order of its registers."""
    i = np.arange(n // 2)
    return 16 * (lane // 32) + lane % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


def matrix_of_d(words: np.ndarray) -> np.ndarray:
    """d (64, n) from the accumulators (128, n / 2) of the threads."""
    found = np.empty((ROWS, 2 * words.shape[1]), words.dtype)
    for lane in range(128):
        found[fragment_of_d(lane, found.shape[1])] = words[lane]
    return found


def image(setup: WgmmaSetup, seed: int, numbered: str = "") -> np.ndarray:
    """Shared memory for a probe, uint8: small whole numbers, whose sums are exact, so that each place is told apart.

    Args:
        setup: what is meant.
        seed: of the numbers.
        numbered: "a" or "b": the other operand is one-hot over k (a row for each k in turn, where it is meant to lie),
            so that d shows this one's elements; none: both are numbers.
    """
    size = ELEMENT_BYTES[setup.dtype]
    numbers = np.random.default_rng(seed).integers(0 if setup.dtype == "u8" else -8, 9, setup.shared_bytes // size)
    made = encode(numbers, setup.dtype)
    other = {"a": setup.b, "b": setup.a}.get(numbered)
    if other is not None:
        outer, k = (setup.n if numbered == "a" else ROWS), depth(setup.dtype)
        for step in range(setup.steps):
            hot = np.arange(outer)[:, None] == step * k + np.arange(k)[None, :]
            made[addresses(other, outer, setup.dtype, step) // size] = encode(hot.astype(np.int64), setup.dtype)
    return made.view(np.uint8)


def encode(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Small whole numbers as the bits of an element type."""
    if dtype == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kinds = {"f16": np.float16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8}
    return numbers.astype(kinds[dtype]).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[ELEMENT_BYTES[dtype]])
