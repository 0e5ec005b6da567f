# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile.mma` with metadata on tensor cores, on the emulator: 2:4 sparse products of all types against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

ARCHS = ("sm_80", "sm_90a")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


def kernel_text(rows: int, columns: int, depth: int, kind: str, meta: str) -> str:
    """A task multiplies `rows` rows of a condensed `a` with all of `b`."""
    sums, zero = ("i32", "0") if kind == "i8" else ("f32", "0.0")
    half, width = depth // 2, depth // 2 if meta == "i8" else depth // 16
    a, b, c = (f"{m}x{n}x{t}" for m, n, t in ((rows, half, kind), (depth, columns, kind), (rows, columns, sums)))
    return f"""
tile.kernel @sparse(%a: memref<?x{half}x{kind}>, %meta: memref<?x{width}x{meta}>, %b: memref<{b}>,
                    %c: memref<?x{columns}x{sums}>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %rows = arith.constant {rows} : index
  %row = arith.muli %i, %rows : index
  %zero = arith.constant dense<{zero}> : !tile.tile<{c}>
  %at = tile.load %a[%row, %c0] : memref<?x{half}x{kind}>, !tile.tile<{a}>
  %mt = tile.load %meta[%row, %c0] : memref<?x{width}x{meta}>, !tile.tile<{rows}x{width}x{meta}>
  %bt = tile.load %b[%c0, %c0] : memref<{b}>, !tile.tile<{b}>
  %sum = tile.mma %at, %bt, %zero meta %mt sparsity [2, 4]
      : !tile.tile<{a}>, !tile.tile<{b}>, !tile.tile<{c}>, !tile.tile<{rows}x{width}x{meta}>
  tile.store %sum, %c[%row, %c0] : !tile.tile<{c}>, memref<?x{columns}x{sums}>
  tile.return
}}
"""


def sparse_operand(rows: int, depth: int, dtype: type, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kept elements [rows, depth / 2], their positions in groups of four, and the whole matrix [rows, depth]."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((rows, depth // 4, 4)), axis=-1)
    positions = np.sort(order[..., :2], axis=-1).reshape(rows, depth // 2)
    kept = rng.integers(-5, 6, (rows, depth // 2))
    dense = np.zeros((rows, depth), np.int64)
    np.put_along_axis(dense, np.arange(depth // 2) // 2 * 4 + positions, kept, axis=1)
    return kept.astype(dtype), positions, dense


def packed(positions: np.ndarray) -> np.ndarray:
    """Eight positions in an int16, the first in the lowest bits."""
    eights = positions.reshape(len(positions), -1, 8)
    return (eights << 2 * np.arange(8)).sum(-1).astype(np.uint16).view(np.int16)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("rows", "columns", "depth", "meta"),
    [(16, 24, 32, "i8"), (16, 8, 16, "i16"), (64, 64, 64, "i16"), (32, 16, 96, "i16"), (40, 40, 64, "i8")],
)
def test_positions_find_their_rows(arch: str, kind: str, rows: int, columns: int, depth: int, meta: str) -> None:
    """Metadata of a byte each and packed, tiles of one warp and of several, depths that fill words and do not."""
    a, positions, dense = sparse_operand(2 * rows, depth, TYPES[kind], depth)
    codes = positions.astype(np.int8) if meta == "i8" else packed(positions)
    b = np.random.default_rng(1).integers(-5, 6, (depth, columns)).astype(TYPES[kind])
    c = np.empty((2 * rows, columns), np.int32 if kind == "i8" else np.float32)
    kernel = tw.kernel(kernel_text(rows, columns, depth, kind, meta), target=f"cuda:{arch}", emulate=True)
    kernel(a, codes, b, c, grid=[2])
    np.testing.assert_array_equal(c, dense @ b.astype(np.int64))


@pytest.mark.parametrize("arch", ARCHS)
def test_two_equal_positions_are_refused(arch: str) -> None:
    """What the instruction leaves undefined is no result."""
    a, positions, _ = sparse_operand(16, 32, np.float16, 0)
    positions[3, 6:8] = 2
    b, c = np.ones((32, 8), np.float16), np.empty((16, 8), np.float32)
    kernel = tw.kernel(kernel_text(16, 8, 32, "f16", "i8"), target=f"cuda:{arch}", emulate=True)
    with pytest.raises(Exception, match="two equal positions"):
        kernel(a, positions.astype(np.int8), b, c, grid=[1])
