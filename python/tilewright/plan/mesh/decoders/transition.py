# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the grid of a prompt to that of the tokens after it: weights and caches of a layer move through the mesh.

Nothing is loaded again (WaferLLM, OSDI 2025, section 4.4). The prompt's layer keeps new rows as its rings bring them by
(`PrefillLayer.then`), which costs copies alone; columns then travel hop by hop, of all matrices of a layer side by side
and of several layers if their memory allows. Norms are two vectors, which both layouts hold from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.matrices import Matrix, matrices
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.moves.line_move import Line, line_program
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program


@dataclass(frozen=True)
class Transition:
    """From a layer for a prompt to one for tokens.

    Attributes:
        prefill: the layer that runs first; its `then` is the second grid.
        cache: of the layer to run: its grid is that one; rows hold the prompt's tokens in order, as many each.
    """

    prefill: PrefillLayer
    cache: Cache

    def __post_init__(self) -> None:
        cache, then = self.cache, self.prefill.then
        if (cache.height, cache.width) != (then, then):
            raise UserError(
                f"A layer that is followed by tokens on a grid of side {then} leaves nothing to a cache on "
                f"{cache.height} x {cache.width} cores: both must be the same square."
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

    @property
    def matrices(self) -> dict[str, Matrix]:
        """What moves."""
        return matrices(self.decoder, self.prefill.tokens, (self.prefill.side, self.cache.height))

    def held(self) -> tuple[int, int]:
        """Bytes of a core that a layer's weights and what it has cached take, on the first grid and on the second."""
        sizes = [matrix.held(self.decoder.dtype.itemsize) for matrix in self.matrices.values()]
        return sum(before for before, _ in sizes), sum(after for _, after in sizes)

    def columns(self, layers: int = 1) -> Program:
        """A row of the second grid while columns of so many layers travel, by itself: all rows do the same.

        Matrices that lie alike are one tensor.
        """
        groups: dict[tuple[Line, tuple[int, int]], int] = {}
        for matrix in self.matrices.values():
            key = matrix.along_x, matrix.between
            groups[key] = groups.get(key, 0) + layers
        parts = [(replace(line.alone(0), dim=line.dim + 1), (count, *shape)) for (line, shape), count in groups.items()]
        return line_program(parts, self.decoder.dtype)


@dataclass(frozen=True)
class MoveTime:
    """What it takes that columns travel.

    Attributes:
        peak: bytes that a core holds at its fullest, of what moves alone.
    """

    cycles: float
    peak: int


def time_columns(what: Transition, machine: Machine, layers: int = 1) -> MoveTime:
    """Return what columns of so many layers take that travel together: of one row of cores, as all rows do the same."""
    program = what.columns(layers)
    sizes = {buffer.name: buffer_bytes(buffer) for buffer in program.buffers}
    peak = max(sum(sizes[name] for name in live) for live in live_buffers(program))
    return MoveTime(time_program(program, machine, share=False, loads=False).cycles, peak)


def cached_rows(cache: Cache, values: np.ndarray) -> np.ndarray:
    """Keys or values [tokens, features] of a prompt as a cache has them, [height * slots, features of the cache]."""
    rows = np.zeros((cache.height * cache.slots, cache.features), values.dtype)
    for row in range(cache.height):
        for at in range(cache.slots):
            token = cache.token_at(row, at, len(values))
            if token is not None:
                rows[row * cache.slots + at, : values.shape[1]] = values[token]
    return rows
