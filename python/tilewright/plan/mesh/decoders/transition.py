# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the grid of a prompt to that of the tokens after it: weights and caches of a layer move through the mesh.

Nothing is loaded again (WaferLLM, OSDI 2025, section 4.4). What a prompt's layer leaves lies along folded rings,
weights aligned as MeshGEMM has them; a token's layer wants blocks as cores stand, and `o` and `down` with their axes
exchanged (`reshape_grid`). Matrices that lie alike, also of several layers, move together. Norms are two vectors, which
both layouts hold from the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.moves.line_move import line_program
from tilewright.plan.mesh.moves.reshape_grid import Reshape, reshape_grid, steps_of
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program


@dataclass(frozen=True)
class Move:
    """Matrices on their way, all alike, as a tensor [copies, rows, columns].

    Attributes:
        names: of the layer's tensors; of each there are as many as layers move together.
    """

    names: tuple[str, ...]
    reshape: Reshape

    def program(self) -> Program:
        """With one input ``x`` and one output."""
        return reshape_grid(self.reshape)


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

    def moves(self, layers: int = 1) -> tuple[Move, ...]:
        """Of so many layers that move together: their weights, and what they have cached."""
        decoder, sides = self.decoder, (self.prefill.side, self.cache.height)
        width, hidden = decoder.width, decoder.hidden
        wide, inner = ([-(-size // side) for side in sides] for size in (width, hidden))
        heads = [decoder.slice(side) for side in sides]
        tokens = [-(-self.prefill.tokens // side) for side in sides]
        kinds = (
            (("q", "k", "v"), (width, width), (wide, heads), "weights"),
            (("up", "gate"), (width, hidden), (wide, inner), "weights"),
            (("o",), (width, width), (heads, wide), "turned"),
            (("down",), (hidden, width), (inner, wide), "turned"),
            (("cached k", "cached v"), (self.prefill.tokens, width), (tokens, heads), "cached"),
        )
        start, end = ((side, side) for side in sides)
        found = []
        for names, (m, n), (rows, columns), kind in kinds:
            blocks = ((rows[0], columns[0]), (rows[1], columns[1]))
            what = Reshape(
                m,
                n,
                start,
                end,
                decoder.dtype,
                "ring",
                skewed=kind != "cached",
                blocks=blocks,
                copies=layers * len(names),
                turned=kind == "turned",
            )
            found.append(Move(names, what))
        return tuple(found)


@dataclass(frozen=True)
class MoveTime:
    """What a move takes.

    Attributes:
        cycles: along lines, one step after the other.
        peak: bytes that a core holds at its fullest, of what moves alone.
    """

    names: tuple[str, ...]
    cycles: float
    peak: int


def time_transition(what: Transition, machine: Machine, layers: int = 1, samples: int = 5) -> tuple[MoveTime, ...]:
    """Return what the matrices of so many layers that move together take, kind by kind.

    Args:
        samples: see `time_move`.
    """
    return tuple(time_move(move, machine, samples) for move in what.moves(layers))


def time_move(move: Move, machine: Machine, samples: int = 5) -> MoveTime:
    """Return what matrices of one kind take.

    In each step all lines of the grid move side by side and none hears of another, so that lines are simulated instead
    of the grid: its first, and where they differ ``samples`` of them, evenly spread, of which the slowest counts. A
    step begins when the one before has ended everywhere, which counts too much, as cores that are done early go on;
    lines that are no samples may be slower than those that are, which counts too little. So it is an estimate, and no
    bound; with as many samples as lines only the former is left.
    """
    cycles = 0.0
    for line, tile in steps_of(move.reshape):
        numbers = np.unique(np.linspace(0, line.across - 1, samples if line.signs[1] else 1).astype(int))
        programs = [line_program(line.alone(number), tile, move.reshape.dtype) for number in numbers.tolist()]
        # One row is like no other.
        cycles += max(time_program(program, machine, share=False, loads=False).cycles for program in programs)
    return MoveTime(move.names, cycles, _peak(move.program()))


def _peak(program: Program) -> int:
    sizes = {buffer.name: buffer_bytes(buffer) for buffer in program.buffers}
    return max(sum(sizes[name] for name in live) for live in live_buffers(program))


def cached_rows(cache: Cache, values: np.ndarray) -> np.ndarray:
    """Keys or values [tokens, features] of a prompt as a cache has them, [height * slots, features of the cache]."""
    rows = np.zeros((cache.height * cache.slots, cache.features), values.dtype)
    for row in range(cache.height):
        for at in range(cache.slots):
            token = cache.token_at(row, at, len(values))
            if token is not None:
                rows[row * cache.slots + at, : values.shape[1]] = values[token]
    return rows
