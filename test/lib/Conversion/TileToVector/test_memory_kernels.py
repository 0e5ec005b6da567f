# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of every kind, compiled and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from lib.Conversion.native import Kernel

RNG = np.random.default_rng(1)
CONSTANTS = "".join(f"  %c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 32, 64))


def kernel(arguments: str, body: str, grid: str = "") -> Kernel:
    """A kernel @k with index constants %cN in scope."""
    text = f"tile.kernel @k({arguments}) {grid} {{\n{CONSTANTS}{body}\n  tile.return\n}}"
    return Kernel(text, "k")


def floats(*shape: int) -> np.ndarray:
    """Random f32."""
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 40, 48, 63])
def test_ragged_widths_touch_nothing_outside(width: int) -> None:
    """A tile of any width is copied, and its neighbours stay as they are."""
    run = kernel(
        "%x: memref<6x80xf32>, %y: memref<6x80xf32>",
        f"""  %t = tile.load %x[%c1, %c2] : memref<6x80xf32>, !tile.tile<3x{width}xf32>
  %d = arith.addf %t, %t : !tile.tile<3x{width}xf32>
  tile.store %d, %y[%c2, %c4] : !tile.tile<3x{width}xf32>, memref<6x80xf32>""",
    )
    x, y = floats(6, 80), floats(6, 80)
    want = y.copy()
    want[2:5, 4 : 4 + width] = 2 * x[1:4, 2 : 2 + width]
    run(x, y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("shape", [(8, 8), (16, 16), (8, 32), (32, 8), (5, 13), (16, 3), (4, 40), (20, 16), (3, 2)])
@pytest.mark.parametrize("direction", ["load", "store", "registers"])
def test_transposed(shape: tuple[int, int], direction: str) -> None:
    """Tiles whose rows run along memory, and tile.transpose."""
    m, n = shape
    tile, transposed = f"!tile.tile<{m}x{n}xf32>", f"!tile.tile<{n}x{m}xf32>"
    source, target = "memref<40x48xf32>", "memref<48x40xf32>"
    body = {
        "load": f"""  %t = tile.load %x[%c1, %c2] dims [1, 0] : {source}, {transposed}
  tile.store %t, %y[%c3, %c4] : {transposed}, {target}""",
        "store": f"""  %t = tile.load %x[%c1, %c2] : {source}, {tile}
  tile.store %t, %y[%c3, %c4] dims [1, 0] : {tile}, {target}""",
        "registers": f"""  %s = tile.load %x[%c1, %c2] : {source}, {tile}
  %t = tile.transpose %s [1, 0] : {tile} -> {transposed}
  tile.store %t, %y[%c3, %c4] : {transposed}, {target}""",
    }[direction]
    run = kernel(f"%x: {source}, %y: {target}", body)
    x, y = floats(40, 48), floats(48, 40)
    want = y.copy()
    want[3 : 3 + n, 4 : 4 + m] = x[1 : 1 + m, 2 : 2 + n].T
    run(x, y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("width", [1, 7, 16, 24])
def test_strided(width: int) -> None:
    """Steps in both dimensions, in a load and in a store."""
    tile = f"!tile.tile<4x{width}xf32>"
    run = kernel(
        "%x: memref<16x80xf32>, %y: memref<16x80xf32>",
        f"""  %t = tile.load %x[%c1, %c2] steps [2, 3] : memref<16x80xf32>, {tile}
  tile.store %t, %y[%c2, %c1] steps [3, 2] : {tile}, memref<16x80xf32>""",
    )
    x, y = floats(16, 80), floats(16, 80)
    want = y.copy()
    want[2:14:3, 1 : 1 + 2 * width : 2] = x[1:9:2, 2 : 2 + 3 * width : 3]
    run(x, y)
    np.testing.assert_array_equal(y, want)


def test_dynamic_sizes_and_strides() -> None:
    """A memref of unknown sizes, strides and offset."""
    memref = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
    run = kernel(
        f"%x: {memref}, %y: {memref}",
        f"""  %t = tile.load %x[%c1, %c2] : {memref}, !tile.tile<4x13xf32>
  tile.store %t, %y[%c0, %c3] : !tile.tile<4x13xf32>, {memref}""",
    )
    x, y = floats(20, 40)[::2, ::2], floats(8, 90)[:, ::3]
    want = y.copy()
    want[0:4, 3:16] = x[1:5, 2:15]
    run(x, y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("index", ["index", "i64", "i32"])
@pytest.mark.parametrize("along", [0, 1])
def test_gather_and_scatter(index: str, along: int) -> None:
    """Index lists along rows and along lanes."""
    count = 8 if along == 0 else 21
    lists = f"!tile.tile<{count}x{index}>"
    tile = "!tile.tile<8x21xf32>"
    dtype = np.int32 if index == "i32" else np.int64
    run = kernel(
        f"%x: memref<50x60xf32>, %i: memref<{count}x{index}>, %y: memref<50x60xf32>",
        f"""  %n = tile.load %i[%c0] : memref<{count}x{index}>, {lists}
  %t = tile.load %x[%c1, %c2] indices %n along {along} : memref<50x60xf32>, {tile} (indices {lists})
  tile.store %t, %y[%c2, %c1] indices %n along {along} : {tile}, memref<50x60xf32> (indices {lists})""",
    )
    x, y = floats(50, 60), floats(50, 60)
    picked = RNG.permutation(38)[:count].astype(dtype)
    want = y.copy()
    if along == 0:
        want[2 + picked, 1:22] = x[1 + picked, 2:23]
    else:
        want[2:10, 1 + picked] = x[1:9, 2 + picked]
    run(x, picked, y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("width", [1, 3, 4, 8, 16, 21, 40])
def test_tables_of_four(width: int) -> None:
    """Each lane picks one of four floats in a register, wherever they lie."""
    lists, table = f"!tile.tile<{width}xi32>", "memref<4xf32, strided<[1], offset: ?>>"
    run = kernel(
        f"%x: memref<50xf32>, %i: memref<{width}xi32>, %y: memref<{width}xf32>",
        f"""  %w = memref.subview %x[%c7] [4] [1] : memref<50xf32> to {table}
  %two = arith.constant dense<2> : {lists}
  %three = arith.constant dense<3> : {lists}
  %n = tile.load %i[%c0] : memref<{width}xi32>, {lists}
  %h = arith.shrui %n, %two : {lists}
  %p = arith.andi %h, %three : {lists}
  %t = tile.load %w[%c0] indices %p along 0 : {table}, !tile.tile<{width}xf32> (indices {lists})
  tile.store %t, %y[%c0] : !tile.tile<{width}xf32>, memref<{width}xf32>""",
    )
    x, y, packed = floats(50), floats(width), RNG.integers(0, 2**31, width).astype(np.int32)
    run(x, packed, y)
    np.testing.assert_array_equal(y, x[7 + (packed >> 2 & 3)])


@pytest.mark.parametrize("rows", [0, 1, 5, 8, 11])
@pytest.mark.parametrize("columns", [0, 3, 16, 20, 21, 40])
def test_valid_reads_pad_and_writes_nothing_beyond(rows: int, columns: int) -> None:
    """Bounds known at run time only; the memref ends where they say."""
    tile = "!tile.tile<8x21xf32>"
    run = kernel(
        "%x: memref<?x?xf32>, %r: index, %w: index, %all: memref<8x21xf32>, %y: memref<40x50xf32>",
        f"""  %pad = arith.constant -1.5 : f32
  %t = tile.load %x[%c0, %c0] valid (%r, %w) pad %pad : memref<?x?xf32>, {tile}
  tile.store %t, %all[%c0, %c0] : {tile}, memref<8x21xf32>
  tile.store %t, %y[%c2, %c3] valid (%r, %w) : {tile}, memref<40x50xf32>""",
    )
    r, w = min(rows, 8), min(columns, 21)
    x, y, every = floats(r, w), floats(40, 50), floats(8, 21)
    want, want_all = y.copy(), np.full((8, 21), -1.5, np.float32)
    want[2 : 2 + r, 3 : 3 + w] = want_all[:r, :w] = x
    run(x, np.array(rows), np.array(columns), every, y)
    np.testing.assert_array_equal(every, want_all)
    np.testing.assert_array_equal(y, want)


def test_scalar_column_with_valid() -> None:
    """A column of scalars is guarded element by element."""
    run = kernel(
        "%x: memref<?x4xf32>, %r: index, %y: memref<8x1xf32>",
        """  %t = tile.load %x[%c0, %c2] valid (%r, %c1) : memref<?x4xf32>, !tile.tile<8x1xf32>
  tile.store %t, %y[%c0, %c0] : !tile.tile<8x1xf32>, memref<8x1xf32>""",
    )
    x, y = floats(5, 4), floats(8, 1)
    run(x, np.array(5), y)
    np.testing.assert_array_equal(y[:5, 0], x[:, 2])
    np.testing.assert_array_equal(y[5:], 0)


@pytest.mark.parametrize("kind,function", [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("atomic", ["", "atomic"])
def test_combining_store(kind: str, function: np.ufunc, atomic: str) -> None:
    """Memory becomes memory op value."""
    tile = "!tile.tile<3x19xf32>"
    run = kernel(
        "%x: memref<3x19xf32>, %y: memref<5x30xf32>",
        f"""  %t = tile.load %x[%c0, %c0] : memref<3x19xf32>, {tile}
  tile.store %t, %y[%c1, %c2] reduce {kind} {atomic} : {tile}, memref<5x30xf32>""",
    )
    x, y = floats(3, 19), floats(5, 30)
    want = y.copy()
    want[1:4, 2:21] = function(want[1:4, 2:21], x)
    run(x, y)
    np.testing.assert_array_equal(y, want)


def test_scatter_add_counts_repeated_positions() -> None:
    """Two lanes that name one position are both added."""
    lists, tile = "!tile.tile<20xindex>", "!tile.tile<20xf32>"
    run = kernel(
        "%x: memref<20xf32>, %i: memref<20xindex>, %y: memref<8xf32>",
        f"""  %n = tile.load %i[%c0] : memref<20xindex>, {lists}
  %t = tile.load %x[%c0] : memref<20xf32>, {tile}
  tile.store %t, %y[%c0] indices %n along 0 reduce add : {tile}, memref<8xf32> (indices {lists})""",
    )
    x, y, picked = floats(20), np.zeros(8, np.float32), RNG.integers(0, 8, 20)
    want = y.copy()
    np.add.at(want, picked, x)
    run(x, picked, y)
    np.testing.assert_allclose(y, want, rtol=1e-6)


@pytest.mark.parametrize("dtype,name", [(np.bool_, "i1"), (np.int8, "i8"), (np.int64, "i64"), (np.float64, "f64")])
def test_element_types_in_memory(dtype: type, name: str) -> None:
    """Bools are bytes in memory; every other type has its width."""
    tile = f"!tile.tile<3x21x{name}>"
    run = kernel(
        f"%x: memref<3x30x{name}>, %y: memref<3x30x{name}>",
        f"""  %t = tile.load %x[%c0, %c2] : memref<3x30x{name}>, {tile}
  tile.store %t, %y[%c0, %c1] : {tile}, memref<3x30x{name}>""",
    )
    x, y = (RNG.integers(0, 2, (3, 30)).astype(dtype) for _ in range(2))
    want = y.copy()
    want[:, 1:22] = x[:, 2:23]
    run(x, y)
    np.testing.assert_array_equal(y, want)


def test_local_buffer_and_tasks() -> None:
    """tile.alloc has a place per task; the first grid id varies slowest."""
    run = kernel(
        "%x: memref<6x4x32xf32>, %y: memref<6x4x32xf32>",
        """  %b = tile.alloc : memref<2x32xf32, #tile.level<"l1">>
  %t = tile.load %x[%i, %j, %c0] : memref<6x4x32xf32>, !tile.tile<32xf32>
  tile.store %t, %b[%c1, %c0] : !tile.tile<32xf32>, memref<2x32xf32, #tile.level<"l1">>
  %u = tile.load %b[%c1, %c0] : memref<2x32xf32, #tile.level<"l1">>, !tile.tile<32xf32>
  %k = arith.muli %i, %c4 : index
  %n = arith.addi %k, %j : index
  %w = arith.index_cast %n : index to i32
  %f = arith.sitofp %w : i32 to f32
  %s = tile.splat %f : f32 -> !tile.tile<32xf32>
  %r = arith.addf %u, %s : !tile.tile<32xf32>
  tile.store %r, %y[%i, %j, %c0] : !tile.tile<32xf32>, memref<6x4x32xf32>""",
        "grid(%i, %j)",
    )
    x, y = floats(6, 4, 32), floats(6, 4, 32)
    run(x, y, grid=(6, 4))
    np.testing.assert_array_equal(y, x + np.arange(24, dtype=np.float32).reshape(6, 4, 1))
