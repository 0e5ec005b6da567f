# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covers of a pruned weight that the cost model is asked about: one pattern for all, or blocks, N:M and a remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

import numpy as np

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern
from tilewright.plan.cost.sparse import Region, Sizes, Taken, kernels_for, sparse_seconds, unit_of, unit_seconds
from tilewright.plan.sparse.cover import Lattice, split

#: Units of a window of N:M; columns that share an index; edges of blocks.
_WINDOWS = (4, 8, 16, 32)
_VECTORS = (16, 32, 64)
_EDGES = (4, 8, 16, 32, 64)
#: Sizes of blocks, the best ones alone, of which the best is combined with each other.
_PAIRED = 4
#: Sizes of blocks, the best ones alone, whose rest is tried as N:M.
_WINDOWED = 2
#: Times that differ by less than this are the same.
_ALIKE = 1.01

#: The family that takes blocks and single elements in one pass, where these are few: their lists are over the depth.
_JOINED, _FEW = "rows_in_lanes", 0.12

#: How a family of kernels takes a weight that has a pattern, with so many units kept; or why it does not.
Takes = Callable[[str, Pattern, int], Taken | str]


@dataclass(frozen=True)
class Candidate:
    """A cover with the kernel of each region, and its predicted seconds.

    Attributes:
        regions: pattern, kernel and kept units of each.
        least: of each region of blocks, how many elements a block replaces at equal cost; 0 for the others.
        seconds: predicted.
    """

    regions: tuple[Region, ...]
    least: tuple[int, ...]
    seconds: float

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Those of the regions."""
        return tuple(region.pattern for region in self.regions)


@dataclass
class Search:
    """The candidates for one weight.

    Attributes:
        lattice: its live elements, [k, n].
        sizes: of the product.
        device: the machine.
        takes: asks the families of kernels.
    """

    lattice: Lattice
    sizes: Sizes
    device: Device
    takes: Takes

    def ranked(self) -> list[Candidate]:
        """All candidates, the fastest first; among equals those of fewer regions, without a mask, of larger units."""
        alone = [found for pattern, units in self._alone(self.lattice) if (found := self._single(pattern, units))]
        found = [*alone, *self._mixtures()]
        least = min((c.seconds for c in found), default=0.0) * _ALIKE

        def key(one: Candidate) -> tuple[float, ...]:
            units = sum(region.units for region in one.regions)
            return (max(one.seconds, least), len(one.regions), isinstance(one.patterns[-1], Mask), units)

        return sorted(found, key=key)

    def _alone(self, lattice: Lattice) -> Iterator[tuple[Pattern, int]]:
        """Patterns that hold all live elements, and the units that they keep."""
        yield Mask(), lattice.total
        for m in _WINDOWS:
            for width in (1, *_VECTORS):
                if width == 1 or width < 2 * lattice.live.shape[1]:
                    pattern = NM(0, m, 0, () if width == 1 else (1, width))
                    yield from _windowed(pattern, lattice.windows(pattern))
        for edges in self._blocks():
            yield Block(edges), int(np.count_nonzero(lattice.counts(edges)))

    def _blocks(self) -> list[tuple[int, int]]:
        k, n = self.lattice.live.shape
        return [(a, b) for a in _EDGES for b in _EDGES if a < 2 * k and b < 2 * n]

    def _region(self, pattern: Pattern, units: int, kernel: str = "") -> Region | None:
        """The pattern with the kernel that is asked for, or is fastest for it; None where none takes it."""
        kernels = (kernel,) if kernel else kernels_for(pattern, self.sizes, self.device)
        asked = {k: self.takes(k, pattern, units) for k in kernels}
        found = [
            Region(kernel, pattern, units, taken.left, taken.line)
            for kernel, taken in asked.items()
            if not isinstance(taken, str)
        ]
        return min(found, key=lambda region: self._seconds([region]), default=None)

    def _seconds(self, regions: Sequence[Region]) -> float:
        return sparse_seconds(self.sizes, regions, self.device)

    def _single(self, pattern: Pattern, units: int) -> Candidate | None:
        region = self._region(pattern, units)
        return None if region is None else Candidate((region,), (0,), self._seconds([region]))

    def _mixtures(self) -> list[Candidate]:
        """Blocks where they pay, or the first of each window, and for the rest a mask, or N:M."""
        mask = self._region(Mask(), self.lattice.total)
        # What an element costs by itself tells which blocks pay, also where no family takes a mask.
        single = mask or self._region(NM(8, 32, 0), self.lattice.total)
        if single is None:
            return []
        blocks = sorted(self._of_blocks(single), key=lambda c: c.seconds)
        joined = [] if mask is None else list(self._of_blocks(mask, _JOINED))
        best = [(unit_of(c.regions[0].pattern), c.least[0]) for c in blocks[:_PAIRED]]
        found = [one for edges, least in best[:_WINDOWED] for one in self._and_windows(edges, least)]
        if mask is None:
            return found
        pairs = [self._pair(best[0][0], other, mask) for other, _ in best[1:]]
        return [*found, *blocks, *joined, *self._of_windows(mask), *(pair for pair in pairs if pair is not None)]

    def _of_blocks(self, rest: Region, kernel: str = "") -> Iterator[Candidate]:
        """Blocks of one size where they pay, and single elements; blocks by a family, or by the fastest."""
        for edges in self._blocks():
            least = self._least(edges, rest, kernel)
            if not 0 < least <= prod(edges):
                continue
            counts = self.lattice.counts(edges)
            mine = counts[counts >= least]
            block = self._region(Block(edges), len(mine), kernel) if len(mine) else None
            left = rest.units - int(mine.sum(dtype=np.int64))
            if block is not None and left and (not kernel or left < _FEW * self.lattice.live.size):
                regions = (block, replace(rest, units=left))
                yield Candidate(regions, (least, 0), self._seconds(regions))

    def _least(self, edges: tuple[int, int], rest: Region, kernel: str = "") -> int:
        """Elements that cost as much one by one as a block of them; 0 where no kernel takes blocks."""
        block = self._region(Block(edges), 1 + self.lattice.live.size // (8 * prod(edges)), kernel)
        if block is None:
            return 0
        one = unit_seconds(self.sizes, rest, self.device)
        return ceil(unit_seconds(self.sizes, block, self.device) / one) if one > 0 else prod(edges) + 1

    def _and_windows(self, edges: tuple[int, int], least: int) -> Iterator[Candidate]:
        """Blocks, and N:M that holds all elements of the rest."""
        first, rest = split(self.lattice, (Block(edges), Mask()), (least, 0))
        left = Lattice(rest.live(self.lattice.live))
        for m in _WINDOWS:
            for pattern, units in _windowed(NM(0, m, 0), left.windows(NM(0, m, 0))):
                regions = [self._region(first.pattern, first.units), self._region(pattern, units)]
                known = tuple(region for region in regions if region is not None)
                if first.units and rest.elements and len(known) == len(regions):
                    yield Candidate(known, (least, 0), self._seconds(known))

    def _of_windows(self, rest: Region) -> Iterator[Candidate]:
        """The first elements of each window, and what is left of some windows (SparTA, section 5: 2:4 and a rest)."""
        for m in _WINDOWS:
            counts = self.lattice.counts((m, 1))
            histogram = np.bincount(counts.reshape(-1), minlength=m + 1)
            for n in range(1, int(counts.max(initial=0))):
                window = self._region(NM(n, m, 0), counts.size * n)
                left = int((histogram[n:] * np.arange(len(histogram) - n)).sum())
                if window is not None and left:
                    regions = (window, replace(rest, units=left))
                    yield Candidate(regions, (0, 0), self._seconds(regions))

    def _pair(self, first: tuple[int, int], second: tuple[int, int], rest: Region) -> Candidate | None:
        """Blocks of two sizes and a remainder; None where a size takes no block."""
        patterns, least = (
            (Block(first), Block(second), Mask()),
            (self._least(first, rest), self._least(second, rest), 0),
        )
        pieces = split(self.lattice, patterns, least)
        regions = [self._region(piece.pattern, piece.units) for piece in pieces if piece.units]
        known = tuple(region for region in regions if region is not None)
        return Candidate(known, least, self._seconds(known)) if len(known) == len(patterns) else None


def _windowed(pattern: NM, counts: np.ndarray) -> Iterator[tuple[Pattern, int]]:
    """The pattern with the fewest units of a window that hold all of them."""
    most = max(int(counts.max(initial=0)), 1)
    if most < pattern.m:
        yield NM(most, pattern.m, pattern.axis, pattern.unit), counts.size * most


def name_of(lattice: Lattice) -> str:
    """The most regular pattern that a weight has, as people call it: `2:4`, `block 32x32`, `unstructured`."""
    live, count = lattice.live, lattice.total
    for edges in ((64, 64), (32, 32), (16, 16), (8, 8), (4, 4)):
        units = int(np.count_nonzero(lattice.counts(edges)))
        if units and count >= 0.9 * min(units * prod(edges), live.size) and units * prod(edges) < 0.95 * live.size:
            return f"block {edges[0]}x{edges[1]}"
    for width in (64, 32, 16, 1):
        for m in _WINDOWS if width <= live.shape[1] else ():
            pattern = NM(0, m, 0, (1, width) if width > 1 else ())
            most = int(lattice.windows(pattern).max(initial=0))
            if 0 < most < m and count >= 0.75 * most / m * live.size:
                return f"{most}:{m}" + (f" of vectors of {width}" if width > 1 else "")
    return "unstructured"
