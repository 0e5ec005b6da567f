# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which cover is chosen: patterns are found, a mixture is taken where it is the fastest, dense where nothing pays."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from counting import calls_of
from tilewright import devices
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern
from tilewright.plan.cost.sparse import Region, Sizes, Taken, dense_seconds, sparse_seconds
from tilewright.plan.sparse.candidates import Candidate, Search, name_of
from tilewright.plan.sparse.cover import Lattice, split, spread

SIZE = 1024


def device() -> Device:
    return devices.get("intel-granite-rapids")


def n_of_m(n: int, m: int, width: int = 1, size: int = SIZE) -> np.ndarray:
    """Exactly n of each m along the rows, the same for `width` neighbours."""
    kept = np.zeros((size // m, m, size // width), bool)
    kept[:, :n] = True
    return spread(np.random.default_rng(0).permuted(kept, axis=1).reshape(size, -1), (1, width), (size, size))


def blocks(density: float, edge: int = 32, size: int = SIZE) -> np.ndarray:
    grid = np.random.default_rng(1).random((size // edge, size // edge)) < density
    return spread(grid, (edge, edge), (size, size))


def scattered(density: float, size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(2).random((size, size)) < density


def named(live: np.ndarray) -> str:
    return name_of(Lattice(live))


def ranked(live: np.ndarray, rows: int = SIZE, takes=lambda *_: Taken()) -> list[Candidate]:
    return Search(Lattice(live), Sizes(rows, live.shape[1], live.shape[0]), device(), takes).ranked()


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (n_of_m(2, 4), NM(2, 4, 0)),
        (n_of_m(3, 32), NM(3, 32, 0)),
        (n_of_m(3, 32, 32), NM(3, 32, 0, (1, 32))),
        (blocks(0.1), Block((32, 32))),
        (scattered(0.3), Mask()),
    ],
    ids=["2:4", "3:32", "3:32 of 32", "blocks", "scattered"],
)
def test_a_pattern_is_found(live: np.ndarray, expected: Pattern) -> None:
    """As fast as the best, or the same columns in smaller blocks within a hundredth."""
    found = ranked(live)
    best = next(c for c in found if c.patterns == (expected,))
    assert best.seconds <= 1.01 * found[0].seconds or isinstance(expected, Mask)
    assert expected in [p for c in found for p in c.patterns]


def test_names_of_patterns() -> None:
    assert named(n_of_m(2, 4)) == "2:4"
    assert named(n_of_m(8, 32)) == "8:32"
    assert named(n_of_m(3, 32, 32)) == "3:32 of vectors of 32"
    assert named(blocks(0.1)) == "block 32x32"
    assert named(scattered(0.05)) == named(scattered(0.5)) == "unstructured"


@pytest.mark.parametrize("zeros", [0.7, 0.8, 0.9])
def test_blocks_and_scattered_elements(zeros: float) -> None:
    """SparTA's figure 15: a mixture is taken, or what is taken is predicted to be faster than the mixture."""
    live = blocks(0.7 * (1 - zeros)) | scattered(0.3 * (1 - zeros))
    found = ranked(live)
    mixture = next(c for c in found if c.patterns == (Block((32, 32)), Mask()))
    assert found[0].seconds <= mixture.seconds
    singles = [c for c in found if len(c.regions) == 1]
    assert mixture.seconds < min(c.seconds for c in singles if not isinstance(c.patterns[0], Mask))
    kept = blocks(0.7 * (1 - zeros))
    assert mixture.regions[0].units == kept.sum() // 1024
    assert mixture.regions[1].units == (live & ~kept).sum()


def test_a_mixture_is_the_best_where_blocks_are_many() -> None:
    found = ranked(blocks(0.3) | scattered(0.01))
    assert isinstance(found[0].patterns[0], Block) and found[0].patterns[-1] == Mask()
    dense = dense_seconds(Sizes(SIZE, SIZE, SIZE), device())
    assert found[0].seconds < 0.5 * dense


def test_blocks_and_n_of_m() -> None:
    """Where no family takes a mask, what blocks leave is N:M: each element is held, and no window has too many."""
    live = blocks(0.3) | n_of_m(1, 32)
    found = ranked(live, takes=lambda kernel, pattern, units: "no" if isinstance(pattern, Mask) else Taken())
    assert found[0].patterns == (Block((32, 32)), NM(1, 32, 0))
    pieces = split(Lattice(live), found[0].patterns, found[0].least)
    assert [piece.units for piece in pieces] == [region.units for region in found[0].regions]
    assert sum(piece.elements for piece in pieces) == live.sum()


def test_n_of_m_and_a_remainder() -> None:
    """A few windows with more than two: 2:4 with a mask costs little more than 2:4."""
    live = n_of_m(2, 4)
    live[:4, :100] = True
    sizes = Sizes(SIZE, SIZE, SIZE)
    mixture = next(c for c in ranked(live) if c.patterns == (NM(2, 4, 0), Mask()))
    assert [region.units for region in mixture.regions] == [SIZE * SIZE // 2, 200]
    alone = sparse_seconds(sizes, [Region("rows_in_lanes", NM(2, 4, 0), SIZE * SIZE // 2)], device())
    assert mixture.seconds < 1.3 * alone


def test_what_families_do_not_take_is_no_candidate() -> None:
    assert ranked(scattered(0.1), takes=lambda kernel, pattern, units: "no") == []
    found = ranked(blocks(0.1), takes=lambda kernel, pattern, units: "no" if kernel != "blocks" else Taken())
    assert found and {region.kernel for c in found for region in c.regions} == {"blocks"}


def test_no_cover_is_faster_than_its_part_of_the_dense_product() -> None:
    live = scattered(0.97)
    dense = dense_seconds(Sizes(SIZE, SIZE, SIZE), device())
    for candidate in ranked(live):
        assert candidate.seconds >= 0.97 * dense


def test_costs_grow_with_what_is_kept() -> None:
    sizes = Sizes(256, SIZE, SIZE)
    for kernel, pattern in (("rows_in_lanes", Mask()), ("panels", NM(2, 4, 0, (1, 32))), ("blocks", Block((32, 32)))):
        times = [sparse_seconds(sizes, [Region(kernel, pattern, units)], device()) for units in (100, 300, 900)]
        assert times == sorted(times)


def test_steps_grow_slower_than_a_weight() -> None:
    """Blocks are priced by arrays: most of what grows with a weight are their sizes."""
    small, large = (calls_of(partial(ranked, scattered(0.1, size))) for size in (1024, 4096))
    assert large < 8 * small  # of 16 times as many elements


#: Gains over own dense, 1024^3, one thread of a Zen 3 core: kernel, pattern, its units, whether it is turned.
MEASURED = [
    ("rows_in_lanes", Mask(), 314573, True, 1.75),
    ("rows_in_lanes", Mask(), 209715, True, 2.41),
    ("rows_in_lanes", Mask(), 104858, True, 4.45),
    ("rows_in_lanes", Mask(), 52429, True, 8.44),
    ("rows_in_lanes", Mask(), 10486, True, 22.5),
    ("rows_in_lanes", NM(2, 4, 0), 524288, True, 1.52),
    ("rows_in_lanes", NM(8, 32, 0), 262144, True, 2.60),
    ("rows_in_lanes", NM(3, 32, 0), 98304, True, 5.01),
    ("panels", NM(2, 4, 0, (1, 32)), 16384, False, 1.91),
    ("panels", NM(8, 32, 0, (1, 32)), 8192, False, 3.42),
    ("panels", NM(3, 32, 0, (1, 32)), 3072, False, 7.34),
    ("blocks", Block((32, 32)), 307, False, 2.99),
    ("blocks", Block((32, 32)), 205, False, 4.35),
    ("blocks", Block((32, 32)), 102, False, 7.29),
]


@pytest.mark.parametrize(("kernel", "pattern", "units", "left", "gain"), MEASURED)
def test_predicted_gains_are_those_of_zen3(kernel: str, pattern: Pattern, units: int, left: bool, gain: float) -> None:
    """Within 15 %, about twice what two runs on that machine differ by."""
    sizes, core = Sizes(SIZE, SIZE, SIZE), devices.get("cpu:znver3")
    predicted = dense_seconds(sizes, core) / sparse_seconds(sizes, [Region(kernel, pattern, units, left)], core)
    assert predicted == pytest.approx(gain, rel=0.15)
