# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PIT's published choices of micro-tiles, from its published database of kernels (4096^3, f32, milliseconds)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.plan.sparse.dynamic.micro_tile_choice import Choice, Database, zeros_of, zeros_of_blocks

#: 8.04 and 4.288 are in the published choices; the shares that they were recorded at follow from these.
PUBLISHED = Database(
    10.22,
    {
        (32, 1): {0: 14.47, 0.5: 7.52, 0.9: 1.755, 0.95: 0.941, 0.99: 0.387},
        (16, 1): {0: 16.08, 0.5: 11.02, 0.65: 8.04, 0.8: 4.288, 0.9: 2.497, 0.95: 1.365},
        (8, 1): {0: 28.9, 0.5: 19.9, 0.9: 4.48, 0.95: 2.344},
        (4, 1): {0: 53.7, 0.5: 43.9, 0.9: 8.79, 0.95: 4.61},
    },
)
CHOICES = {
    ((2, 1), 0.9): (None, 10.22),
    ((2, 1), 0.95): ((16, 1), 8.04),
    ((2, 1), 0.99): ((8, 1), 2.344),
    ((4, 1), 0.9): ((16, 1), 8.04),
    ((4, 1), 0.95): ((16, 1), 4.288),
    ((4, 1), 0.99): ((16, 1), 1.365),
    ((8, 1), 0.9): ((16, 1), 4.288),
    ((8, 1), 0.95): ((8, 1), 2.344),
    ((8, 1), 0.99): ((32, 1), 0.941),
}


@pytest.mark.parametrize(("block", "share"), CHOICES)
def test_published_choices(block: tuple[int, int], share: float) -> None:
    assert PUBLISHED.choose(zeros_of_blocks(share, block)) == Choice(*CHOICES[block, share])


@pytest.mark.parametrize(
    ("unit", "share", "expected"),
    [((8, 1), 0.9, 0.656), ((8, 1), 0.95, 0.815), ((8, 1), 0.99, 0.961), ((16, 1), 0.9, 0.431)],
)
def test_blocks_seen_through_larger_ones(unit: tuple[int, int], share: float, expected: float) -> None:
    """By the formula, and in a sample."""
    assert zeros_of_blocks(share, (2, 1))(unit) == pytest.approx(expected, abs=1e-3)
    live = np.random.default_rng(0).random((512, 256)) >= share
    assert zeros_of(np.repeat(live, 2, axis=0), unit) == pytest.approx(expected, abs=0.02)


def test_ragged_and_empty_samples() -> None:
    sample = np.zeros((5, 3))
    sample[4, 2] = np.nan
    assert zeros_of(sample, (2, 2)) == pytest.approx(5 / 6)
    assert zeros_of(np.zeros((4, 4)), (3, 3)) == 1


def test_nothing_recorded_low_enough() -> None:
    assert Database(2.0, {(8, 1): {0.9: 1.0}}).choose(lambda unit: 0.5) == Choice(None, 2.0)
    assert Database(2.0, {(8, 1): {0.9: 1.0}}).choose(lambda unit: 0.9) == Choice((8, 1), 1.0)
