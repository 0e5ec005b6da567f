# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dealt steps compute what whole tiles do, for any numbers of tiles, steps and blocks (reference interpreter).

The interpreter refuses a task that would wait for a later one, and semaphores that are not zero in the end.
"""

from __future__ import annotations

import random

import numpy as np

from tilewright import reference
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.registry import load_builtin_passes

PRODUCT = """
tile.kernel @product(%x: memref<{rows}x{depth}xf32>, %w: memref<{depth}x{lanes}xf32>,
                     %y: memref<{rows}x{lanes}xf32>) grid(%i, %j)
    attributes {{tile.stream_k = {blocks} : i64, tile.persistent = 1 : i64, tile.raster = {raster} : i64}} {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %depth = arith.constant {depth} : index
  %zero = arith.constant dense<0.0> : !tile.tile<4x4xf32>
  %row = arith.muli %i, %c4 : index
  %lane = arith.muli %j, %c4 : index
  %sum = scf.for %k = %c0 to %depth step %c4 iter_args(%s = %zero) -> (!tile.tile<4x4xf32>) {{
    %a = tile.load %x[%row, %k] : memref<{rows}x{depth}xf32>, !tile.tile<4x4xf32>
    %b = tile.load %w[%k, %lane] : memref<{depth}x{lanes}xf32>, !tile.tile<4x4xf32>
    %n = tile.mma %a, %b, %s : !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>
    scf.yield %n : !tile.tile<4x4xf32>
  }} {{tile.stages = 2 : i64}}
  tile.store %sum, %y[%row, %lane] : !tile.tile<4x4xf32>, memref<{rows}x{lanes}xf32>
  tile.return
}}
func.func @main(%x: tensor<{rows}x{depth}xf32>, %w: tensor<{depth}x{lanes}xf32>) -> tensor<{rows}x{lanes}xf32> {{
  %m = arith.constant {m} : index
  %n = arith.constant {n} : index
  %e = tensor.empty() : tensor<{rows}x{lanes}xf32>
  %y = tile.launch @product grid(%m, %n)
      ins(%x, %w : tensor<{rows}x{depth}xf32>, tensor<{depth}x{lanes}xf32>)
      outs(%e : tensor<{rows}x{lanes}xf32>) -> (tensor<{rows}x{lanes}xf32>)
  return %y : tensor<{rows}x{lanes}xf32>
}}
"""


def test_any_numbers_of_tiles_steps_and_blocks() -> None:
    choice, split = random.Random(1), 0
    with ir.Context() as context, ir.Location.unknown():
        load_builtin_passes()
        for _ in range(24):
            m, n, steps, blocks = (choice.randint(1, most) for most in (5, 4, 6, 7))
            rows, lanes, depth = 4 * m, 4 * n, 4 * steps
            sizes = {"m": m, "n": n, "rows": rows, "lanes": lanes, "depth": depth}
            text = PRODUCT.format(**sizes, blocks=blocks + 1, raster=choice.randint(1, 3))
            module = ir.Module.parse(text, context)
            run_pipeline(module.operation, "builtin.module(tile-stream-k,canonicalize,cse)")
            split += "tile.semaphores" in str(module)
            numbers = np.random.default_rng(m + n)
            x, w = (numbers.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, depth), (depth, lanes)))
            (y,) = reference.run(module, "main", [x, w])
            np.testing.assert_array_equal(y, x @ w)
    assert split > 8
