# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which blocks of a loop a task runs, and how that is written down."""

import numpy as np
import pytest

from tilewright.plan.attention.masks import live_blocks, stretches


def test_causal_blocks_grow_with_the_task() -> None:
    bounds = live_blocks(np.tri(256, dtype=bool), rows=64, block=64)
    assert bounds == [(0, 64), (0, 128), (0, 192), (0, 256)]
    assert stretches(bounds) == [0, 0, 0, 64, 64]


def test_windows_start_later() -> None:
    distance = np.abs(np.arange(256)[:, None] - np.arange(256))
    bounds = live_blocks(distance < 10, rows=64, block=32)
    assert bounds == [(0, 96), (32, 160), (96, 224), (160, 256)]


def test_a_remainder_is_no_part_of_the_loop() -> None:
    assert live_blocks(np.ones((10, 100), bool), rows=4, block=64) == [(0, 64)] * 3


def test_tasks_without_live_blocks() -> None:
    live = np.zeros((8, 100), bool)
    live[:, 70] = True
    assert live_blocks(live, rows=8, block=64) == [(0, 0)]


@pytest.mark.parametrize(
    "bounds",
    [[(0, 8)], [(0, 8)] * 5, [(0, 8), (8, 16), (16, 24)], [(0, 8), (0, 8), (8, 24), (0, 0)], [(8, 8), (0, 16), (3, 9)]],
)
def test_stretches_say_the_same(bounds: list[tuple[int, int]]) -> None:
    numbers = stretches(bounds)
    rows = [numbers[at : at + 5] for at in range(0, len(numbers), 5)]
    assert rows[0][0] == 0
    for task, expected in enumerate(bounds):
        first, low, low_step, high, high_step = next(r for r in reversed(rows) if r[0] <= task)
        assert (low + low_step * (task - first), high + high_step * (task - first)) == expected
