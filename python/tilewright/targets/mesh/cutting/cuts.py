# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In how many parts a product fits the cores' memories, and which of those is the fastest (tier T1)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program
from tilewright.targets.mesh.cutting.parts import Parts

#: Parts that are tried: products of powers of two up to this.
_MOST = 4096


@dataclass(frozen=True)
class Tiles:
    """What one core has of a product; all in elements, and bytes of one.

    Attributes:
        m: rows.
        moves: the operands are activations, and stay beside the parts: left, right.
    """

    m: int
    k: int
    n: int
    operand: int
    result: int
    moves: tuple[bool, bool]

    def part(self, parts: Parts) -> Tiles:
        """Of the largest of the parts."""
        return replace(self, m=-(-self.m // parts.m), k=-(-self.k // parts.k), n=-(-self.n // parts.n))

    @property
    def least(self) -> int:
        """Bytes of each tile once: no program needs less."""
        return (self.m * self.k + self.k * self.n) * self.operand + self.m * self.n * self.result

    def beside(self, parts: Parts) -> int:
        """Bytes that stay while parts are multiplied: what further ones read, and what has been made."""
        if parts.count == 1:
            return 0
        copies = 2 if parts.m * parts.k > 1 else 1  # parts that are read again
        held = self.m * self.k * copies * self.moves[0] + self.k * self.n * self.moves[1]
        return held * self.operand + self.m * self.n * self.result

    def joining(self, parts: Parts) -> int:
        """Bytes where results are added, or joined."""
        return self.m * self.n * self.result * (3 if parts.k > 1 else 2 if parts.count > 1 else 0)


def fastest(
    tiles: Tiles, program: Callable[[Tiles], Program], machine: Machine, room: int
) -> tuple[Parts, float] | None:
    """The parts with the shortest simulated time of all, among the few that fit with the fewest products.

    Args:
        tiles: of the whole product.
        program: makes the program of one with such tiles; equal ones are simulated once, whoever asks.
        room: bytes of a core.

    Returns:
        parts, and cycles of all of them; None where none fits.
    """
    found: dict[Parts, float] = {}
    level = _MOST
    for parts in _tried(tiles):
        if parts.count > level:
            break
        part = tiles.part(parts)
        if max(part.least + tiles.beside(parts), tiles.joining(parts)) > room:
            continue
        if _peak(program, part) + tiles.beside(parts) <= room:
            level = min(level, 1 if parts.count == 1 else 2 * parts.count)
            found[parts] = parts.count * _cycles(program, part, machine)
    best = min(found, key=lambda parts: found[parts], default=None)
    return None if best is None else (best, found[best])


@functools.lru_cache(maxsize=4096)
def _peak(program: Callable[[Tiles], Program], tiles: Tiles) -> int:
    """Bytes of the fullest core."""
    return core_classes(program(tiles))[0].peak


@functools.lru_cache(maxsize=1024)
def _cycles(program: Callable[[Tiles], Program], tiles: Tiles, machine: Machine) -> float:
    """Simulated (tier T1)."""
    return time_program(program(tiles), machine, loads=False).cycles


def can_fit(tiles: Tiles, room: int) -> bool:
    """Whether some parts fit whose operands have two slots, one for what arrives."""

    def need(parts: Parts) -> int:
        part = tiles.part(parts)
        arriving = (part.m * part.k + part.k * part.n) * tiles.operand
        return max(part.least + arriving + tiles.beside(parts), tiles.joining(parts))

    return any(need(parts) <= room for parts in _tried(tiles))


def _tried(tiles: Tiles) -> Iterator[Parts]:
    """Powers of two along each dimension, the fewest products first."""
    exponents = range(_MOST.bit_length())
    limits = (tiles.m, tiles.k, tiles.n)
    for total in exponents:
        for m, k in itertools.product(exponents[: total + 1], repeat=2):
            if m + k <= total:
                counts = (1 << m, 1 << k, 1 << (total - m - k))
                if all(count <= limit for count, limit in zip(counts, limits, strict=True)):
                    yield Parts(*counts)
