# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested lists of tensors as values: how they are made, what they hold, how they are read, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists, join

LEAVES = [np.full((1, 2), number, np.float32) for number in range(8)]
RAGGED = [[LEAVES[0], LEAVES[1]], [], [LEAVES[2]]]


def nested(rng, depth, leaf_shape=(1, 2), dtype=np.float32):
    """Random nested Python lists: ragged, and some of them empty."""
    if depth == 0:
        return rng.integers(-99, 99, leaf_shape).astype(dtype)
    return [nested(rng, depth - 1, leaf_shape, dtype) for _ in range(rng.integers(0, 4))]


def made(lists, depth, leaf_shape=(1, 2), dtype=np.float32):
    return Lists.of(lists, depth, leaf_shape=leaf_shape, dtype=dtype)


def same(value, lists):
    """Whether a value (or a tensor) holds what nested Python lists hold."""
    if isinstance(lists, list):
        return len(value) == len(lists) and all(map(same, value, lists))
    return isinstance(value, np.ndarray) and value.dtype == lists.dtype and np.array_equal(value, lists)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("leaf_shape", [(), (1, 2), (3, 0)])
def test_nested_lists_and_back(depth, dtype, leaf_shape):
    rng = np.random.default_rng(depth)
    for _ in range(10):
        lists = nested(rng, depth, leaf_shape, dtype)
        value = made(lists, depth, leaf_shape, dtype)
        assert value.depth == depth == len(value.offsets) + 1
        assert value.leaf_shape == leaf_shape and value.dtype == dtype
        assert same(value, lists)
        assert made(value.to_nested(), depth, leaf_shape, dtype) == value == Lists(value.flat, value.offsets)


def test_layout_is_a_walk_through_the_lists():
    value = Lists.of(RAGGED)
    assert value.flat[:, 0, 0].tolist() == [0, 1, 2]
    assert [offset.tolist() for offset in value.offsets] == [[0, 2, 2, 3]]
    deep = Lists.of([RAGGED, [], RAGGED[:1]])
    assert [offset.tolist() for offset in deep.offsets] == [[0, 3, 3, 4], [0, 2, 2, 3, 5]]


def test_sizes():
    deep = Lists.of([RAGGED, RAGGED])
    assert (len(deep), deep.numel, deep.depth) == (2, 6, 3)
    assert deep.lengths[:2] == (2, 3) and deep.lengths[2].tolist() == [2, 0, 1, 2, 0, 1]
    assert [deep.width_by_depth(depth) for depth in (3, 2, 1)] == [[2], [3, 3], [2, 0, 1, 2, 0, 1]]
    assert repr(deep) == "Lists([2, 3, ragged] of float32 (1, 2))"
    assert Lists.empty(3, (4,), np.int8).lengths == (0, 0, 0)
    for depth in (0, 4):
        with pytest.raises(UserError, match="is none of 1..3"):
            deep.width_by_depth(depth)


def test_lists_of_lists_may_be_values():
    inner = [Lists.of(RAGGED), Lists.of([[LEAVES[5]]])]
    assert Lists.of(inner) == Lists.of([RAGGED, [[LEAVES[5]]]])
    assert Lists.of([inner], 4) == Lists.of([[RAGGED, [[LEAVES[5]]]]])
    assert Lists.of(inner[0]) is inner[0]


def test_numbers_are_tensors_of_rank_0():
    value = Lists.of([[1, 2], [3]], dtype=np.float16)
    assert value.leaf_shape == () and value.dtype == np.float16
    assert isinstance(value[0][1], np.ndarray) and value[0][1] == 2


def test_depth_of_lists_without_elements():
    value = Lists.of([[], []], 3, leaf_shape=(1,), dtype=np.int32)
    assert value.lengths == (2, 0, 0) and value[1] == Lists.empty(2, (1,), np.int32)
    with pytest.raises(UserError, match="leaf_shape= and dtype="):
        Lists.of([[], []])


@pytest.mark.parametrize(
    ("lists", "options", "message"),
    [
        ([LEAVES[0], [LEAVES[1]]], {}, "a list stands where its neighbours are tensors"),
        ([[LEAVES[0]], LEAVES[1]], {}, "a list stands where its neighbours are tensors"),
        ([LEAVES[0], LEAVES[0].T], {}, r"element 1 is a tensor of float32 \(2, 1\), but element 0 is .*\(1, 2\)"),
        ([LEAVES[0], LEAVES[0].astype(int)], {}, "element 1 is a tensor of int64 .*, but element 0 is .*float32"),
        ([Lists.of(RAGGED), Lists.of(RAGGED[0])], {}, r"part 1 is Lists\(\[2\] .*, but part 0 is Lists\(\[3, ragged\]"),
        ([LEAVES[0], Lists.of(RAGGED)], {}, r"element 1 is Lists\(\[3, ragged\]"),
        (RAGGED, {"depth": 3}, "the lists have 2 levels, depth says 3"),
        (RAGGED, {"depth": 1}, "a list stands"),
        (RAGGED, {"depth": 0}, "at least one level"),
        (RAGGED, {"leaf_shape": (2, 1)}, r"the tensors have shape \(1, 2\), leaf_shape says \(2, 1\)"),
        (LEAVES[0], {}, "a list of at least one level, got ndarray"),
    ],
)
def test_lists_that_are_none(lists, options, message):
    with pytest.raises(UserError, match=message):
        Lists.of(lists, **options)


