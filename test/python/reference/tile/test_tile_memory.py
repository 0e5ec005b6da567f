# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile.load`, `tile.store`, `tile.alloc`, `tile.copy` against NumPy indexing."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError

M = "memref<6x7x8xf32>"


@pytest.fixture
def load(run_kernel):
    """Load one tile from a 6x7x8 memref and return it."""

    def run(options: str, shape: tuple, offsets=(0, 0, 0), indices=None, memory=None, extra=""):
        memory = np.arange(336, dtype=np.float32).reshape(6, 7, 8) if memory is None else memory
        tile = "!tile.tile<" + "".join(f"{n}x" for n in shape) + "f32>"
        out = "memref<" + "".join(f"{n}x" for n in shape) + "f32>"
        count = 1 if indices is None else len(indices)
        suffix = "" if indices is None else f" (indices !tile.tile<{count}xi32>)"
        text = f"""tile.kernel @k(%m: {M}, %o: {out}, %x: memref<{count}xi32>, %i: index, %j: index, %l: index) {{
          %c0 = arith.constant 0 : index
          %idx = tile.load %x[%c0] : memref<{count}xi32>, !tile.tile<{count}xi32>
          {extra}
          %t = tile.load %m[%i, %j, %l] {options} : {M}, {tile}{suffix}
          tile.store %t, %o[{", ".join(["%c0"] * len(shape))}] : {tile}, {out}
          tile.return }}"""
        result = np.full(shape, np.nan, np.float32)
        listed = np.zeros(1, np.int32) if indices is None else np.array(indices, np.int32)
        run_kernel(text, "k", [memory, result, listed, *offsets], [])
        return memory, result

    return run


def test_trailing_dimensions_by_default(load):
    m, t = load("", (3, 4), (5, 2, 1))
    np.testing.assert_array_equal(t, m[5, 2:5, 1:5])


def test_fewer_dimensions_than_the_memref(load):
    m, t = load("", (4,), (5, 2, 1))
    np.testing.assert_array_equal(t, m[5, 2, 1:5])


@pytest.mark.parametrize(("dims", "expected"), [([2, 1], (1, 0)), ([1, 2], (0, 1))])
def test_dims(load, dims, expected):
    m, t = load(f"dims {dims}", (4, 3), (5, 2, 1))
    block = m[5, 2:5, 1:5] if dims == [2, 1] else m[5, 2:6, 1:4]
    np.testing.assert_array_equal(t, block.transpose(expected))


@pytest.mark.parametrize("at", [-2, -9, 0, 5, 7])
def test_places_outside_are_zeros(load, at):
    """`bounded`: before the start and behind the end, in steps, along one dimension or in one that is fixed."""
    m, t = load("dims [1, 2] steps [2, 1] bounded [0, 1]", (4, 3), (5, at, 1))
    padded = np.zeros((40, 3), np.float32)
    padded[16:23] = m[5, :, 1:4]
    np.testing.assert_array_equal(t, padded[16 + at : 24 + at : 2])
    _, outside = load("dims [1, 2] bounded [0, 1]", (4, 3), (6, 0, 1))
    assert not outside.any()


def test_outer_dimensions(load):
    m, t = load("dims [0, 2]", (3, 4), (1, 6, 2))
    np.testing.assert_array_equal(t, m[1:4, 6, 2:6])


@pytest.mark.parametrize("step", [1, 2, 3, 0, -1])
def test_steps(load, step):
    m, t = load(f"steps [{step}, 1]", (2, 4), (0, 3, 0))
    np.testing.assert_array_equal(t, np.stack([m[0, 3, :4], m[0, 3 + step, :4]]))


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (2, 4), (2, 1), (0, 4), (-5, 9), (9, 0)])
def test_valid_reads_pad_and_touches_nothing_else(load, rows, columns):
    """The tile starts where only the valid part exists."""
    rows_in, columns_in = (max(0, min(v, n)) for v, n in ((rows, 3), (columns, 4)))
    extra = f"""%v0 = arith.constant {rows} : index
      %v1 = arith.constant {columns} : index
      %p = arith.constant -1.0 : f32"""
    m, t = load("valid (%v0, %v1) pad %p", (3, 4), (5, 7 - rows_in, 8 - columns_in), extra=extra)
    expected = np.full((3, 4), -1, np.float32)
    expected[:rows_in, :columns_in] = m[5, 7 - rows_in :, 8 - columns_in :][:rows_in, :columns_in]
    np.testing.assert_array_equal(t, expected)


