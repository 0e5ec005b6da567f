# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise, reduce, scan, shape and mma ops, compiled and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from lib.Conversion.native import Kernel

RNG = np.random.default_rng(2)
DTYPES = {"f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64}


def tile(shape: tuple[int, ...], element: str = "f32") -> str:
    """The tile type."""
    return f"!tile.tile<{'x'.join([*map(str, shape), element])}>"


def memref(shape: tuple[int, ...], element: str = "f32") -> str:
    """The memref type."""
    return f"memref<{'x'.join([*map(str, shape), element])}>"


def compute(body: str, inputs: list[np.ndarray], shape: tuple[int, ...], element: str = "f32") -> np.ndarray:
    """Run `body`, which makes %r of that shape from whole tiles %t0, %t1, ... of the inputs."""
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    arguments, lines = [], ["  %c0 = arith.constant 0 : index"]
    for i, array in enumerate(inputs):
        kind = names[array.dtype]
        arguments.append(f"%x{i}: {memref(array.shape, kind)}")
        zeros = ", ".join(["%c0"] * array.ndim)
        lines.append(f"  %t{i} = tile.load %x{i}[{zeros}] : {memref(array.shape, kind)}, {tile(array.shape, kind)}")
    zeros = ", ".join(["%c0"] * len(shape))
    end = f"  tile.store %r, %y[{zeros}] : {tile(shape, element)}, {memref(shape, element)}\n  tile.return"
    arguments.append(f"%y: {memref(shape, element)}")
    text = "\n".join([f"tile.kernel @k({', '.join(arguments)}) {{", *lines, body, end, "}"])
    result = np.zeros(shape, DTYPES[element])
    Kernel(text, "k")(*inputs, result)
    return result


def floats(*shape: int) -> np.ndarray:
    """Random f32."""
    return RNG.standard_normal(shape, dtype=np.float32)


KINDS = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(8, 64), (5, 13), (3, 1), (8, 40), (1, 17)])
@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
def test_reduce(kind: str, shape: tuple[int, int], dims: list[int]) -> None:
    """Ragged lanes take no part."""
    shifted = {"max": -3, "min": 3, "add": 3, "mul": 1}[kind]  # away from zero, which ragged lanes could hold
    x = floats(*shape) * np.float32(0.01 if kind == "mul" else 1) + np.float32(shifted)
    out = tuple(1 if d in dims else s for d, s in enumerate(shape))
    y = compute(f"  %r = tile.reduce {kind} %t0 dims {dims} : {tile(shape)} -> {tile(out)}", [x], out)
    want = KINDS[kind](x.astype(np.float64), axis=tuple(dims), keepdims=True)
    np.testing.assert_allclose(y, want, rtol=2e-5)


@pytest.mark.parametrize("lane", [0, 12, 20])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_reduce_propagates_nan(kind: str, lane: int) -> None:
    """One NaN anywhere is the result."""
    x = floats(2, 21)
    x[1, lane] = np.nan
    y = compute(f"  %r = tile.reduce {kind} %t0 dims [1] : {tile((2, 21))} -> {tile((2, 1))}", [x], (2, 1))
    assert not np.isnan(y[0, 0])
    assert np.isnan(y[1, 0])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("mode", ["", "exclusive", "reverse", "exclusive reverse"])
