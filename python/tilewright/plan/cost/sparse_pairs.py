# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads of N:M kernels with an index per element, of a CPU: rows alone, and in pairs that share what both keep.

The kernels ask here whether pairs gain (`plan/sparse/forms/cpu/rows_in_lanes.py`), and so does the prediction of
their time, which has no weights at hand but the pattern.
"""

from __future__ import annotations

from math import ceil, log, sqrt

from tilewright.dialects.sparse_tile.patterns import NM

PARTNERS = 256
"""Rows among which partners are looked for. Of random 2:4, partners in 32 terms have 0.71 of their elements in common
with 64 rows to choose from, 0.76 with 256, 0.81 with 1024; the time that it takes grows with the number."""

MOST_LOADS = 0.97
"""Part of the loads that pairs may need to be taken."""

_EXPECTED = 1.2
"""What the best partners of random rows have in common at least, in parts of what any two rows have."""

_BEST = 0.82
"""Of the distance from the mean at which the best of many rows are expected, what partners of all rows reach."""


_VECTORS = 8
"""Vectors of columns in pairs, at most: with 16 sums latency is hidden."""

_BESIDE = 6
"""Registers besides those of sums: both values, a row of x, and what comes next while these are used."""


def vectors_of_pairs(registers: int, vectors: int) -> int:
    """Vectors of columns of a task whose rows go in pairs: as many tasks as the most asks for, of even widths.

    On AVX2 at most five, by their count: on a Zen 3 core, 2:4, 1024^3, four and six could not be told from it (noise
    4 %). A last task that is filled up costs as much as a whole one: of 16 vectors, four tasks of five were a quarter
    more work than four of four.

    Args:
        registers: of a core.
        vectors: of all columns.
    """
    most = max(min((registers - _BESIDE) // 2, _VECTORS, vectors), 1)
    return ceil(vectors / ceil(vectors / most)) if vectors > 0 else 1


def loads_alone(sums: int) -> float:
    """Loads for a multiply-add where each row has its own: a row of x, its value, a quarter of a word of positions.

    Args:
        sums: vectors of columns of a task.
    """
    return 1 + 1.25 / sums


def loads_of_pairs(sums: int, shared: float) -> float:
    """The same for two rows at once.

    Args:
        sums: vectors of columns of a task.
        shared: the part of a list that both rows have in common.
    """
    return (1 - shared / 2) * (1 + 1 / sums) + 1 / sums


def are_tried(pattern: NM, alone: int, sums: int) -> bool:
    """Whether partners are looked for.

    Args:
        pattern: of single elements.
        alone: vectors of columns of a task where each row has its own loads.
        sums: the same in pairs.
    """
    return loads_of_pairs(sums, _EXPECTED * pattern.n / pattern.m) <= MOST_LOADS * loads_alone(alone)


def expected_share(pattern: NM, block: int, rows: int) -> float:
    """The part of a list that partners have in common, of random weights.

    What two rows share of a window is hypergeometric: n^2 / m on average, variance (n (m - n) / m)^2 / (m - 1). The
    best of r normal numbers lies about sqrt(2 ln r) deviations above the mean; on average half of the others are left
    to a row.

    Args:
        pattern: of single elements.
        block: terms of a list, whole windows.
        rows: among which partners are looked for.
    """
    n, m = pattern.n, pattern.m
    windows = block // m
    if m < 2 or windows == 0:
        return 1.0
    deviation = n * (m - n) / m * sqrt(windows / (m - 1)) / (windows * n)
    return min(n / m + _BEST * sqrt(2 * log(max(min(rows, PARTNERS) / 2, 1))) * deviation, 1.0)


def saved_loads(pattern: NM, rows: int, depth: int, alone: int, sums: int, most: int) -> float:
    """Loads for a multiply-add that pairs are expected to save; zero where rows are not taken in pairs.

    Args:
        pattern: of single elements, along the depth.
        rows: of the sparse operand.
        depth: of the product.
        alone: vectors of columns of a task where each row has its own loads.
        sums: the same in pairs.
        most: terms of a block that the nearest cache has room for.
    """
    block = most // pattern.m * pattern.m
    if rows < 2 or block == 0 or block >= depth or not are_tried(pattern, alone, sums):
        return 0.0
    loads = loads_of_pairs(sums, expected_share(pattern, block, rows))
    return loads_alone(alone) - loads if loads <= MOST_LOADS * loads_alone(alone) else 0.0