def test_pad_is_zero_by_default(load):
    m, t = load("valid (%c0, %c0)", (3, 4), (5, 7, 8))
    assert t.tolist() == np.zeros((3, 4)).tolist()


@pytest.mark.parametrize("along", [0, 1])
def test_indices_gather(load, along):
    listed = [3, 0, 3]
    shape = (3, 4) if along == 0 else (4, 3)
    m, t = load(f"indices %idx along {along}", shape, (2, 1, 1), listed)
    rows = np.add(listed, 1)
    np.testing.assert_array_equal(t, m[2, rows, 1:5] if along == 0 else m[2, 1:5][:, rows])


def test_indices_with_other_dims_and_valid(load):
    extra = """%v0 = arith.constant 4 : index
      %v1 = arith.constant 2 : index"""
    m, t = load("dims [2, 0] indices %idx along 1 valid (%v0, %v1)", (4, 3), (1, 2, 3), [4, 0, 99], extra=extra)
    expected = np.zeros((4, 3), np.float32)
    expected[:, :2] = m[[5, 1], 2, 3:7].T
    np.testing.assert_array_equal(t, expected)


@pytest.mark.parametrize(
    ("options", "offsets", "indices"),
    [
        ("", (0, 5, 0), None),
        ("", (0, -1, 0), None),
        ("", (6, 0, 0), None),
        ("indices %idx along 0", (0, 0, 0), [0, 7, 1]),
    ],
)
def test_a_read_outside_is_reported(load, options, offsets, indices):
    with pytest.raises(InterpreterError, match="outside"):
        load(options, (3, 4), offsets, indices)


@pytest.fixture
def store(run_kernel):
    """Store a tile of 10, 20, ... into a 5x6 memref of ones and return the memory."""

    def run(options: str, shape: tuple, indices=(0,), extra=""):
        tile, m = f"!tile.tile<{shape[0]}x{shape[1]}xf32>", "memref<5x6xf32>"
        n = len(indices)
        suffix = f" (indices !tile.tile<{n}xi32>)" if "indices" in options else ""
        text = f"""tile.kernel @k(%s: memref<{shape[0]}x{shape[1]}xf32>, %m: {m}, %x: memref<{n}xi32>) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %idx = tile.load %x[%c0] : memref<{n}xi32>, !tile.tile<{n}xi32>
          %t = tile.load %s[%c0, %c0] : memref<{shape[0]}x{shape[1]}xf32>, {tile}
          {extra}
          tile.store %t, %m[%c1, %c0] {options} : {tile}, {m}{suffix}
          tile.return }}"""
        source = 10 * (1 + np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape))
        memory = np.ones((5, 6), np.float32)
        run_kernel(text, "k", [source, memory, np.array(indices, np.int32)], [])
        return source, memory

    return run


def test_store(store):
    t, m = store("", (2, 3))
    expected = np.ones((5, 6))
    expected[1:3, :3] = t
    np.testing.assert_array_equal(m, expected)


def test_store_of_valid_part_transposed_with_steps(store):
    t, m = store("dims [1, 0] steps [2, 1] valid (%c2, %c2)", (3, 4))
    expected = np.ones((5, 6))
    expected[1:3, 0:4:2] = t[:2, :2].T
    np.testing.assert_array_equal(m, expected)


