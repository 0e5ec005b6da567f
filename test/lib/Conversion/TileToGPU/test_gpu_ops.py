# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every tile op through the GPU lowering, on the emulator (which finds races and reads of what nobody wrote)."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import run

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kernel(arguments: str, body: str, threads: int = 128) -> str:
    """A kernel @k with the index constant %c0."""
    return (
        f"tile.kernel @k({arguments}) attributes {{tile.threads = {threads} : i64}} {{\n"
        f"%c0 = arith.constant 0 : index\n{body}\ntile.return\n}}"
    )


@pytest.mark.parametrize("shape", [(8, 64), (13, 37), (1, 1), (3, 500)])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("threads", [32, 256])
def test_reduce_and_broadcast(shape: tuple[int, int], dim: int, threads: int) -> None:
    m, n = shape
    small = (1, n) if dim == 0 else (m, 1)
    s = f"{small[0]}x{small[1]}"
    text = kernel(
        f"%x: memref<{m}x{n}xf32>, %y: memref<{s}xf32>, %z: memref<{m}x{n}xf32>",
        f"""%t = tile.load %x[%c0, %c0] : memref<{m}x{n}xf32>, !tile.tile<{m}x{n}xf32>
        %r = tile.reduce max %t dims [{dim}] : !tile.tile<{m}x{n}xf32> -> !tile.tile<{s}xf32>
        tile.store %r, %y[%c0, %c0] : !tile.tile<{s}xf32>, memref<{s}xf32>
        %b = tile.broadcast %r : !tile.tile<{s}xf32> -> !tile.tile<{m}x{n}xf32>
        %d = arith.subf %t, %b : !tile.tile<{m}x{n}xf32>
        tile.store %d, %z[%c0, %c0] : !tile.tile<{m}x{n}xf32>, memref<{m}x{n}xf32>""",
        threads,
    )
    x, y, z = floats(m, n), np.zeros(small, np.float32), np.zeros(shape, np.float32)
    run(text, "k", [x, y, z])
    expected = x.max(axis=dim, keepdims=True)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, x - expected)


@pytest.mark.parametrize("size", [1, 100, 256])
@pytest.mark.parametrize("flags", ["", "exclusive", "reverse", "exclusive reverse"])
def test_scan(size: int, flags: str) -> None:
    text = kernel(
        f"%x: memref<3x{size}xi32>, %y: memref<3x{size}xi32>",
        f"""%t = tile.load %x[%c0, %c0] : memref<3x{size}xi32>, !tile.tile<3x{size}xi32>
        %s = tile.scan add %t dim 1 {flags} : !tile.tile<3x{size}xi32>
        tile.store %s, %y[%c0, %c0] : !tile.tile<3x{size}xi32>, memref<3x{size}xi32>""",
    )
    x = RNG.integers(-99, 99, (3, size)).astype(np.int32)
    y = np.zeros_like(x)
    run(text, "k", [x, y])
    flipped = x[:, ::-1] if "reverse" in flags else x
    expected = np.cumsum(flipped, axis=1)
    if "exclusive" in flags:
        expected -= flipped
    np.testing.assert_array_equal(y, expected[:, ::-1] if "reverse" in flags else expected)


@pytest.mark.parametrize("shape", [(16, 32), (7, 33)])
def test_transpose_reshape_extract_insert(shape: tuple[int, int]) -> None:
    m, n = shape
    text = kernel(
        f"%x: memref<{m}x{n}xf32>, %t: memref<{n}x{m}xf32>, %f: memref<{m * n}xf32>, %e: memref<3x5xf32>, "
        f"%i: memref<{m}x{n}xf32>, %s: memref<1xf32>",
        f"""%a = tile.load %x[%c0, %c0] : memref<{m}x{n}xf32>, !tile.tile<{m}x{n}xf32>
        %b = tile.transpose %a [1, 0] : !tile.tile<{m}x{n}xf32> -> !tile.tile<{n}x{m}xf32>
        tile.store %b, %t[%c0, %c0] : !tile.tile<{n}x{m}xf32>, memref<{n}x{m}xf32>
        %c = tile.reshape %a : !tile.tile<{m}x{n}xf32> -> !tile.tile<{m * n}xf32>
        tile.store %c, %f[%c0] : !tile.tile<{m * n}xf32>, memref<{m * n}xf32>
        %d = tile.extract %a [2, 7] : !tile.tile<{m}x{n}xf32> -> !tile.tile<3x5xf32>
        tile.store %d, %e[%c0, %c0] : !tile.tile<3x5xf32>, memref<3x5xf32>
        %g = tile.insert %d into %a [1, 4] : !tile.tile<3x5xf32> into !tile.tile<{m}x{n}xf32>
        tile.store %g, %i[%c0, %c0] : !tile.tile<{m}x{n}xf32>, memref<{m}x{n}xf32>
        %h = tile.extract %a [3, 11] : !tile.tile<{m}x{n}xf32> -> f32
        %j = tile.splat %h : f32 -> !tile.tile<1xf32>
        tile.store %j, %s[%c0] : !tile.tile<1xf32>, memref<1xf32>""",
    )
    x = floats(m, n)
    out = [np.zeros(s, np.float32) for s in ((n, m), (m * n,), (3, 5), (m, n), (1,))]
    run(text, "k", [x, *out])
    np.testing.assert_array_equal(out[0], x.T)
    np.testing.assert_array_equal(out[1], x.ravel())
    np.testing.assert_array_equal(out[2], x[2:5, 7:12])
    inserted = x.copy()
    inserted[1:4, 4:9] = x[2:5, 7:12]
    np.testing.assert_array_equal(out[3], inserted)
    np.testing.assert_array_equal(out[4], x[3:4, 11])


