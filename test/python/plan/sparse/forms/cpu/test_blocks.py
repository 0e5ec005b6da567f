# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with block-sparse operands on CPUs, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from sparse_products import SparseProduct, blocks, check

import tilewright as tw
from tilewright.core.errors import UserError

RNG = np.random.default_rng(8)
CPUS = ["cpu", "cpu:x86-64-v3", "reference"]
RIGHT = [  # block, rows, depth, columns
    ((32, 32), 45, 128, 192),
    ((64, 64), 12, 128, 130),
    ((16, 16), 1, 70, 90),
    ((8, 8), 100, 40, 48),
    ((4, 4), 50, 41, 31),
    ((1, 32), 25, 60, 100),
    ((32, 1), 60, 64, 20),
    ((6, 24), 30, 50, 72),
]
LEFT = [((32, 32), 96, 64, 49), ((4, 4), 21, 30, 200), ((16, 1), 40, 33, 1), ((17, 3), 34, 45, 97)]


def product(block, rows, depth, columns, on_left, **more) -> SparseProduct:
    """[rows, depth] @ [depth, columns], with few blocks of the weight kept and one column (row) of blocks empty."""
    shape = (rows, depth) if on_left else (depth, columns)
    weight = blocks(RNG, shape, block, 0.3).astype(np.float32)
    weight[: block[0] if on_left else None, : None if on_left else block[1]] = 0
    other = columns if on_left else rows
    return SparseProduct(f"block<[{block[0]}, {block[1]}]>", weight, other, on_left, "blocks", **more)


@pytest.mark.slow
@pytest.mark.parametrize("target", CPUS)
def test_shapes(target):
    """Blocks of all kinds, sizes that are ragged in all ways; with a tensor that is added to."""
    products = [product(*case, False, init=number % 2 == 0) for number, case in enumerate(RIGHT)]
    check(products + [product(*case, True, init=number % 2 == 1) for number, case in enumerate(LEFT)], target, RNG)


@pytest.mark.parametrize("target", CPUS[:2])
def test_open(target):
    """The number of rows is that of a run."""
    for on_left in (False, True):
        check([product((16, 16), 40, 48, 64, on_left, open=True)], target, RNG, [1, 7, 60])


def test_no_block():
    """Nothing is kept: the result is what is added to."""
    one = product((16, 16), 20, 32, 64, False, init=True)
    check([replace(one, weight=np.zeros((32, 64), np.float32))], "cpu", RNG)


def test_right_operand_is_constant():
    """Blocks of a right operand are sorted by columns at compile time: those of a run are refused, with the reason."""
    text = """
    #w = #sparse_tile.tesa<block<[16, 16]>>
    func.func @main(%x: tensor<8x32xf32>, %d: tensor<3x16x16xf32>, %i: tensor<3xi32>, %s: tensor<3xi32>,
        %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
      %p = sparse_tile.assemble %d, %i, %s : tensor<3x16x16xf32>, tensor<3xi32>, tensor<3xi32>
          to tensor<32x32xf32, #w>
      %y = sparse_tile.matmul %x, %p, %c {kernel = "blocks"}
          : tensor<8x32xf32>, tensor<32x32xf32, #w>, tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    """
    with pytest.raises(UserError, match="sorted by columns at compile time"):
        tw.compile(text)


@pytest.mark.parametrize("target", CPUS[:2])
def test_left_operand_of_a_run(target):
    """Blocks of a left operand may come with a run."""
    text = """
    #w = #sparse_tile.tesa<block<[16, 16]>>
    func.func @main(%d: tensor<3x16x16xf32>, %i: tensor<3xi32>, %s: tensor<3xi32>, %x: tensor<32x40xf32>,
        %c: tensor<32x40xf32>) -> tensor<32x40xf32> {
      %p = sparse_tile.assemble %d, %i, %s : tensor<3x16x16xf32>, tensor<3xi32>, tensor<3xi32>
          to tensor<32x32xf32, #w>
      %y = sparse_tile.matmul %p, %x, %c {kernel = "blocks"}
          : tensor<32x32xf32, #w>, tensor<32x40xf32>, tensor<32x40xf32>
      return %y : tensor<32x40xf32>
    }
    """
    data = RNG.integers(-3, 4, (3, 16, 16)).astype(np.float32)
    x, c = (RNG.integers(-3, 4, (32, 40)).astype(np.float32) for _ in range(2))
    dense = np.zeros((32, 32), np.float32)
    dense[:16, :16], dense[16:, :16], dense[16:, 16:] = data
    indices, starts = np.array([0, 0, 1], np.int32), np.array([0, 1, 3], np.int32)
    (result,) = tw.compile(text, target, threads=2)(data, indices, starts, x, c)
    np.testing.assert_array_equal(result, dense @ x + c)
