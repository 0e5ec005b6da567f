# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparse_tile.index`, `gather` and `scatter`, compiled for CPUs and emulated GPUs, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

CPU, AVX2, SM80, SM90 = "cpu", "cpu:x86-64-v3", "cuda:sm_80", "cuda:sm_90a"
NAMES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i1": bool}
INDEXED = [
    ((70, 90), (32, 1), 1, "f32", CPU),
    ((70, 90), (32, 1), 1, "bf16", AVX2),
    ((37, 90), (32, 1), 1, "f32", SM80),
    ((37, 90), (32, 1), 0, "f16", SM90),
    ((37, 200), (1, 200), 0, "f32", CPU),
    ((9, 300), (1, 300), 0, "f32", SM90),
    ((37, 200), (32, 64), 1, "f64", CPU),
    ((37, 100), (32, 64), 0, "f32", SM80),
    ((5, 7, 11), (1, 2, 3), 1, "i8", AVX2),
    ((5, 7, 11), (5, 1, 1), 2, "i1", CPU),
    ((130,), (1,), 0, "f32", AVX2),
    ((1, 1), (4, 4), 0, "f32", CPU),
]


def text_of(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(['?' if size < 0 else str(size) for size in shape])}x{element}>"


def compiled(text: str, target: str) -> tw.CompiledModel:
    return tw.compile(text, target=target, **({"emulate": True} if target.startswith("cuda") else {}))


def results(model: tw.CompiledModel, *arrays: np.ndarray) -> list[np.ndarray]:
    found = model(*arrays)
    return (
        list(found.values())
        if isinstance(found, dict)
        else list(found)
        if isinstance(found, (list, tuple))
        else [found]
    )


