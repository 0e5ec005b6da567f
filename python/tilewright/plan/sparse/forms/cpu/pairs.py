# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of an N:M operand in pairs that keep many positions in common: what is loaded there serves both.

A kernel with an index per element loads as often as it multiplies, and cores load no more often than that. Where two
rows keep the same position, one load is enough. Two rows of random 2:4 have half of their positions in common; of a
hundred rows, partners are found that have two thirds. Partners may differ from block to block of the depth, as sums
lie in memory between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.dialects.sparse_tile.patterns import NM

GROUP = 256
"""Rows among which partners are looked for. Of random 2:4, partners in 32 terms have 0.72 of their elements in common
with 64 rows to choose from, 0.75 with 256, 0.80 with 1024; the time that it takes grows with the number."""

_COUNTS = 1 << 22
"""Counts of common positions that are held at once."""


@dataclass(frozen=True)
class Pairs:
    """Rows in pairs, for each block of the depth.

    Attributes:
        order: [blocks, pairs, 2] i32, rows; the number of rows itself stands for one that is not there.
        places: [blocks, pairs, count, 2] i16, of each row its kept elements within its list; the first `shared` of both
            rows have the same positions.
        shared: [blocks, pairs] i32, how many kept elements both rows have in common. Of a chunk, pairs with more come
            first: loops over lists then rarely end by surprise.
    """

    order: np.ndarray
    places: np.ndarray
    shared: np.ndarray


def positions_of(source: np.ndarray, pattern: NM, block: int) -> np.ndarray:
    """Positions in their block that rows keep: [blocks, rows, kept elements of a block].

    Args:
        source: the sparse matrix [rows, depth], windows along the depth.
        pattern: its pattern, of single elements.
        block: a multiple of the window.
    """
    along = NM(pattern.n, pattern.m, 1)
    in_window = along.pack(source)[1].astype(np.int64)
    rows, windows = source.shape[0], block // pattern.m
    blocks = -(-source.shape[1] // block)
    missing = blocks * windows - in_window.shape[1] // pattern.n
    behind = np.tile(np.arange(pattern.n), (rows, missing))
    found = np.concatenate([in_window, behind], 1).reshape(rows, blocks, windows, pattern.n)
    found += np.arange(windows)[:, None] * pattern.m
    return found.reshape(rows, blocks, -1).transpose(1, 0, 2)


def paired(kept: np.ndarray, block: int, chunk: int) -> Pairs:
    """Pair rows; partners are in the same chunk of rows.

    Args:
        kept: positions [blocks, rows, count], as :func:`positions_of` has them.
        block: a bound of positions.
        chunk: rows of a task; even, unless it is all of them.
    """
    blocks, rows, count = kept.shape
    if rows % 2:
        kept = np.concatenate([kept, kept[:, -1:]], 1)
    mask = np.zeros((blocks, kept.shape[1], block), bool)
    np.put_along_axis(mask, kept, True, 2)
    cuts = _groups(mask.shape[1], chunk + chunk % 2)
    order = np.concatenate([_partners(mask[:, start:stop]) + start for start, stop in cuts], 1)
    order.sort(2)  # who is not there stands second: positions in common are read of the first
    lists = np.take_along_axis(kept[:, :, None], order.reshape(blocks, -1, 1, 1), 1).reshape(*order.shape, count)
    shared, places = _common(lists, block)
    by_shared = np.argsort(order[..., 0] // chunk * (count + 1) - shared, 1, kind="stable")
    order = np.take_along_axis(order, by_shared[:, :, None], 1)
    places = np.take_along_axis(places, by_shared[:, :, None, None], 1)
    return Pairs(order.astype(np.int32), places, np.take_along_axis(shared, by_shared, 1).astype(np.int32))


def _common(lists: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """What each pair has in common, and places with that in front, of lists [blocks, pairs, 2, count]."""
    one, other = lists[:, :, 0], lists[:, :, 1]
    places, flags = [], []
    for own, partner in ((one, other), (other, one)):
        at = np.zeros((*lists.shape[:2], block), bool)
        np.put_along_axis(at, partner, True, 2)
        flags.append(np.take_along_axis(at, own, 2))
        places.append(np.argsort(~flags[-1], 2, kind="stable"))
    return flags[0].sum(2), np.stack(places, 3).astype(np.int16)


def _groups(rows: int, chunk: int) -> list[tuple[int, int]]:
    """Rows among which partners are looked for; an even number each."""
    found = []
    for start in range(0, rows, chunk):
        stop = min(start + chunk, rows)
        number = max((stop - start) // GROUP, 1)
        cuts = [start + 2 * ((stop - start) // 2 * part // number) for part in range(number)] + [stop]
        found += list(zip(cuts[:-1], cuts[1:], strict=True))
    return found


def _partners(mask: np.ndarray) -> np.ndarray:
    """Pairs [blocks, rows / 2, 2] of rows with masks [blocks, rows, positions] that have much in common."""
    blocks, rows = mask.shape[:2]
    step = max(_COUNTS // (rows * rows), 1)
    return np.concatenate([_matched(mask[at : at + step].astype(np.float32)) for at in range(0, blocks, step)])


def _matched(mask: np.ndarray) -> np.ndarray:
    """Greedy matching: each row takes who has most in common with it of those that are left."""
    blocks, rows = mask.shape[:2]
    common = (mask @ mask.transpose(0, 2, 1)).astype(np.int16)
    each, free = np.arange(blocks), np.zeros((blocks, rows), np.int32)
    pairs = np.zeros((blocks, rows // 2, 2), np.int64)
    for pair in range(rows // 2):
        one = free.argmax(1)
        free[each, one] = -rows * mask.shape[2]
        other = (common[each, one] + free).argmax(1)
        free[each, other] = -rows * mask.shape[2]
        pairs[:, pair, 0], pairs[:, pair, 1] = one, other
    return pairs
