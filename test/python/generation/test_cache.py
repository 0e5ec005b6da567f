# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The past of requests under way: who joins and leaves, and where each begins."""

from __future__ import annotations

import numpy as np

from tilewright.generation.cache import Cache, Part

PART = Part("past", "present", (0, 2, 0, 3), np.dtype(np.float32), 0, 2)


def filled(length: int, value: float) -> Cache:
    """A request with `length` tokens."""
    cache = Cache.empty([PART])
    cache.advance({"present": np.full((1, 2, length, 3), value, np.float32)}, length)
    return cache


def test_rows_end_at_the_same_place() -> None:
    cache = Cache([PART])
    for length, value in ((2, 1.0), (4, 2.0), (3, 3.0)):
        cache.join(filled(length, value))
    assert cache.rows == 3 and cache.length == 4 and cache.starts == [2, 0, 1]
    assert [cache.tokens(row) for row in range(3)] == [2, 4, 3]
    array = cache.feeds()["past"]
    assert array.shape == (3, 2, 4, 3)
    assert array[:, 0, :, 0].tolist() == [[0, 0, 1, 1], [2, 2, 2, 2], [0, 3, 3, 3]]
    assert cache.mask(1, np.dtype(np.int64)).tolist() == [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    assert cache.positions(2, np.dtype(np.int64)).tolist() == [[2, 3], [4, 5], [3, 4]]


def test_padding_that_all_have_goes_with_the_longest() -> None:
    cache = Cache([PART])
    for length, value in ((2, 1.0), (4, 2.0), (3, 3.0)):
        cache.join(filled(length, value))
    cache.keep([0, 2])
    assert cache.starts == [1, 0] and cache.length == 3
    assert cache.feeds()["past"][:, 0, :, 0].tolist() == [[0, 1, 1], [3, 3, 3]]
    cache.keep([])
    assert cache.rows == 0 and cache.length == 0
    cache.join(filled(2, 5.0))
    assert cache.starts == [0] and cache.length == 2


def test_a_past_that_may_not_be_empty_begins_with_padding() -> None:
    cache = Cache.empty([PART], 1)
    assert cache.feeds()["past"].shape == (1, 2, 1, 3) and cache.tokens(0) == 0
    assert cache.mask(2, np.dtype(bool)).tolist() == [[False, True, True]]
    assert cache.positions(2, np.dtype(np.int32)).tolist() == [[0, 1]]


def test_one_tensor_for_keys_and_values() -> None:
    part = Part("past_0", "present_0", (2, 0, 2, 0, 3), np.dtype(np.float32), 1, 3)
    cache = Cache([part])
    for length in (1, 3):
        other = Cache.empty([part])
        other.advance({"present_0": np.full((2, 1, 2, length, 3), length, np.float32)}, length)
        cache.join(other)
    assert cache.feeds()["past_0"].shape == (2, 2, 2, 3, 3)
    cache.keep([0])
    assert cache.feeds()["past_0"].shape == (2, 1, 2, 1, 3)
