# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the grid of a prompt to that of the tokens after it: weights and caches of a layer move through the mesh.

Nothing is loaded again (WaferLLM, OSDI 2025, section 4.4). What a prompt's layer leaves lies along folded rings,
weights aligned as MeshGEMM has them; a token's layer wants blocks as cores stand, and `o` and `down` with their axes
exchanged. Each matrix goes from grid to grid first (`reshape_grid`), then, if need be, to the other axes (`relayout`).
Norms are two vectors, which both layouts hold from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.plan.mesh.reshape_grid import Reshape, reshape_grid
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing.grown import time_grown


@dataclass(frozen=True)
class Move:
    """One matrix on its way.

    Attributes:
        reshape: from grid to grid.
        turned: its rows lie along x then, and its columns along y.
    """

    name: str
    reshape: Reshape
    turned: bool = False

    def programs(self) -> tuple[Program, ...]:
        """One after the other; each has one input ``x`` and one output."""
        first = reshape_grid(self.reshape)
        return (first, relayout(self._turn())) if self.turned else (first,)

    def _turn(self) -> Relayout:
        what = self.reshape
        assert what.blocks is not None
        rows, columns = what.blocks[1]
        before = Placing((Spread("y", block=rows), Spread("x", block=columns)))
        after = Placing((Spread("x", block=rows), Spread("y", block=columns)))
        return Relayout((what.m, what.n), *what.to_grid, before, after, what.dtype)

    def on(self, prompt: int, tokens: int) -> Move:
        """The same on square grids of other sides, with tiles of the same sizes, all of them full."""
        assert self.reshape.blocks is not None
        rows, columns = self.reshape.blocks[0]
        full = replace(
            self.reshape,
            m=min(prompt * rows, tokens * self.reshape.blocks[1][0]),
            n=min(prompt * columns, tokens * self.reshape.blocks[1][1]),
            from_grid=(prompt, prompt),
            to_grid=(tokens, tokens),
        )
        return replace(self, reshape=full)


@dataclass(frozen=True)
class Transition:
    """From a layer for a prompt to one for tokens.

    Attributes:
        prefill: the layer that has run.
        cache: of the layer to run: its grid, square and within the other; rows hold the prompt's tokens in order, as
            many each.
    """

    prefill: PrefillLayer
    cache: Cache

    def __post_init__(self) -> None:
        cache, side = self.cache, self.prefill.side
        if cache.height != cache.width or cache.height > side:
            raise UserError(
                f"Layers move from {side} x {side} cores to {cache.height} x {cache.width}: the second grid must be a "
                "square within the first."
            )
        if self.prefill.tokens % cache.height or cache.policy != "shift":
            raise UserError(
                f"A prompt of {self.prefill.tokens} tokens in {cache.height} rows under policy '{cache.policy}': rows "
                "must hold as many each, in order of age. Pad the prompt to a multiple of the rows, and let caches "
                "`shift`."
            )
        if self.prefill.tokens > cache.tokens:
            raise UserError(
                f"A prompt of {self.prefill.tokens} tokens does not fit a cache of {cache.tokens}: give it more slots."
            )

    @property
    def decoder(self) -> Decoder:
        """Of both layers."""
        return self.prefill.decoder

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Of one layer: its weights, and what it has cached."""
        decoder, sides = self.decoder, (self.prefill.side, self.cache.height)
        wide, inner = ([-(-size // side) for side in sides] for size in (decoder.width, decoder.hidden))
        heads = [decoder.slice(side) for side in sides]
        tokens = [-(-self.prefill.tokens // side) for side in sides]
        found = [self._move(name, (wide, heads), True) for name in ("q", "k", "v")]
        found += [self._move(name, (wide, inner), True) for name in ("up", "gate")]
        found += [
            self._move("o", (heads, wide), True, turned=True),
            self._move("down", (inner, wide), True, turned=True),
        ]
        return (*found, *(self._move(f"cached {name}", (tokens, heads), False) for name in ("k", "v")))

    def _move(self, name: str, tiles: tuple[list[int], list[int]], skewed: bool, turned: bool = False) -> Move:
        decoder, sides = self.decoder, (self.prefill.side, self.cache.height)
        real = {"o": (decoder.width, decoder.width), "down": (decoder.hidden, decoder.width)}
        real |= {one: (decoder.width, decoder.hidden) for one in ("up", "gate")}
        real |= {f"cached {one}": (self.prefill.tokens, decoder.width) for one in ("k", "v")}
        m, n = real.get(name, (decoder.width, decoder.width))
        start, end = ((side, side) for side in sides)
        blocks = ((tiles[0][0], tiles[1][0]), (tiles[0][1], tiles[1][1]))
        return Move(name, Reshape(m, n, start, end, decoder.dtype, "ring", skewed, blocks), turned)


@dataclass(frozen=True)
class MoveTime:
    """What a move takes.

    Attributes:
        cycles: from grids that are smaller in the same ratio where these are large.
        peak: bytes that a core holds at its fullest, of this matrix alone.
    """

    name: str
    cycles: float
    peak: int


def time_transition(what: Transition, machine: Machine) -> tuple[MoveTime, ...]:
    """Return what the matrices of one layer take, one after the other; equal ones are simulated once.

    Raises:
        UserError: times on smaller grids do not tell those of these.
    """
    known: dict[Move, MoveTime] = {}
    found = []
    for move in what.moves:
        same = replace(move, name="")
        if same not in known:
            known[same] = time_move(same, machine)
        found.append(replace(known[same], name=move.name))
    return tuple(found)


def time_move(move: Move, machine: Machine, least: int = 0) -> MoveTime:
    """Return what one matrix takes.

    Args:
        least: the first grid that is simulated, as a multiple of the smallest two in this ratio; 0: of 16 rows.

    Raises:
        UserError: times on smaller grids do not tell those of these.
    """
    prompt, tokens = move.reshape.from_grid[0], move.reshape.to_grid[0]
    times = gcd(prompt, tokens)

    def part(number: int) -> Callable[[int], Program]:
        return lambda small: move.on(small * prompt // times, small * tokens // times).programs()[number]

    count = 1 + move.turned
    least = least or max(2, -(-16 * times // prompt))
    cycles = sum(
        time_grown(part(one), times, machine, least=least, most=8 * least, step=1).cycles for one in range(count)
    )
    peaks = [core_classes(part(one)(min(least, times)))[0].peak for one in range(count)]
    return MoveTime(move.name, cycles, max(peaks))


def cached_rows(cache: Cache, values: np.ndarray) -> np.ndarray:
    """Keys or values [tokens, features] of a prompt as a cache has them, [height * slots, features of the cache]."""
    rows = np.zeros((cache.height * cache.slots, cache.features), values.dtype)
    for row in range(cache.height):
        for at in range(cache.slots):
            token = cache.token_at(row, at, len(values))
            if token is not None:
                rows[row * cache.slots + at, : values.shape[1]] = values[token]
    return rows
