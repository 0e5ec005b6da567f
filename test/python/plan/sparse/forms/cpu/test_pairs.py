# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows in pairs: every row once in each block, common positions in front, partners better than neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from listed_products import windows

from counting import calls_of
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.plan.cost.sparse_pairs import PARTNERS
from tilewright.plan.sparse.forms.cpu.pairs import count_ones, paired, positions_of


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


def test_rows_that_are_alike() -> None:
    """Any partner is the best: all of a list is shared. Rows that have nothing in common are paired, too."""
    alike = np.tile(np.arange(0, 16, 2), (1, 2 * PARTNERS + 1, 1))
    assert (paired(alike, 16, 2 * PARTNERS + 1).shared == 8).all()
    apart = np.arange(70)[None, :, None]
    pairs = paired(apart, 70, 70)
    assert (pairs.shared == 0).all()
    assert sorted(pairs.order.reshape(-1)) == list(range(70))


def test_same_weights_same_pairs() -> None:
    """Ties are decided as at every other time: a kernel that is compiled again is the same."""
    kept = positions_of(windows(300, 64, 2, 4, np.random.default_rng(1)), NM(2, 4, 1), 32)
    one, other = paired(kept, 32, 300), paired(kept.copy(), 32, 300)
    np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_array_equal(one.places, other.places)


def test_pairs_beyond_a_word_of_bits() -> None:
    """Positions behind the first 64 count as those before."""
    kept = np.array([[[0, 130, 131], [0, 70, 71], [1, 70, 71], [1, 130, 131]]])
    (order,) = paired(kept, 132, 4).order
    assert sorted(map(tuple, order.tolist())) == [(0, 3), (1, 2)]


def test_bits_are_counted() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 64, 99, np.uint64, endpoint=False)
    words[:3] = [0, (1 << 64) - 1, 1 << 63]
    assert count_ones(words).tolist() == [int(word).bit_count() for word in words]


def test_steps_grow_with_rows_not_faster() -> None:
    """Partners are found by arrays, for all blocks and rows at once."""

    def calls(rows: int, depth: int) -> int:
        kept = positions_of(windows(rows, depth, 2, 4, np.random.default_rng(2)), NM(2, 4, 1), 64)
        return calls_of(lambda: paired(kept, 64, rows))

    assert calls(PARTNERS, 512) < 3 * calls(PARTNERS // 8, 512)
    assert calls(PARTNERS, 8 * 512) < 12 * calls(PARTNERS, 512)


def test_layers_of_one_shape_share_a_kernel() -> None:
    """What the text of a kernel follows from is the same for other weights of the pattern."""
    found = set()
    for seed in range(6):
        kept = positions_of(windows(256, 256, 2, 4, np.random.default_rng(seed)), NM(2, 4, 1), 64)
        pairs = paired(kept, 64, 256)
        assert pairs.least <= pairs.shared.min()
        found.add(pairs.least)
    assert found == {8}
