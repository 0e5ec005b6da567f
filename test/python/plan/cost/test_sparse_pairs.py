# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the prediction says of rows in pairs: as much in common as is found, and pairs where kernels have them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright import devices
from tilewright.dialects.sparse_tile.patterns import NM, Mask, Pattern
from tilewright.plan.cost.sparse import Region, Sizes, sparse_seconds
from tilewright.plan.cost.sparse_pairs import (
    are_tried,
    expected_share,
    loads_alone,
    loads_of_pairs,
    saved_loads,
    vectors_of_pairs,
)
from tilewright.plan.sparse.forms.cpu.pairs import paired, positions_of


@pytest.mark.parametrize("rows", [64, 256, 512])
@pytest.mark.parametrize(("n", "m", "block"), [(2, 4, 32), (2, 4, 64), (8, 32, 64), (5, 8, 256), (3, 4, 64)])
def test_partners_have_as_much_in_common_as_expected(n: int, m: int, block: int, rows: int) -> None:
    source = np.random.default_rng(0).random((rows, 256 // m, m)).argsort(2) < n
    shared = paired(positions_of(source.reshape(rows, -1), NM(n, m, 1), block), block, rows).shared
    found = shared.mean() / (block // m * n)
    assert expected_share(NM(n, m, 0), block, rows) == pytest.approx(found, abs=0.02)


def test_shares_have_bounds() -> None:
    """Two rows have what any two have; whoever keeps all shares all."""
    assert expected_share(NM(2, 4, 0), 64, 2) == expected_share(NM(2, 4, 0), 64, 1) == 0.5
    assert expected_share(NM(4, 4, 0), 64, 256) == expected_share(NM(1, 1, 0), 64, 256) == 1
    assert expected_share(NM(31, 32, 0), 32, 256) <= 1


def test_tasks_have_even_widths() -> None:
    """No task is filled up by more than a vector; there are as many as the widest ones would be."""
    assert [vectors_of_pairs(16, vectors) for vectors in (128, 16, 6, 5, 1, 0)] == [5, 4, 3, 5, 1, 1]
    assert [vectors_of_pairs(32, vectors) for vectors in (64, 9, 8)] == [8, 5, 8]


def test_loads() -> None:
    """Rows with nothing in common load more in pairs than alone, half of x where they are the same."""
    assert loads_of_pairs(8, 0) > loads_alone(8) > 1
    assert loads_of_pairs(8, 1) == pytest.approx(0.5 * (1 + 1 / 8) + 1 / 8)


def test_where_pairs_are_taken() -> None:
    """With eight vectors of sums 2:4 and 8:32; with four 5:8 and more; no single row, nor one block for all."""
    assert [are_tried(NM(n, m, 0), 8, 8) for n, m in ((2, 4), (8, 32), (1, 8))] == [True, True, False]
    assert [are_tried(NM(n, 8, 0), 8, 4) for n in (3, 4, 5, 6)] == [False, False, True, True]
    some = saved_loads(NM(2, 4, 0), 256, 1024, 8, 8, 64)
    assert some == pytest.approx(loads_alone(8) - loads_of_pairs(8, expected_share(NM(2, 4, 0), 64, 256)))
    assert some > 0
    assert saved_loads(NM(2, 4, 0), 1, 1024, 8, 8, 64) == 0
    assert saved_loads(NM(2, 4, 0), 256, 64, 8, 8, 64) == 0
    assert saved_loads(NM(8, 32, 0), 256, 1024, 8, 8, 31) == 0


@pytest.mark.parametrize(
    ("pattern", "units", "gains"),
    [
        (NM(2, 4, 0), 1 << 19, True),
        (NM(8, 32, 0), 1 << 18, True),
        (NM(1, 8, 0), 1 << 17, False),
        (Mask(), 1 << 19, False),
    ],
)
def test_predicted_times(pattern: Pattern, units: int, gains: bool) -> None:
    """Pairs gain some percent, as measured (1.07 for both); what has none takes as long as before."""
    device = devices.get("intel-granite-rapids")
    without = replace(device, rates=(*device.rates, ("sparse.pairs", 0.0)))
    sizes, regions = Sizes(1024, 1024, 1024), [Region("rows_in_lanes", pattern, units)]
    quotient = sparse_seconds(sizes, regions, without) / sparse_seconds(sizes, regions, device)
    assert 1.03 < quotient < 1.11 if gains else quotient == 1
