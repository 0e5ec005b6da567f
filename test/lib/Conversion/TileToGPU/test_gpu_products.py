# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tile.mma through the GPU lowering: element types, ragged tiles, transposed operands, on the emulator and ptxas."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from gpu_kernels import ARCHS, assemble, compile_kernels, run

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i32": np.int32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
RNG = np.random.default_rng(3)


def gemm(
    shape: tuple[int, int, int], tile: tuple[int, int, int], kinds: tuple[str, str], flags: str, transposed: bool
) -> str:
    """C = A @ B in tiles; `transposed`: B is stored by columns."""
    (m, n, k), (tm, tn, tk), (a, c) = shape, tile, kinds
    b = f"memref<{n}x{k}x{a}>" if transposed else f"memref<{k}x{n}x{a}>"
    place, dims = ("%col, %k", "dims [1, 0]") if transposed else ("%k, %col", "")
    sums = f"!tile.tile<{tm}x{tn}x{c}>"
    x, y = f"!tile.tile<{tm}x{tk}x{a}>", f"!tile.tile<{tk}x{tn}x{a}>"
    return f"""tile.kernel @gemm(%a: memref<{m}x{k}x{a}>, %b: {b}, %c: memref<{m}x{n}x{c}>) grid(%i, %j)
        attributes {{tile.grid = array<i64: {m // tm}, {n // tn}>}} {{
      %c0 = arith.constant 0 : index
      %cm = arith.constant {tm} : index
      %cn = arith.constant {tn} : index
      %ck = arith.constant {tk} : index
      %depth = arith.constant {k} : index
      %row = arith.muli %i, %cm : index
      %col = arith.muli %j, %cn : index
      %zero = arith.constant dense<{"0" if c[0] == "i" else "0.0"}> : {sums}
      %sum = scf.for %k = %c0 to %depth step %ck iter_args(%acc = %zero) -> {sums} {{
        %x = tile.load %a[%row, %k] : memref<{m}x{k}x{a}>, {x}
        %y = tile.load %b[{place}] {dims} : {b}, {y}
        %next = tile.mma %x, %y, %acc {flags} : {x}, {y}, {sums}
        scf.yield %next : {sums}
      }}
      tile.store %sum, %c[%row, %col] : {sums}, memref<{m}x{n}x{c}>
      tile.return
    }}"""


def numbers(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "i8":
        return RNG.integers(-128, 128, shape).astype(np.int8)
    return RNG.standard_normal(shape).astype(DTYPES[kind])


def check(
    shape: tuple, tile: tuple, kinds: tuple, arch: str, flags: str = "", transposed: bool = False, error: float = 1e-6
) -> None:
    text = gemm(shape, tile, kinds, flags, transposed)
    m, n, k = shape
    a, b = numbers(kinds[0], (m, k)), numbers(kinds[0], (n, k) if transposed else (k, n))
    c = np.zeros((m, n), DTYPES[kinds[1]])
    run(text, "gemm", [a, b, c], (m // tile[0], n // tile[1]), arch)
    wide = np.int64 if kinds[0] == "i8" else np.float64
    x, y = a.astype(wide), (b.T if transposed else b).astype(wide)
    if "a_unsigned" in flags:
        x = a.view(np.uint8).astype(wide)
    if "b_unsigned" in flags:
        y = (b.T if transposed else b).view(np.uint8).astype(wide)
    expected = x @ y
    assert np.max(np.abs(c - expected)) <= error * np.max(np.abs(expected)) + (0 if wide is np.int64 else 1e-12)
    assemble(text, arch)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "kinds", [("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f32", "f32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f32")]
)
def test_products(kinds: tuple[str, str], transposed: bool, arch: str) -> None:
    check((64, 128, 64), (64, 64, 32), kinds, arch, transposed=transposed)


@pytest.mark.parametrize("kinds", [("f16", "f32"), ("i8", "i32"), ("f32", "f32"), ("f64", "f64"), ("f16", "f16")])
@pytest.mark.parametrize("tile", [(1, 64, 32), (13, 24, 20), (16, 8, 8), (48, 5, 7)])
def test_ragged_tiles(tile: tuple[int, int, int], kinds: tuple[str, str]) -> None:
    m, n, k = tile
    check((m, n, 2 * k), tile, kinds, "sm_80", error=1e-2 if kinds[1] == "f16" else 1e-6)


@pytest.mark.parametrize("flags", ["a_unsigned", "b_unsigned", "a_unsigned b_unsigned"])
def test_unsigned_bytes(flags: str) -> None:
    check((32, 32, 64), (32, 32, 64), ("i8", "i32"), "sm_80", flags)


def test_tf32_where_it_is_allowed() -> None:
    text = gemm((32, 32, 32), (32, 32, 32), ("f32", "f32"), "{tile.tf32}", False)
    assert b"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in compile_kernels(text, "sm_80")[0]
    check((32, 32, 32), (32, 32, 32), ("f32", "f32"), "sm_80", "{tile.tf32}", error=2e-3)


def test_many_warps_and_few_rows() -> None:
    """More warps than the result has room for: some hold copies, and one stores."""
    text = gemm((16, 16, 32), (16, 16, 32), ("f16", "f32"), "", False)
    text = text.replace("attributes {", "attributes {tile.threads = 512 : i64, ")
    a, b, c = numbers("f16", (16, 32)), numbers("f16", (32, 16)), np.zeros((16, 16), np.float32)
    run(text, "gemm", [a, b, c], (1, 1))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)
