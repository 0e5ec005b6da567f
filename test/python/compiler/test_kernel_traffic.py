# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes per level of memory, counted from a kernel's text."""

from __future__ import annotations

import pytest

from tilewright.compiler.kernel_traffic import kernel_traffic
from tilewright.dialects import tile  # noqa: F401 (registers the dialect)
from tilewright.mlir import ir

# 64 blocks of 8 rows; each reads its rows once and the whole of %b (64 KB) again.
PRODUCT = """
tile.kernel @k(%a: memref<512x512xf32>, %b: memref<512x32xf32>, %c: memref<512x32xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = arith.constant 512 : index
  %row = arith.muli %i, %c8 : index
  %zero = arith.constant dense<0.0> : !tile.tile<8x32xf32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!tile.tile<8x32xf32>) {
    %l = tile.load %a[%row, %k] : memref<512x512xf32>, !tile.tile<8x1xf32>
    %r = tile.load %b[%k, %c0] : memref<512x32xf32>, !tile.tile<1x32xf32>
    %next = tile.mma %l, %r, %acc : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
    scf.yield %next : !tile.tile<8x32xf32>
  }
  tile.store %sum, %c[%row, %c0] : !tile.tile<8x32xf32>, memref<512x32xf32>
  tile.return
}
"""
A, B, C = 512 * 512 * 4, 512 * 32 * 4, 512 * 32 * 4


def traffic(text: str, grid: list[int | None], *sizes: int) -> list[int]:
    with ir.Context():
        module = ir.Module.parse(text)
        caches = [(f"level{i}", size) for i, size in enumerate([*sizes, 1 << 40])]
        return list(kernel_traffic(module.body.operations[0], grid, caches).values())


def test_what_fits_is_moved_once() -> None:
    registers, beyond = traffic(PRODUCT, [64], 4 << 20)
    assert registers == A + 64 * B + C
    assert beyond == A + B + C


def test_what_does_not_fit_is_moved_again() -> None:
    # One task (16 KB of %a, 64 KB of %b, 1 KB of %c) fits into 128 KB but not into 32 KB.
    assert traffic(PRODUCT, [64], 128 << 10)[1] == A + B + C
    assert traffic(PRODUCT, [64], 32 << 10)[1] == A + 64 * B + C


def test_bounds_that_are_not_known_count_once() -> None:
    assert traffic(PRODUCT, [None], 4 << 20)[0] == A // 64 + B + C // 64


@pytest.mark.parametrize("offset", ["%i", "%c0"])
def test_views_and_single_elements(offset: str) -> None:
    text = f"""
    tile.kernel @k(%x: memref<8x4xf32>, %y: memref<8xf32>) grid(%i) {{
      %c0 = arith.constant 0 : index
      %row = memref.subview %x[{offset}, 0] [1, 4] [1, 1]
          : memref<8x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
      %v = memref.load %row[%c0, %c0] : memref<1x4xf32, strided<[4, 1], offset: ?>>
      memref.store %v, %y[%i] : memref<8xf32>
      tile.return
    }}
    """
    registers, beyond = traffic(text, [8], 1 << 20)
    assert registers == 8 * 4 + 8 * 4
    assert beyond == (8 * 4 if offset == "%i" else 4) + 8 * 4