def index_text(shape: tuple[int, ...], unit: tuple[int, ...], axis: int, element: str, more: str = "") -> str:
    grid = [-1 if size < 0 else -(-size // step) for size, step in zip(shape, unit, strict=True)]
    x, live = text_of(shape, element), text_of(tuple(grid), "i32")
    count = text_of(tuple(1 if d == axis else size for d, size in enumerate(grid)), "i32")
    return f"""func.func @main(%x: {x}) -> ({live}, {count}) {{
      %l, %c = sparse_tile.index %x unit {list(unit)} axis {axis} {more} : {x} to {live}, {count}
      return %l, %c : {live}, {count}
    }}"""


def listed(x: np.ndarray, unit: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """What `sparse_tile.index` means, tile by tile."""
    grid = [-(-size // step) for size, step in zip(x.shape, unit, strict=True)]
    flags = np.zeros(grid, bool)
    for at in np.ndindex(*grid):
        block = x[tuple(slice(i * u, (i + 1) * u) for i, u in zip(at, unit, strict=True))]
        flags[at] = (block != 0).any()
    live = np.full(grid, -1, np.int32)
    for at in np.ndindex(*[1 if d == axis else size for d, size in enumerate(grid)]):
        row = tuple(slice(None) if d == axis else i for d, i in enumerate(at))
        numbers = np.flatnonzero(flags[row])
        line = live[row]
        line[: len(numbers)] = numbers
    return live, flags.sum(axis=axis, keepdims=True).astype(np.int32)


@pytest.mark.parametrize(("shape", "unit", "axis", "element", "target"), INDEXED)
def test_index(shape: tuple[int, ...], unit: tuple[int, ...], axis: int, element: str, target: str) -> None:
    """All dead, all live, and random; NaN and infinities are live, a negative zero is not."""
    model, rng, dtype = (
        compiled(index_text(shape, unit, axis, element), target),
        np.random.default_rng(1),
        NAMES[element],
    )
    some = (rng.integers(1, 5, shape) * (rng.random(shape) < 0.05)).astype(dtype)
    for x in (np.zeros(shape, dtype), np.ones(shape, dtype), some):
        if dtype not in (np.int8, bool) and x.any() and not x.all():
            x.flat[[0, -1]] = [np.nan, -np.inf]
            x.flat[1] = -0.0
        live, count = results(model, x)
        expected, counts = listed(x, unit, axis)
        np.testing.assert_array_equal(live, expected)
        np.testing.assert_array_equal(count, counts)


def test_arrival_order_lists_the_same() -> None:
    """An order that may be any is ascending too; what is listed is the same."""
    x = np.eye(8, 40, dtype=np.float32)
    model = compiled(index_text((8, 40), (4, 1), 1, "f32", "arrival_order"), CPU)
    live, count = results(model, x)
    np.testing.assert_array_equal(np.sort(live, axis=1), np.sort(listed(x, (4, 1), 1)[0], axis=1))
    np.testing.assert_array_equal(count, [[4], [4]])


def test_index_of_open_sizes() -> None:
    model = compiled(index_text((-1, -1), (4, 1), 1, "f32"), CPU)
    for shape in ((9, 70), (1, 1), (4, 129)):
        x = np.random.default_rng(2).choice(np.float32([0, 0, 0, 1]), shape)
        for found, expected in zip(results(model, x), listed(x, (4, 1), 1), strict=True):
            np.testing.assert_array_equal(found, expected)


MOVED = [
    ((12, 300), 0, "f32", CPU),
    ((12, 300), 1, "f32", CPU),
    ((3, 9, 20), 1, "bf16", AVX2),
    ((40,), 0, "i8", AVX2),
    ((40, 3, 16), 0, "f32", AVX2),
    ((20, 2, 8), 0, "i8", CPU),
    ((12, 70), 0, "f32", SM80),
    ((12, 70), 1, "f16", SM90),
]


def move_text(shape: tuple[int, ...], count: int, axis: int, element: str) -> str:
    part = tuple(count if d == axis else size for d, size in enumerate(shape))
    x, y = text_of(shape, element), text_of(part, element)
    i = text_of((count,), "i32")
    return f"""func.func @main(%x: {x}, %i: {i}, %init: {x}) -> ({y}, {x}, {x}) {{
      %g = sparse_tile.gather %x[%i] axis {axis} : {x}, {i} to {y}
      %s = sparse_tile.scatter %g into %init[%i] axis {axis} : {y}, {i}, {x}
      %a = sparse_tile.scatter %g into %init[%i] axis {axis} accumulate : {y}, {i}, {x}
      return %g, %s, %a : {y}, {x}, {x}
    }}"""


@pytest.mark.parametrize(("shape", "axis", "element", "target"), MOVED)
def test_moves(shape: tuple[int, ...], axis: int, element: str, target: str) -> None:
    rng, dtype = np.random.default_rng(3), NAMES[element]
    numbers = np.int32([3, 0, 7, -1, 2])
    model = compiled(move_text(shape, len(numbers), axis, element), target)
    x, init = (rng.integers(-4, 5, shape).astype(dtype) for _ in range(2))
    for indices in (numbers, np.full(5, -1, np.int32)):
        kept = indices[indices >= 0]
        gathered, placed, added = results(model, x, indices, init)
        slices = np.moveaxis(gathered, axis, 0)
        np.testing.assert_array_equal(slices[indices >= 0], np.moveaxis(x, axis, 0)[kept])
        assert not slices[indices < 0].any()
        for result, base in ((placed, 0), (added, 1)):
            expected = np.moveaxis(init.copy(), axis, 0)
            expected[kept] = expected[kept] * dtype(base) + np.moveaxis(x, axis, 0)[kept]
            np.testing.assert_array_equal(np.moveaxis(result, axis, 0), expected)


def test_sums_of_repeated_slices() -> None:
    model = compiled(move_text((5, 3), 6, 0, "f32"), CPU)
    x, init = np.arange(15, dtype=np.float32).reshape(5, 3), np.ones((5, 3), np.float32)
    indices = np.int32([4, 4, 1, -1, 4, 1])
    _, _, added = results(model, x, indices, init)
    expected = init.copy()
    np.add.at(expected, indices[indices >= 0], x[indices[indices >= 0]])
    np.testing.assert_array_equal(added, expected)


@pytest.mark.parametrize("target", [CPU, SM80])
def test_indices_that_are_none(target: str) -> None:
    """Undefined in the dialect; compiled code reads zeros and writes nothing, and stays inside of the tensors."""
    model = compiled(move_text((5, 3), 4, 0, "f32"), target)
    x, init = np.ones((5, 3), np.float32), np.full((5, 3), 2, np.float32)
    gathered, placed, _ = results(model, x, np.int32([5, 2**31 - 1, -(2**31), 1]), init)
    np.testing.assert_array_equal(gathered, [[0] * 3] * 3 + [[1] * 3])
    np.testing.assert_array_equal(placed[:, 0], [2, 1, 2, 2, 2])