@pytest.mark.parametrize("valid", [(8, 64), (5, 64), (5, 61), (0, 64), (9, 70)])
def test_ragged_edges(valid: tuple[int, int]) -> None:
    text = kernel(
        "%x: memref<8x64xf32>, %y: memref<8x64xf32>, %m: index, %n: index",
        """%pad = arith.constant -1.0 : f32
        %t = tile.load %x[%c0, %c0] valid (%m, %n) pad %pad : memref<8x64xf32>, !tile.tile<8x64xf32>
        %d = arith.addf %t, %t : !tile.tile<8x64xf32>
        tile.store %d, %y[%c0, %c0] : !tile.tile<8x64xf32>, memref<8x64xf32>""",
    )
    x, y = floats(8, 64), np.zeros((8, 64), np.float32)
    run(text, "k", [x, y, np.int64(valid[0]), np.int64(valid[1])])
    expected = np.full_like(x, -1.0)
    expected[: valid[0], : valid[1]] = x[: valid[0], : valid[1]]
    np.testing.assert_array_equal(y, 2 * expected)


def test_gather_scatter_and_strides() -> None:
    rows, tile = "indices !tile.tile<6xi32>", "!tile.tile<6x24xf32>"
    text = kernel(
        "%x: memref<20x24xf32>, %i: memref<6xi32>, %y: memref<20x24xf32>, %z: memref<12x10xf32>, %w: memref<20x24xf32>",
        f"""%idx = tile.load %i[%c0] : memref<6xi32>, !tile.tile<6xi32>
        %g = tile.load %x[%c0, %c0] indices %idx along 0 : memref<20x24xf32>, {tile} ({rows})
        tile.store %g, %y[%c0, %c0] indices %idx along 0 : {tile}, memref<20x24xf32> ({rows})
        %s = tile.load %x[%c0, %c0] dims [1, 0] steps [2, 2] : memref<20x24xf32>, !tile.tile<12x10xf32>
        tile.store %s, %z[%c0, %c0] : !tile.tile<12x10xf32>, memref<12x10xf32>
        tile.store %g, %w[%c0, %c0] indices %idx along 0 reduce add atomic : {tile}, memref<20x24xf32> ({rows})""",
    )
    x, idx = floats(20, 24), np.array([3, 19, 0, 7, 8, 2], np.int32)
    y, z, w = np.zeros_like(x), np.zeros((12, 10), np.float32), floats(20, 24)
    before = w.copy()
    run(text, "k", [x, idx, y, z, w])
    expected = np.zeros_like(x)
    expected[idx] = x[idx]
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, x[::2, ::2].T)
    np.testing.assert_allclose(w, before + expected, rtol=1e-6)


def test_indices_that_repeat() -> None:
    """A histogram: every element counts, also where threads meet at one place."""
    text = kernel(
        "%i: memref<200xi32>, %y: memref<5xi32>",
        """%one = arith.constant dense<1> : !tile.tile<200xi32>
        %idx = tile.load %i[%c0] : memref<200xi32>, !tile.tile<200xi32>
        tile.store %one, %y[%c0] indices %idx along 0 reduce add
          : !tile.tile<200xi32>, memref<5xi32> (indices !tile.tile<200xi32>)""",
    )
    idx, y = RNG.integers(0, 5, 200).astype(np.int32), np.zeros(5, np.int32)
    run(text, "k", [idx, y])
    np.testing.assert_array_equal(y, np.bincount(idx, minlength=5))


def test_open_sizes_and_strides() -> None:
    text = kernel(
        "%x: memref<?x?xf32>, %y: memref<8x16xf32, strided<[?, 1], offset: ?>>",
        """%t = tile.load %x[%c0, %c0] : memref<?x?xf32>, !tile.tile<8x16xf32>
        tile.store %t, %y[%c0, %c0] : !tile.tile<8x16xf32>, memref<8x16xf32, strided<[?, 1], offset: ?>>""",
    )
    x, y = floats(9, 17), np.zeros((8, 16), np.float32)
    run(text, "k", [x, y])
    np.testing.assert_array_equal(y, x[:8, :16])