@pytest.mark.parametrize(("kind", "function"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_reducing_store(store, kind, function):
    t, m = store(f"reduce {kind}", (2, 3))
    expected = np.ones((5, 6))
    expected[1:3, :3] = function(expected[1:3, :3], t)
    np.testing.assert_array_equal(m, expected)


def test_scatter(store):
    t, m = store("indices %idx along 0", (3, 6), [3, 0, 2])
    expected = np.ones((5, 6))
    expected[[4, 1, 3]] = t
    np.testing.assert_array_equal(m, expected)


def test_the_last_of_equal_indices_wins(store):
    t, m = store("indices %idx along 0", (3, 6), [2, 2, 2])
    np.testing.assert_array_equal(m[3], t[2])


@pytest.mark.parametrize("along", [0, 1])
def test_reducing_scatter_counts_equal_indices(store, along):
    t, m = store(f"indices %idx along {along} reduce add atomic", (3, 3), [2, 0, 2])
    expected = np.ones((5, 6))
    for p, i in enumerate([2, 0, 2]):
        if along == 0:
            expected[1 + i, :3] += t[p]
        else:
            expected[1:4, i] += t[:, p]
    np.testing.assert_array_equal(m, expected)


def test_alloc_is_poison_for_each_task(run_kernel):
    text = """tile.kernel @k(%o: memref<3x2xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %b = tile.alloc : memref<2xf32, #tile.level<"l1">>
      %t = tile.load %b[%c0] : memref<2xf32, #tile.level<"l1">>, !tile.tile<2xf32>
      tile.store %t, %o[%i, %c0] : !tile.tile<2xf32>, memref<3x2xf32>
      %one = arith.constant dense<1.0> : !tile.tile<2xf32>
      tile.store %one, %b[%c0] : !tile.tile<2xf32>, memref<2xf32, #tile.level<"l1">>
      tile.return }"""
    out = np.zeros((3, 2), np.float32)
    run_kernel(text, "k", [out], [3])
    assert np.isnan(out).all()


def test_a_slot_must_not_be_read_before_its_await(run_kernel):
    text = """tile.kernel @k(%x: memref<2xf32>, %o: memref<2x2xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = tile.alloc : memref<2xf32, #tile.level<"shared">>
      %token = tile.async { tile.copy %x to %b : memref<2xf32>, memref<2xf32, #tile.level<"shared">> }
      %early = tile.load %b[%c0] : memref<2xf32, #tile.level<"shared">>, !tile.tile<2xf32>
      tile.await %token
      %late = tile.load %b[%c0] : memref<2xf32, #tile.level<"shared">>, !tile.tile<2xf32>
      tile.store %early, %o[%c0, %c0] : !tile.tile<2xf32>, memref<2x2xf32>
      tile.store %late, %o[%c1, %c0] : !tile.tile<2xf32>, memref<2x2xf32>
      tile.return }"""
    out = np.zeros((2, 2), np.float32)
    run_kernel(text, "k", [np.float32([1, 2]), out], [])
    assert np.isnan(out[0]).all()
    assert out[1].tolist() == [1, 2]


def test_load_of_rows_that_alternate(run_kernel):
    """Element (p0, p1) is at [p0 div 4, p1, p0 mod 4]; a last group may be used in part."""
    kind = "!tile.tile<6x2xi8, #tile.layout<interleave = 4>>"
    text = f"""tile.kernel @k(%x: memref<3x5x4xi8>, %o: memref<6x2xi8>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %one = arith.constant dense<1> : !tile.tile<6x6xi32>
      %zero = arith.constant dense<0> : !tile.tile<6x2xi32>
      %b = tile.load %x[%c1, %c2, %c0] dims [0, 1] : memref<3x5x4xi8>, {kind}
      %s = tile.mma %one, %b, %zero b_unsigned : !tile.tile<6x6xi32>, {kind}, !tile.tile<6x2xi32>
      %t = tile.convert %s : !tile.tile<6x2xi32> -> !tile.tile<6x2xi8>
      tile.store %t, %o[%c0, %c0] : !tile.tile<6x2xi8>, memref<6x2xi8>
      tile.return }}"""
    x = np.arange(60, dtype=np.int8).reshape(3, 5, 4)
    out = np.zeros((6, 2), np.int8)
    run_kernel(text, "k", [x, out], [])
    rows = x.transpose(0, 2, 1).reshape(12, 5)[4:10, 2:4]
    assert (out.view(np.uint8) == rows.sum(0).astype(np.uint8)).all()
