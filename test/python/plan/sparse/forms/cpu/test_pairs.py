# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows in pairs: every row once in each block, common positions in front, partners better than neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from listed_products import windows

from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.plan.sparse.forms.cpu.pairs import paired, positions_of


@pytest.mark.parametrize(
    ("rows", "depth", "n", "m", "block", "chunk"),
    [
        (1, 4, 2, 4, 8, 1),
        (33, 70, 2, 4, 32, 33),
        (70, 257, 3, 32, 64, 32),
        (600, 64, 2, 4, 32, 320),
        (8, 8, 4, 4, 4, 8),
    ],
)
def test_pairs(rows: int, depth: int, n: int, m: int, block: int, chunk: int) -> None:
    """Each row has one partner of its chunk in each block; what pairs have in common stands first, all of it."""
    kept = positions_of(windows(rows, depth, n, m, np.random.default_rng(0)), NM(n, m, 1), block)
    pairs = paired(kept, block, chunk)
    blocks, count = -(-depth // block), block // m * n
    assert kept.shape == (blocks, rows, count)
    assert pairs.order.shape == (blocks, -(-rows // 2), 2)
    assert pairs.places.shape == (blocks, -(-rows // 2), count, 2)
    for b in range(blocks):
        assert sorted(pairs.order[b].reshape(-1)) == list(range(rows + rows % 2))
        assert (pairs.order[b, :, 0] // chunk == np.minimum(pairs.order[b, :, 1], rows - 1) // chunk).all()
        for order, places, shared in zip(pairs.order[b], pairs.places[b], pairs.shared[b], strict=True):
            assert order[0] < rows  # positions in common are read of this one
            one, other = (kept[b, row][at] for row, at in zip(np.minimum(order, rows - 1), places.T, strict=True))
            np.testing.assert_array_equal(one[:shared], other[:shared])
            assert not set(one[shared:]) & set(other[shared:])
            assert sorted(places[:, 0]) == sorted(places[:, 1]) == list(range(count))


def test_partners_are_found() -> None:
    """Two of four random elements: neighbours have half in common, partners have more, and rows like others all."""
    rng = np.random.default_rng(0)
    kept = positions_of(windows(256, 32, 2, 4, rng), NM(2, 4, 1), 32)
    assert paired(kept, 32, 256).shared.mean() > 0.7 * kept.shape[2]
    shuffled = rng.permutation(np.repeat(kept[:, :100], 2, 1), axis=1)
    assert (paired(shuffled, 32, 200).shared == kept.shape[2]).mean() > 0.9