def test_order_of_memory() -> None:
    """A buffer in shared memory that is written, read transposed, and written again, in a loop; a scalar too."""
    text = kernel(
        "%x: memref<32x32xf32>, %n: memref<1xf32>",
        """%c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %one = arith.constant 1.0 : f32
        %s = tile.alloc : memref<32x32xf32, #tile.level<"shared">>
        scf.for %i = %c0 to %c3 step %c1 {
          %t = tile.load %x[%c0, %c0] : memref<32x32xf32>, !tile.tile<32x32xf32>
          tile.store %t, %s[%c0, %c0] : !tile.tile<32x32xf32>, memref<32x32xf32, #tile.level<"shared">>
          %u = tile.load %s[%c0, %c0] dims [1, 0] : memref<32x32xf32, #tile.level<"shared">>, !tile.tile<32x32xf32>
          %d = arith.addf %u, %u : !tile.tile<32x32xf32>
          tile.store %d, %x[%c0, %c0] : !tile.tile<32x32xf32>, memref<32x32xf32>
          %old = memref.load %n[%c0] : memref<1xf32>
          %new = arith.addf %old, %one : f32
          memref.store %new, %n[%c0] : memref<1xf32>
        }""",
    )
    x, n = floats(32, 32), np.zeros(1, np.float32)
    expected = 8 * x.T
    run(text, "k", [x, n])
    np.testing.assert_array_equal(x, expected)
    assert n[0] == 3


def test_constants_of_many_values() -> None:
    values = ", ".join(f"{v}.0" for v in range(12))
    text = kernel(
        "%y: memref<12xf32>",
        f"""%t = arith.constant dense<[{values}]> : !tile.tile<12xf32>
        tile.store %t, %y[%c0] : !tile.tile<12xf32>, memref<12xf32>""",
    )
    y = np.zeros(12, np.float32)
    run(text, "k", [y])
    np.testing.assert_array_equal(y, np.arange(12))


@pytest.mark.parametrize("raster", [None, 2])
def test_grid(raster: int | None) -> None:
    """Each task writes its coordinates; a bound is known, another is a parameter."""
    order = f", tile.raster = {raster} : i64" if raster else ""
    text = f"""tile.kernel @k(%x: memref<2x5x3x1xi32>) grid(%i, %j, %k) attributes {{tile.threads = 32 : i64,
        tile.grid = array<i64: 2, -9223372036854775808, 3>{order}}} {{
      %c0 = arith.constant 0 : index
      %c10 = arith.constant 10 : index
      %a = arith.muli %i, %c10 : index
      %b = arith.addi %a, %j : index
      %c = arith.muli %b, %c10 : index
      %d = arith.addi %c, %k : index
      %e = arith.index_cast %d : index to i32
      %t = tile.splat %e : i32 -> !tile.tile<1xi32>
      tile.store %t, %x[%i, %j, %k, %c0] : !tile.tile<1xi32>, memref<2x5x3x1xi32>
      tile.return
    }}"""
    x = np.full((2, 5, 3, 1), -1, np.int32)
    run(text, "k", [x], (2, 5, 3))
    i, j, k = np.indices((2, 5, 3))
    np.testing.assert_array_equal(x[..., 0], 100 * i + 10 * j + k)


@pytest.mark.parametrize("raster", [None, 2, 6])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("cluster", [(1, 1, 2), (1, 2, 1), (2, 1, 1), (1, 2, 2)])
def test_grid_of_clusters(raster: int | None, persistent: bool, cluster: tuple[int, int, int]) -> None:
    """Each task writes its coordinates, and which block of its cluster ran it: that of its place in the cluster."""
    order = f", tile.raster = {raster} : i64" if raster else ""
    order += ", tile.persistent = 2 : i64" if persistent else ""
    text = f"""tile.kernel @k(%x: memref<2x6x4x1xi32>) grid(%i, %j, %k) cluster {list(cluster)} attributes {{
        tile.threads = 32 : i64, tile.grid = array<i64: 2, 6, 4>{order}}} {{
      %c0 = arith.constant 0 : index
      %c10 = arith.constant 10 : index
      %a = arith.muli %i, %c10 : index
      %b = arith.addi %a, %j : index
      %c = arith.muli %b, %c10 : index
      %d = arith.addi %c, %k : index
      %e = arith.muli %d, %c10 : index
      %r = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %f = arith.index_cast %e : index to i32
      %g = arith.addi %f, %r : i32
      %t = tile.splat %g : i32 -> !tile.tile<1xi32>
      tile.store %t, %x[%i, %j, %k, %c0] : !tile.tile<1xi32>, memref<2x6x4x1xi32>
      tile.return
    }}"""
    x = np.full((2, 6, 4, 1), -1, np.int32)
    run(text, "k", [x], (2, 6, 4), "sm_90a")
    i, j, k = np.indices((2, 6, 4))
    rank = (i % cluster[0] * cluster[1] + j % cluster[1]) * cluster[2] + k % cluster[2]
    np.testing.assert_array_equal(x[..., 0], 1000 * i + 100 * j + 10 * k + rank)
