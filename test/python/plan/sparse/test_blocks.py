# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with block-sparse operands on CPUs, against NumPy."""

import numpy as np
import pytest
from sparse_products import SparseProduct, blocks, check

RNG = np.random.default_rng(8)
CPUS = ["cpu", "cpu:x86-64-v3"]


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize(
    ("block", "rows", "depth", "columns"),
    [
        ((32, 32), 45, 128, 192),
        ((64, 64), 12, 128, 130),
        ((16, 16), 1, 70, 90),
        ((8, 8), 100, 40, 48),
        ((4, 4), 50, 41, 31),
        ((1, 32), 25, 60, 100),
        ((32, 1), 60, 64, 20),
        ((6, 24), 30, 50, 72),
    ],
)
def test_right(block, rows, depth, columns, target):
    """Weights of few blocks: [rows, depth] @ [depth, columns], some columns of blocks empty."""
    weight = blocks(RNG, (depth, columns), block, 0.3).astype(np.float32)
    weight[:, : block[1]] = 0
    check(SparseProduct(f"block<[{block[0]}, {block[1]}]>", weight, rows, False, "blocks"), target, RNG)


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize(
    ("block", "rows", "depth", "columns"),
    [((32, 32), 96, 64, 49), ((4, 4), 21, 30, 200), ((16, 1), 40, 33, 1), ((17, 3), 34, 45, 97)],
)
def test_left(block, rows, depth, columns, target):
    """Rows of weights: [rows, depth] @ [depth, columns], as of a 1x1 convolution with pixels side by side."""
    weight = blocks(RNG, (rows, depth), block, 0.3).astype(np.float32)
    check(SparseProduct(f"block<[{block[0]}, {block[1]}]>", weight, columns, True, "blocks", init=True), target, RNG)
