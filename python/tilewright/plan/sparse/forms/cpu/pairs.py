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

import functools
from dataclasses import dataclass

import numpy as np

from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.plan.cost.sparse_pairs import PARTNERS

_COUNTS = 1 << 19
"""Counts of common positions that are held at once, so that they lie in the second cache."""


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

    @property
    def least(self) -> int:
        """What all pairs have in common, in steps of a quarter of a list.

        It tells how far apart lists of positions lie. Exact, it would be another number in each layer (9 to 12 of 32
        in BERT-base), and each number a kernel of its own to compile.
        """
        step = max(self.places.shape[2] // 4, 1)
        return int(self.shared.min()) // step * step


def positions_of(source: np.ndarray, pattern: NM, block: int) -> np.ndarray:
    """Positions in their block that rows keep, ascending: [blocks, rows, kept elements of a block] i16.

    Args:
        source: the sparse matrix [rows, depth], windows along the depth.
        pattern: its pattern, of single elements.
        block: a multiple of the window, at most 2^15.
    """
    along = NM(pattern.n, pattern.m, 1)
    in_window = along.pack(source != 0)[1].astype(np.int16)
    rows, windows = source.shape[0], block // pattern.m
    blocks = -(-source.shape[1] // block)
    missing = blocks * windows - in_window.shape[1] // pattern.n
    behind = np.tile(np.arange(pattern.n, dtype=np.int16), (rows, missing))
    found = np.concatenate([in_window, behind], 1).reshape(rows, blocks, windows, pattern.n)
    found += np.arange(0, block, pattern.m, dtype=np.int16)[:, None]
    return np.ascontiguousarray(found.reshape(rows, blocks, -1).transpose(1, 0, 2))


def paired(kept: np.ndarray, block: int, chunk: int) -> Pairs:
    """Pair rows; partners are in the same chunk of rows.

    Args:
        kept: positions [blocks, rows, count], ascending, as :func:`positions_of` has them.
        block: a bound of positions.
        chunk: rows of a task; even, unless it is all of them.
    """
    blocks, rows, count = kept.shape
    if rows % 2:
        kept = np.concatenate([kept, kept[:, -1:]], 1)
    mask = np.zeros((blocks * kept.shape[1], block), bool)
    np.put_along_axis(mask, kept.reshape(-1, count).astype(np.int64), True, 1)
    in_blocks = mask.reshape(blocks, -1, block)
    cuts = _groups(in_blocks.shape[1], chunk + chunk % 2)
    order = np.concatenate([_partners(in_blocks[:, start:stop]) + start for start, stop in cuts], 1)
    own = mask[order + np.arange(0, len(mask), in_blocks.shape[1])[:, None, None]]
    common = own[:, :, 0] & own[:, :, 1]
    shared = np.count_nonzero(common, 2)
    by_shared = np.argsort(order[..., 0] // chunk * (count + 1) - shared, 1, kind="stable")
    order, shared = np.take_along_axis(order, by_shared[:, :, None], 1), np.take_along_axis(shared, by_shared, 1)
    at = by_shared + np.arange(0, by_shared.size, by_shared.shape[1])[:, None]
    places = _places(own, common).reshape(-1, count, 2)[at]
    return Pairs(order.astype(np.int32), places, shared.astype(np.int32))


def _places(own: np.ndarray, common: np.ndarray) -> np.ndarray:
    """Places [blocks, pairs, count, 2] in the lists of both rows, those of what they have in common in front.

    Args:
        own: [blocks, pairs, 2, positions], what rows keep, the same number each.
        common: [blocks, pairs, positions], what both keep.
    """
    flags = np.repeat(common[:, :, None], 2, 2)[own].reshape(*own.shape[:3], -1)
    numbers = np.tile(np.arange(flags.shape[3], dtype=np.int16), (*own.shape[:3], 1))
    front = numbers < np.count_nonzero(flags, 3)[..., None]
    places = np.empty_like(numbers)
    places[front], places[~front] = numbers[flags], numbers[~flags]
    return np.ascontiguousarray(places.transpose(0, 1, 3, 2))


def _groups(rows: int, chunk: int) -> list[tuple[int, int]]:
    """Rows among which partners are looked for; an even number each."""
    found = []
    for start in range(0, rows, chunk):
        stop = min(start + chunk, rows)
        number = max((stop - start) // PARTNERS, 1)
        cuts = [start + 2 * ((stop - start) // 2 * part // number) for part in range(number)] + [stop]
        found += list(zip(cuts[:-1], cuts[1:], strict=True))
    return found


def _partners(mask: np.ndarray) -> np.ndarray:
    """Pairs [blocks, rows / 2, 2] of rows with masks [blocks, rows, positions] that have much in common.

    Of a pair the lower row stands first.
    """
    blocks, rows = mask.shape[:2]
    step, bits = max(_COUNTS // (rows * rows), 1), _bits(mask)
    mates = np.concatenate([_matched(bits[at : at + step]) for at in range(0, blocks, step)])
    first = np.nonzero(np.arange(rows) < mates)[1].reshape(blocks, rows // 2)
    return np.stack([first, np.take_along_axis(mates, first, 1)], 2)


def _bits(mask: np.ndarray) -> np.ndarray:
    """Masks [blocks, rows, positions] as words of 64 bits [blocks, rows, words]."""
    packed = np.packbits(mask, 2)
    return np.pad(packed, ((0, 0), (0, 0), (0, -packed.shape[2] % 8))).view(np.uint64)


def count_ones(words: np.ndarray) -> np.ndarray:
    """How many bits are set of words of 64 (Warren, Hacker's Delight, 5-1); NumPy counts them from 2.0 on."""
    one, two, four, each = (np.uint64(0xFFFFFFFFFFFFFFFF // part) for part in (3, 5, 17, 255))
    shifts = [np.uint64(shift) for shift in (1, 2, 4, 56)]
    words = words - (words >> shifts[0] & one)
    words = (words & two) + (words >> shifts[1] & two)
    return (words + (words >> shifts[2]) & four) * each >> shifts[3]


_ones_of = getattr(np, "bitwise_count", count_ones)


def _common(bits: np.ndarray) -> np.ndarray:
    """How much each two rows have in common [blocks, rows, rows] f32, of masks [blocks, rows, words].

    By bits: the BLAS shares so small a product out to threads that, beside other work, wait longer than they multiply.
    """
    found = np.zeros((*bits.shape[:2], bits.shape[1]), np.float32)
    for word in range(bits.shape[2]):
        found += _ones_of(bits[:, :, None, word] & bits[:, None, :, word])
    return found


def _matched(bits: np.ndarray) -> np.ndarray:
    """The partner [blocks, rows] of each row with a mask [blocks, rows, words]: the greedy matching, by rounds.

    Each row names who of those that are left has most in common with it; rows that name each other are a pair. That
    finds the pairs that taking the heaviest edge again and again does (Preis, STACS 1999), at least one in each round
    as edges weigh the same from both ends, and most rows in the first few.
    """
    blocks, rows = bits.shape[:2]
    weights = (_common(bits) + _ties(rows)).reshape(-1, rows)
    start = np.arange(blocks * rows) // rows * rows  # of the block of a row
    taken = np.zeros((blocks, rows), np.float32)
    named, left = weights.argmax(1) + start, np.arange(len(weights))
    while len(left):
        mutual = left[named[named[left]] == left]
        taken.reshape(-1)[mutual] = -np.inf
        left = left[taken.reshape(-1)[left] == 0]
        asked = left[taken.reshape(-1)[named[left]] != 0]
        named[asked] = (weights[asked] + taken[asked // rows]).argmax(1) + start[asked]
    return (named - start).reshape(blocks, rows)


@functools.lru_cache(8)
def _ties(rows: int) -> np.ndarray:
    """[rows, rows] below one, symmetric, what decides among those that have as much in common; no row takes itself."""
    drawn = np.random.default_rng(0).random((rows, rows), np.float32) / 2
    ties = drawn + drawn.T
    np.fill_diagonal(ties, -np.inf)
    return ties
