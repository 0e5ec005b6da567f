# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pipelined kernel computes what the plain one does, whenever its copies complete (reference interpreter)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.registry import load_builtin_passes

SEEDS = [None, 0, 1]
# Rows of A, columns of B, depth: one step, as many as slots, more, ragged everywhere; blocks are 32x32x16.
SIZES = [(32, 32, 16), (32, 32, 64), (64, 32, 144), (40, 24, 88)]

# C = A B^T (B stored NxK) or A B; ragged edges by `valid`.
GEMM = """
tile.kernel @gemm(%a: memref<{m}x{k}xf16>, %b: memref<{b}xf16>, %c: memref<{m}x{n}xf32>, %depth: index) grid(%i, %j) {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %rows = arith.constant {m} : index
  %columns = arith.constant {n} : index
  %all = arith.constant {k} : index
  %row = arith.muli %i, %c32 : index
  %column = arith.muli %j, %c32 : index
  %m = arith.subi %rows, %row : index
  %n = arith.subi %columns, %column : index
  %zero = arith.constant dense<0.0> : !tile.tile<32x32xf32>
  %sum = scf.for %k = %c0 to {upper} step %c16 iter_args(%acc = %zero) -> (!tile.tile<32x32xf32>) {{
    %left = arith.subi %all, %k : index
    %x = tile.load %a[%row, %k] valid (%m, %left) : memref<{m}x{k}xf16>, !tile.tile<32x16xf16>
    %y = tile.load %b[{at}] {dims} valid (%left, %n) : memref<{b}xf16>, !tile.tile<16x32xf16>
    %p = tile.mma %x, %y, %acc : !tile.tile<32x16xf16>, !tile.tile<16x32xf16>, !tile.tile<32x32xf32>
    scf.yield %p : !tile.tile<32x32xf32>
  }} {{tile.stages = {stages} : i64}}
  tile.store %sum, %c[%row, %column] valid (%m, %n) : !tile.tile<32x32xf32>, memref<{m}x{n}xf32>
  tile.return
}}
"""


def gemm(m: int, n: int, k: int, stages: int, transposed: bool, open_depth: bool) -> str:
    """The kernel's text; with `open_depth`, its number of steps is an argument."""
    return GEMM.format(
        m=m,
        n=n,
        k=k,
        stages=stages,
        upper="%depth" if open_depth else "%all",
        b=f"{n}x{k}" if transposed else f"{k}x{n}",
        at="%column, %k" if transposed else "%k, %column",
        dims="dims [1, 0]" if transposed else "dims [0, 1]",
    )


def run_pipelined(text: str, kernel: str, args: list, grid: list[int], seed: int | None) -> str:
    """Run the kernel after the pass; return its text."""
    with ir.Context() as context, ir.Location.unknown():
        load_builtin_passes()
        module = ir.Module.parse(text, context)
        run_pipeline(module.operation, "builtin.module(tile-pipeline-loads,canonicalize,cse)")
        reference.run_kernel(module, kernel, args, grid, seed=seed)
        return str(module)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_gemm(m: int, n: int, k: int, stages: int, seed: int | None) -> None:
    rng = np.random.default_rng(m + n + k)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((n, k)).astype(np.float16)
    for transposed, open_depth in [(True, False), (False, True)]:
        c = np.full((m, n), np.nan, np.float32)
        operand = b if transposed else np.ascontiguousarray(b.T)
        text = gemm(m, n, k, stages, transposed, open_depth)
        after = run_pipelined(text, "gemm", [a, operand, c, k], [-(-m // 32), -(-n // 32)], seed)
        assert "tile.async" in after
        np.testing.assert_allclose(c, a.astype(np.float32) @ b.T.astype(np.float32), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_steps(seed: int | None) -> None:
    """A loop that does not run at all loads nothing, and gives what it starts from."""
    a, b, c = np.zeros((32, 16), np.float16), np.zeros((16, 32), np.float16), np.full((32, 32), np.nan, np.float32)
    run_pipelined(gemm(32, 32, 16, 3, False, True), "gemm", [a, b, c, 0], [1, 1], seed)
    np.testing.assert_array_equal(c, 0)
