# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covers: counts of units, the greedy weighted cover against one block at a time and against all covers, shares."""

from __future__ import annotations

import itertools
from math import log, prod

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern
from tilewright.plan.sparse.cover import Lattice, first_units, joined, split, spread, weighted_cover


def scattered(seed: int, shape: tuple[int, int], density: float, blocks: float = 0.0, edge: int = 4) -> np.ndarray:
    """Elements here and there, and whole blocks."""
    rng = np.random.default_rng(seed)
    grid = rng.random((-(-shape[0] // edge), -(-shape[1] // edge))) < blocks
    return (rng.random(shape) < density) | spread(grid, (edge, edge), shape)


def slow_counts(live: np.ndarray, unit: tuple[int, int]) -> np.ndarray:
    rows, columns = (-(-size // step) for size, step in zip(live.shape, unit, strict=True))
    return np.array(
        [
            [live[i * unit[0] : (i + 1) * unit[0], j * unit[1] : (j + 1) * unit[1]].sum() for j in range(columns)]
            for i in range(rows)
        ]
    )


@pytest.mark.parametrize("unit", [(1, 1), (4, 1), (1, 16), (8, 8), (3, 5), (64, 64)])
@pytest.mark.parametrize("shape", [(70, 33), (64, 64), (1, 7)])
def test_counts(shape: tuple[int, int], unit: tuple[int, int]) -> None:
    live = scattered(1, shape, 0.4)
    lattice = Lattice(live)
    lattice.counts((2, 2))  # from which others may be made
    np.testing.assert_array_equal(lattice.counts(unit), slow_counts(live, unit))


def test_counts_do_not_overflow() -> None:
    assert Lattice(np.ones((64, 64), bool)).counts((64, 64)).item() == 4096
    assert joined(np.full((2, 2), 255, np.uint8), (2, 2), 1020).item() == 1020


def one_by_one(live: np.ndarray, costs: dict[tuple[int, int], float], single: float) -> dict:
    """SparTA's greedy as it is written: the cheapest block, priced anew, until single elements are cheaper."""
    left = live.copy()
    taken = {unit: set() for unit in costs}
    while True:
        prices = []
        for unit, cost in costs.items():
            counts = slow_counts(left, unit)
            prices += [(cost / counts[at], unit, at) for at in np.ndindex(counts.shape) if counts[at]]
        if not prices or min(prices)[0] > single:
            return taken
        _, unit, at = min(prices)
        taken[unit].add(at)
        left[at[0] * unit[0] : (at[0] + 1) * unit[0], at[1] * unit[1] : (at[1] + 1) * unit[1]] = False


@pytest.mark.parametrize("seed", range(8))
def test_rounds_are_blocks_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    live = scattered(seed, (24, 20), rng.uniform(0.05, 0.4), rng.uniform(0, 0.5))
    costs = {(4, 4): 6.3, (8, 8): 21.7, (8, 4): 10.1}  # no two prices are equal
    found = weighted_cover(Lattice(live), costs)
    expected = one_by_one(live, costs, 1.0)
    assert {unit: set(zip(*map(list, np.nonzero(grid)), strict=True)) for unit, grid in found.items()} == expected


def cost_of(live: np.ndarray, taken: dict[tuple[int, int], np.ndarray], costs: dict, single: float) -> float:
    left = live.copy()
    for unit, grid in taken.items():
        left &= ~spread(grid, unit, live.shape)
    return sum(costs[unit] * grid.sum() for unit, grid in taken.items()) + single * left.sum()


@pytest.mark.parametrize("seed", range(6))
def test_against_all_covers(seed: int) -> None:
    """One size: the best cover. Two: within the bound of greedy set cover, and never worse than single elements."""
    live = scattered(seed, (8, 8), 0.25, 0.3)
    for costs in ({(4, 4): 5.0}, {(4, 4): 5.5, (8, 4): 9.0}):
        found = cost_of(live, weighted_cover(Lattice(live), costs), costs, 1.0)
        places = [(unit, at) for unit in costs for at in np.ndindex(8 // unit[0], 8 // unit[1])]
        best = np.inf
        for choice in itertools.product((False, True), repeat=len(places)):
            taken = {unit: np.zeros((8 // unit[0], 8 // unit[1]), bool) for unit in costs}
            for (unit, at), chosen in zip(places, choice, strict=True):
                taken[unit][at] = chosen
            best = min(best, cost_of(live, taken, costs, 1.0))
        assert found <= live.sum()
        if len(costs) == 1:
            assert found == best
        else:
            assert best <= found <= best * (1 + log(max(prod(unit) for unit in costs)))


def test_price_table_of_sparta() -> None:
    """Its costs on an RTX 2080 Ti (artifact, 2022): 0.0064 an element, 6.25 a block of 32x32, which break even at 95 %.

    Where the very first block is dearer than single elements, these take everything.
    """
    table = {(32, 32): 6.25, (32, 64): 8.59, (64, 32): 25.2, (64, 64): 50.0}
    least = 6.25 / 0.0064
    assert round(least / 1024, 2) == 0.95
    live = np.zeros((128, 128), bool)
    live[:32, :32].flat[: int(least) + 1] = True  # just above
    live[32:64, 64:96].flat[: int(least)] = True  # just below
    assert {u: int(t.sum()) for u, t in weighted_cover(Lattice(live), {(32, 32): 6.25}, 0.0064).items()} == {
        (32, 32): 1
    }
    live[:32] = True  # 32x64 blocks are the cheapest per element
    taken = weighted_cover(Lattice(live), table, 0.0064)
    assert {u: int(t.sum()) for u, t in taken.items()} == {(32, 32): 0, (32, 64): 2, (64, 32): 0, (64, 64): 0}
    thin = scattered(3, (128, 128), 0.5)
    assert not any(t.any() for t in weighted_cover(Lattice(thin), table, 0.0064).values())


COVERS: list[tuple[Pattern, ...]] = [
    (Mask(),),
    (Block((8, 16)),),
    (Block((16, 16)), Mask()),
    (Block((16, 16)), Block((8, 32)), Mask()),
    (NM(2, 8, 0), Mask()),
    (NM(1, 4, 1), Mask()),
    (NM(1, 4, 0, (1, 8)), Mask()),
    (Block((8, 8)), NM(3, 8, 0), Mask()),
    (Block((16, 16)), NM(8, 8, 0)),
    (NM(2, 4, 0), Block((4, 4))),
]


@pytest.mark.parametrize("cover", COVERS, ids=str)
@pytest.mark.parametrize("shape", [(64, 48), (70, 37)])
def test_each_element_has_one_region(shape: tuple[int, int], cover: tuple[Pattern, ...]) -> None:
    live = scattered(5, shape, 0.2, 0.2, 16)
    least = [p.shape[0] * p.shape[1] // 2 if isinstance(p, Block) else 0 for p in cover]
    pieces = split(Lattice(live), cover, least)
    shares = [piece.live(live) for piece in pieces]
    np.testing.assert_array_equal(np.sum(shares, axis=0), live)
    for piece, share in zip(pieces, shares, strict=True):
        assert piece.elements == share.sum()
        values = np.where(share, np.random.default_rng(0).uniform(1, 2, shape), 0)
        parts = piece.pattern.pack(values)
        np.testing.assert_array_equal(piece.pattern.unpack(parts, shape), values)
        if isinstance(piece.pattern, Block | Mask):
            assert len(parts[0]) == piece.units


def test_first_of_each_window() -> None:
    live = np.array([[1, 1, 1, 0, 0, 1, 1]], bool).T
    np.testing.assert_array_equal(first_units(live, NM(1, 3, 0)).T, [[1, 0, 0, 0, 0, 1, 1]])


def test_what_does_not_fit() -> None:
    live = np.ones((8, 8), bool)
    live[4:] = False
    with pytest.raises(UserError, match=r"2:4 along axis 0 .*window \[0, 0\] has 4 units .* 8 of 16 windows"):
        split(Lattice(live), [NM(2, 4, 0)], [0])
    with pytest.raises(UserError, match="blocks first"):
        split(Lattice(live), [Mask(), Block((4, 4))], [0, 8])