def test_scan(dim: int, mode: str) -> None:
    """Running sums in both directions."""
    x = floats(5, 21)
    y = compute(f"  %r = tile.scan add %t0 dim {dim} {mode} : {tile((5, 21))}", [x], (5, 21))
    flipped = np.flip(x, dim) if "reverse" in mode else x
    want = np.cumsum(flipped.astype(np.float64), dim)
    if "exclusive" in mode:
        want = want - flipped
    want = np.flip(want, dim) if "reverse" in mode else want
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "source,target",
    [((8, 1), (8, 32)), ((1, 32), (8, 32)), ((1, 1), (3, 21)), ((21,), (4, 21)), ((3, 1), (2, 3, 5)), ((1,), (4, 1))],
)
def test_broadcast(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    """NumPy's rule."""
    x = floats(*source)
    y = compute(f"  %r = tile.broadcast %t0 : {tile(source)} -> {tile(target)}", [x], target)
    np.testing.assert_array_equal(y, np.broadcast_to(x, target))


@pytest.mark.parametrize(
    "source,target",
    [
        ((8, 64), (8, 4, 16)),
        ((4, 6), (24,)),
        ((24,), (4, 6)),
        ((3, 21), (7, 9)),
        ((5, 1), (1, 5)),
        ((2, 40), (2, 5, 8)),
    ],
)
def test_reshape(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Row-major order stays."""
    x = floats(*source)
    y = compute(f"  %r = tile.reshape %t0 : {tile(source)} -> {tile(target)}", [x], target)
    np.testing.assert_array_equal(y, x.reshape(target))


@pytest.mark.parametrize("perm", [(0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_transpose_of_rank_three(perm: tuple[int, ...]) -> None:
    """Any permutation."""
    x = floats(3, 5, 18)
    out = tuple(x.shape[p] for p in perm)
    y = compute(f"  %r = tile.transpose %t0 {list(perm)} : {tile(x.shape)} -> {tile(out)}", [x], out)
    np.testing.assert_array_equal(y, x.transpose(perm))


@pytest.mark.parametrize("offset,width", [(0, 16), (16, 16), (5, 16), (10, 20), (30, 10), (3, 1), (12, 8)])
def test_extract_and_insert(offset: int, width: int) -> None:
    """Slices at any lane."""
    x, z = floats(6, 40), floats(6, 40)
    small = tile((2, width))
    y = compute(
        f"""  %s = tile.extract %t0 [3, {offset}] : {tile((6, 40))} -> {small}
  %r = tile.insert %s into %t1 [1, {40 - width - offset}] : {small} into {tile((6, 40))}""",
        [x, z],
        (6, 40),
    )
    want = z.copy()
    want[1:3, 40 - width - offset : 40 - offset] = x[3:5, offset : offset + width]
    np.testing.assert_array_equal(y, want)


def test_extract_of_a_scalar() -> None:
    """A result that is no tile."""
    x = floats(3, 21)
    body = f"""  %f = tile.extract %t0 [1, 19] : {tile((3, 21))} -> f32
  %r = tile.splat %f : f32 -> {tile((2, 5))}"""
    np.testing.assert_array_equal(compute(body, [x], (2, 5)), np.full((2, 5), x[1, 19]))


@pytest.mark.parametrize(
    "source,target",
    [("i64", "f32"), ("f32", "i64"), ("i1", "f32"), ("f32", "i1"), ("i8", "i64"), ("i64", "i8"), ("f64", "f32"),
     ("i32", "f64"), ("i1", "i64"), ("i64", "i1")],
)  # fmt: skip
def test_convert(source: str, target: str) -> None:
    """As NumPy's astype does it."""
    x = (RNG.standard_normal((3, 21)) * 50).round(2)
    x[0, :3] = 0
    x = x.astype(DTYPES[source])
    y = compute(f"  %r = tile.convert %t0 : {tile((3, 21), source)} -> {tile((3, 21), target)}", [x], (3, 21), target)
    np.testing.assert_array_equal(y, x.astype(DTYPES[target]))


def test_where() -> None:
    """A comparison of i64, conditions in memory, and a select of f32."""
    i, flags, a, b = (
        RNG.integers(-2, 2, (3, 21)),
        RNG.integers(0, 2, (3, 21)).astype(bool),
        floats(3, 21),
        floats(3, 21),
    )
    body = f"""  %zero = arith.constant dense<0> : {tile((3, 21), "i64")}
  %c = arith.cmpi sgt, %t0, %zero : {tile((3, 21), "i64")}
  %both = arith.ori %c, %t1 : {tile((3, 21), "i1")}
  %r = tile.select %both, %t2, %t3 : {tile((3, 21), "i1")}, {tile((3, 21))}"""
    np.testing.assert_array_equal(compute(body, [i, flags, a, b], (3, 21)), np.where((i > 0) | flags, a, b))


def test_integer_division_does_not_trap_in_ragged_lanes() -> None:
    """Lanes beyond the tile hold zeros, which divide nothing."""
    x, z = RNG.integers(-50, 50, (2, 13)), RNG.integers(1, 9, (2, 13))
    y = compute(f"  %r = arith.divsi %t0, %t1 : {tile((2, 13), 'i64')}", [x, z], (2, 13), "i64")
    np.testing.assert_array_equal(y, np.trunc(x / z).astype(np.int64))


def test_iota_and_dense_constants() -> None:
    """Positions along a dimension; a constant that is no splat."""
    body = f"""  %i = tile.iota dim 1 : {tile((2, 18), "i32")}
  %j = tile.iota dim 0 : {tile((2, 18), "i32")}
  %k = arith.constant dense<[[100], [200]]> : {tile((2, 1), "i32")}
  %w = tile.broadcast %k : {tile((2, 1), "i32")} -> {tile((2, 18), "i32")}
  %s = arith.addi %i, %j : {tile((2, 18), "i32")}
  %r = arith.addi %s, %w : {tile((2, 18), "i32")}"""
    want = np.arange(18) + np.arange(2)[:, None] + np.array([[100], [200]])
    np.testing.assert_array_equal(compute(body, [], (2, 18), "i32"), want)


@pytest.mark.parametrize("shape", [(8, 32, 1), (8, 32, 7), (5, 13, 3), (1, 16, 4), (3, 1, 8), (4, 40, 2), (14, 32, 1)])
def test_mma(shape: tuple[int, int, int]) -> None:
    """Every shape, with an accumulator that is not zero."""
    m, n, k = shape
    a, b, c = floats(m, k), floats(k, n), floats(m, n)
    body = f"  %r = tile.mma %t0, %t1, %t2 : {tile((m, k))}, {tile((k, n))}, {tile((m, n))}"
    want = a.astype(np.float64) @ b + c
    np.testing.assert_allclose(compute(body, [a, b, c], (m, n)), want, rtol=1e-5, atol=1e-5)


def test_mma_widens_to_the_accumulator() -> None:
    """i8 operands, i32 sums."""
    a, b = RNG.integers(-128, 127, (4, 9)).astype(np.int8), RNG.integers(-128, 127, (9, 21)).astype(np.int8)
    c = RNG.integers(-9, 9, (4, 21)).astype(np.int32)
    body = f"  %r = tile.mma %t0, %t1, %t2 : {tile((4, 9), 'i8')}, {tile((9, 21), 'i8')}, {tile((4, 21), 'i32')}"
    np.testing.assert_array_equal(compute(body, [a, b, c], (4, 21), "i32"), a.astype(np.int32) @ b + c)
