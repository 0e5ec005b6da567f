# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covers of the elements of a matrix that are not zero, by blocks of an aligned lattice and a remainder.

SparTA (Zheng et al., OSDI 2022, section 4.2): a weighted set cover, greedy, in which a block's price is its cost over
the elements that it alone covers so far; where the cheapest block is dearer than single elements, these take what is
left. Blocks of one size do not overlap, so all of them whose price no other size can beat are taken in one round, which
gives what taking them one by one gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.patterns import NM, Block, Pattern
from tilewright.plan.cost.sparse import unit_of

Unit = tuple[int, int]


class Lattice:
    """Counts of the live elements of a matrix in aligned units of any size; those at the border are cut off.

    Attributes:
        live: bool [rows, columns].
    """

    def __init__(self, live: np.ndarray) -> None:
        self.live = live
        self._held: dict[Unit, np.ndarray] = {(1, 1): np.ascontiguousarray(live).view(np.uint8)}
        self._of_units: dict[Unit, Lattice] = {}

    @cached_property
    def total(self) -> int:
        """How many elements are live."""
        return int(np.count_nonzero(self.live))

    def counts(self, unit: Unit) -> np.ndarray:
        """Live elements of each unit: integers [ceil(rows / unit[0]), ceil(columns / unit[1])]."""
        if unit not in self._held:
            parts = [u for u in self._held if unit[0] % u[0] == 0 and unit[1] % u[1] == 0]
            base = max(parts, key=prod)
            self._held[unit] = joined(self._held[base], (unit[0] // base[0], unit[1] // base[1]), prod(unit))
        return self._held[unit]

    def in_units(self, unit: Unit) -> Lattice:
        """The matrix of units, of which those are live that have a live element."""
        if unit == (1, 1):
            return self
        if unit not in self._of_units:
            self._of_units[unit] = Lattice(self.counts(unit) > 0)
        return self._of_units[unit]

    def windows(self, pattern: NM) -> np.ndarray:
        """Live units in each window of an N:M pattern: integers, a window along its axis as one."""
        window = (pattern.m, 1) if pattern.axis == 0 else (1, pattern.m)
        return self.in_units(unit_of(pattern)).counts(window)


def joined(counts: np.ndarray, factor: Unit, most: int) -> np.ndarray:
    """Counts of units as those of larger ones.

    Args:
        counts: integers [rows, columns].
        factor: how many units along each dimension are one.
        most: the largest number that a count can be.
    """
    kind = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int64
    for axis in (0, 1):
        step, size = factor[axis], counts.shape[axis]
        if step == 1:
            continue
        total = np.zeros([-(-size // step) if d == axis else s for d, s in enumerate(counts.shape)], kind)
        for first in range(min(step, size)):
            part = counts[first::step] if axis == 0 else counts[:, first::step]
            into = total[: len(part)] if axis == 0 else total[:, : part.shape[1]]
            into += part
        counts = total
    return counts


def spread(units: np.ndarray, factor: Unit, shape: Sequence[int]) -> np.ndarray:
    """What stands for units, for each of their parts: the inverse of `joined`, cut to a shape."""
    return units.repeat(factor[0], 0)[: shape[0]].repeat(factor[1], 1)[:, : shape[1]]


def weighted_cover(
    lattice: Lattice, costs: Mapping[Unit, float], single: float = 1.0, step: float = 1.0
) -> dict[Unit, np.ndarray]:
    """The blocks that cover live elements for less than single elements cost.

    Args:
        lattice: the live elements.
        costs: of one block, for each size that there is.
        single: cost of an element by itself.
        step: prices up to so many times the least count as the least: fewer rounds, nearly the same blocks.

    Returns:
        For each size, which of its blocks are taken: bool [rows / size[0], columns / size[1]], rounded up.
    """
    base = common_unit(costs)
    left = lattice.counts(base).copy()
    factors = {unit: (unit[0] // base[0], unit[1] // base[1]) for unit in costs}
    taken = {unit: np.zeros(joined(left, factors[unit], prod(unit)).shape, bool) for unit in costs}
    while left.size:
        counts = {unit: joined(left, factors[unit], prod(unit)) for unit in costs}
        prices = {unit: costs[unit] / max(int(counts[unit].max()), 1e-30) for unit in costs}
        unit = min(prices, key=lambda one: prices[one])
        if prices[unit] > single:
            break
        others = min((price for other, price in prices.items() if other != unit), default=single)
        limit = min(max(others, prices[unit] * step), single)
        now = counts[unit] >= max(costs[unit] / limit * (1 - 1e-12), 1e-30)
        taken[unit] |= now
        left[spread(now, factors[unit], left.shape)] = 0
    return taken


def common_unit(units: Mapping[Unit, float] | Sequence[Unit]) -> Unit:
    """The largest unit that all of these are made of."""
    return gcd(*(u[0] for u in units)), gcd(*(u[1] for u in units))


@dataclass(frozen=True)
class Piece:
    """What a region of a cover holds.

    Attributes:
        pattern: of the region.
        unit: elements that `chosen` has one entry for.
        chosen: which units are the region's; None where all are.
        elements: how many live elements.
        units: how many units of the pattern are kept, zeros that fill N:M up among them.
    """

    pattern: Pattern
    unit: Unit
    chosen: np.ndarray | None
    elements: int
    units: int

    def live(self, live: np.ndarray) -> np.ndarray:
        """The region's own of all live elements."""
        return live if self.chosen is None else live & spread(self.chosen, self.unit, live.shape)


def split(lattice: Lattice, patterns: Sequence[Pattern], least: Sequence[int]) -> list[Piece]:
    """Share the live elements among the regions of a cover.

    Blocks are taken by their prices, an N:M region keeps the first `n` units of each window that are left, and the last
    region has the rest, whatever it costs.

    Args:
        lattice: the live elements.
        patterns: of the regions, of two dimensions; blocks come first, a mask last.
        least: for each region of blocks, how many elements a block replaces at equal cost.

    Raises:
        UserError: the order is another one, or the last pattern does not fit what is left; says where.
    """
    blocks = [p for p in patterns[:-1] if isinstance(p, Block)]
    if [*patterns[: len(blocks)]] != blocks or any(not isinstance(p, Block | NM) for p in patterns[:-1]):
        raise UserError("a cover has its blocks first, then N:M, then what takes the rest: a mask, blocks or N:M")
    pieces: list[Piece] = []
    live = lattice.live
    if blocks:
        pieces, live = _block_pieces(lattice, blocks, least)
    for pattern in patterns[len(blocks) : -1]:
        assert isinstance(pattern, NM)
        mine = live & first_units(live, pattern)
        pieces.append(_piece(pattern, mine, (1, 1), mine))
        live = live & ~mine
    unit = common_unit([p.shape for p in blocks]) if len(blocks) == len(patterns) - 1 and blocks else (1, 1)
    chosen = None if not pieces else live if unit == (1, 1) else ~_covered(pieces, lattice, unit)
    return [*pieces, _piece(patterns[-1], live, unit, chosen)]


def _block_pieces(lattice: Lattice, blocks: Sequence[Block], least: Sequence[int]) -> tuple[list[Piece], np.ndarray]:
    """The regions of blocks, and the elements that none of them has."""
    taken = weighted_cover(lattice, {b.shape: float(c) for b, c in zip(blocks, least, strict=False)}, step=STEP)
    unit = common_unit([b.shape for b in blocks])
    counts, before, pieces = lattice.counts(unit), np.zeros(lattice.counts(unit).shape, bool), []
    for block in blocks:
        factor = (block.shape[0] // unit[0], block.shape[1] // unit[1])
        mine = spread(taken[block.shape], factor, before.shape) & ~before
        before |= mine
        held = joined((counts * mine).astype(counts.dtype), factor, prod(block.shape))
        pieces.append(Piece(block, unit, mine, int(held.sum(dtype=np.int64)), int(np.count_nonzero(held))))
    return pieces, lattice.live & ~spread(before, unit, lattice.live.shape)


def _covered(pieces: Sequence[Piece], lattice: Lattice, unit: Unit) -> np.ndarray:
    found = np.zeros(lattice.counts(unit).shape, bool)
    for piece in pieces:
        assert piece.chosen is not None
        found |= piece.chosen
    return found


#: Prices that count as equal: the cost of a cover differs by a part of that at most.
STEP = 1.05


def _piece(pattern: Pattern, live: np.ndarray, unit: Unit, chosen: np.ndarray | None) -> Piece:
    elements = int(np.count_nonzero(live))
    if isinstance(pattern, Block):
        units = int(np.count_nonzero(Lattice(live).counts(pattern.shape)))
    elif isinstance(pattern, NM):
        units = units_of(pattern, live)
    else:
        units = elements
    return Piece(pattern, unit, chosen, elements, units)


def units_of(pattern: NM, live: np.ndarray) -> int:
    """Units that an N:M pattern keeps. UserError where a window has more; says where."""
    counts = Lattice(live).windows(pattern)
    if counts.size and counts.max() > pattern.n:
        at = np.unravel_index(int(counts.argmax()), counts.shape)
        raise UserError(
            f"{pattern.n}:{pattern.m} along axis {pattern.axis} does not fit the weight: window {[int(i) for i in at]} "
            f"has {int(counts[at])} units that are not zero, and {int((counts > pattern.n).sum())} of {counts.size} "
            f"windows have more than {pattern.n}; take {int(counts.max())}:{pattern.m}, or a mask as the last region"
        )
    return counts.size * pattern.n


def first_units(live: np.ndarray, pattern: NM) -> np.ndarray:
    """The elements of the first `n` units of each window that are not zero: bool as `live`."""
    unit = unit_of(pattern)
    units = Lattice(live).in_units(unit).live
    along = units if pattern.axis == 0 else units.T
    missing = -len(along) % pattern.m
    windows = np.pad(along, [(0, missing), (0, 0)]).reshape(-1, pattern.m, along.shape[1])
    first = (windows & (windows.cumsum(1, dtype=np.int8 if pattern.m < 128 else np.int32) <= pattern.n)).reshape(
        -1, along.shape[1]
    )[: len(along)]
    return spread(first if pattern.axis == 0 else first.T, unit, live.shape)