@pytest.mark.parametrize("shape", [(3, 2, 4, 1, 5), (3, 0, 4, 1, 5), (0, 2, 4, 1, 5), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_arrays_and_back(shape, depth):
    array = np.arange(np.prod(shape)).reshape(shape)
    value = Lists.from_array(array, depth)
    assert value.depth == depth and value.leaf_shape == shape[depth:]
    if array.size:
        np.testing.assert_array_equal(value.array(), array)
        assert value.lengths == shape[:depth]
        assert value == Lists.of(array.tolist() if depth == 5 else _cut(array, depth))
    assert value.array().size == array.size


def _cut(array, depth):
    return [_cut(part, depth - 1) for part in array] if depth else array


def test_an_array_needs_equal_lengths():
    with pytest.raises(UserError, match="lists of level 1 have lengths from 0 to 2"):
        Lists.of(RAGGED).array()
    for depth in (0, 3):
        with pytest.raises(UserError, match=rf"depth {depth} is none of 1..2"):
            Lists.from_array(np.zeros((2, 3)), depth)
    with pytest.raises(UserError, match="at least one dimension"):
        Lists(np.float32(1))


def test_elements_and_slices():
    rng = np.random.default_rng(1)
    slices = [slice(None), slice(1, None), slice(None, None, -1), slice(-1, None, -2), slice(1, -1), slice(2, 1)]
    for depth in (1, 2, 3):
        for _ in range(20):
            lists = nested(rng, depth)
            value = made(lists, depth)
            for place in range(-len(lists), len(lists)):
                assert same(value[place], lists[place])
            for part in slices:
                assert same(value[part], lists[part]) and value[part].depth == depth
            assert same(list(value), lists)
            for place in (len(lists), -len(lists) - 1):
                with pytest.raises(IndexError, match=f"index {place} is outside a list of length {len(lists)}"):
                    value[place]


def test_take_nest_flatten_and_join():
    rng = np.random.default_rng(2)
    for depth in (1, 2, 3):
        for _ in range(20):
            lists, more = nested(rng, depth), nested(rng, depth)
            value = made(lists, depth)
            places = rng.integers(0, len(lists), 5) if lists else []
            assert same(value.take(places), [lists[place] for place in places])
            assert same(join([value, made(more, depth), value]), lists + more + lists)
            cut = rng.integers(0, len(lists) + 1)
            pair = value.nest([cut, len(lists) - cut])
            assert same(pair, [lists[:cut], lists[cut:]])
            assert pair.flatten() == value
    with pytest.raises(UserError, match="flatten needs a list of lists"):
        Lists.of(LEAVES).flatten()
    with pytest.raises(UserError, match="offsets of level 0 end at 3, but there are 8"):
        Lists.of(LEAVES).nest([1, 2])


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([[1, 8]], "offsets of level 0 start at 0 and never fall, found 1 first"),
        ([[0, 1], [0, 5, 4, 8]], "level 1 start at 0 and never fall, found 5, then 4"),
        ([[0, 2], [0, 8]], "offsets of level 0 end at 2, but there are 1 elements"),
        ([[0, 7]], "offsets of level 0 end at 7, but there are 8 elements"),
        ([[]], "a list of at least one integer"),
        ([[0.0, 8.0]], "offsets of level 0 are float64"),
        ([[[0, 8]]], r"offsets of level 0 are int64 \(1, 2\)"),
    ],
)
def test_offsets_that_cut_nothing(offsets, message):
    with pytest.raises(UserError, match=message):
        Lists(np.stack(LEAVES), offsets)


def test_equality():
    value = Lists.of(RAGGED)
    assert value == Lists.of(RAGGED) and value != Lists.of(RAGGED[::-1])
    assert value != Lists.of([*RAGGED[:1], RAGGED[2], []])
    assert value != value.flatten() and value.flatten() != value
    assert value.flatten() != Lists(value.flat.astype(np.float64))
    assert value != RAGGED and value != 3
    nan = Lists(np.full(2, np.nan))
    assert nan != nan
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


def test_nothing_can_be_written():
    array = np.zeros((2, 3))
    value = Lists.from_array(array, 1)
    with pytest.raises(ValueError, match="read-only"):
        value[0][1] = 1
    with pytest.raises(ValueError, match="read-only"):
        Lists.of(RAGGED).offsets[0][0] = 1
    array[0] = 1  # its maker may still write it


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies(copied):
    assert copied(Lists.of(RAGGED)) == Lists.of(RAGGED)
