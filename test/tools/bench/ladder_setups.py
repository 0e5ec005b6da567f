# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random set-ups of probes."""

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import put
from bench.gpu.far.ladder.diagnosis.tma import ELEMENT_BYTES, moved_bytes
from bench.gpu.far.ladder.setup import OperandSetup, TmaSetup, WgmmaSetup

MEMORY_BYTES = 1 << 16


def tma(rng: np.random.Generator) -> TmaSetup:
    """A box that fits the probe: edges, steps, negative starts, all swizzles and ranks."""
    while True:
        found = _tma(rng)
        if found:
            return found


def _tma(rng):
    rank = int(rng.integers(1, 6))
    element = str(rng.choice(["u8", "f16", "bf16", "f32"]))
    size = ELEMENT_BYTES[element]
    swizzle = int(rng.choice([0, 32, 64, 128]))
    row = int(rng.integers(1, (swizzle or 64) // 16 + 1)) * 16
    steps = (1, *(int(rng.choice([1, 1, 2, 3])) for _ in range(rank - 1)))
    box = (row // size, *(int(rng.integers(1, 9 if rank > 3 else 17)) for _ in range(rank - 1)))
    dims = tuple(int(rng.integers(2, 10 if rank > 2 else 60)) for _ in range(rank))
    strides, least = [], dims[0] * size
    for dim in range(1, rank):
        strides.append(-(-least // 16) * 16 + 16 * int(rng.integers(0, 3)))
        least = strides[-1] * dims[dim]
    if least > MEMORY_BYTES - 256:
        return None
    coordinates = tuple(int(rng.integers(-4, dim)) for dim in dims)
    fill = "nan" if element in ("f16", "bf16", "f32") and rng.random() < 0.3 else "zero"
    setup = TmaSetup(element, dims, tuple(strides), box, steps, swizzle, fill, coordinates, 0, 0, 128)
    moved = moved_bytes(setup)
    if moved > 16384:
        return None
    setup = put(setup, "smem_offset", 1024 * int(rng.integers(0, 16)))
    return put(setup, "expected_bytes", moved)


def operand(rng: np.random.Generator, at: int, mn_major: bool, outer: int, swizzle: int | None = None) -> OperandSetup:
    """A descriptor of 16-bit elements with random strides, all inside 12 KB from `at`."""
    mode = int(rng.choice([0, 32, 64, 128])) if swizzle is None else swizzle
    row = 16 * int(rng.integers(0, 8)) if mode == 0 else 0
    leading, stride = (128 * int(rng.integers(1, 9)) for _ in range(2))
    if mode and mn_major:
        stride = 8 * mode
        leading = 1024 * int(rng.integers(1, 3))
    if mode and not mn_major:
        stride = 8 * mode
    return OperandSetup(at + row, leading, stride, 0, mode, not mn_major, 32)


def wgmma(rng: np.random.Generator) -> WgmmaSetup:
    """Two operands of 16-bit elements, or the left one in registers."""
    n = int(rng.choice([8, 16, 64, 128]))
    majors = rng.random(2) < 0.4
    left = None if rng.random() < 0.2 else operand(rng, 0, bool(majors[0]), 64)
    dtype = str(rng.choice(["f16", "bf16"]))
    steps = int(rng.integers(1, 4))
    return WgmmaSetup(
        n, dtype, left, operand(rng, 12288, bool(majors[1]), n), bool(rng.random() < 0.5), steps=steps, initial=1000.0
    )
