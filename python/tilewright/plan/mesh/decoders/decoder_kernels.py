# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a core of a decoder's layer computes besides products: norms, rotations, gates, softmax by rows.

Tiles are [tokens, features], or [features] of one token; what belongs to rows is [tokens]. Computed in single
precision, whatever the tiles are stored in.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.plan.mesh.writer import Kernel
from tilewright.sim.coremesh.program import Buffer, Cost

Buffers = tuple[Buffer, ...]


def _by_rows(tile: np.ndarray) -> np.ndarray:
    """[cores, features] as of one token: [cores, 1, features], in single precision."""
    return (tile if tile.ndim == 3 else tile[:, None]).astype(np.float32)


def _calls(steps: int, buffer: Buffer) -> Cost:
    """So many vector calls over a tile."""
    return Cost(0, steps, steps * prod(buffer.shape), 8 * buffer.dtype.itemsize)


@dataclass(frozen=True)
class Squares(Kernel):
    """Sum of squares of each row, in order (reads x; writes [tokens]).

    Attributes:
        dtype: of sums.
    """

    dtype: np.dtype
    name = "squares"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """The core's part of it."""
        x = _by_rows(tiles[0])
        return (np.add.accumulate(x * x, axis=2)[:, :, -1].astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A multiply-add over tokens per feature."""
        size, rows = prod(reads[0].shape), prod(writes[0].shape)
        return Cost(size, size // rows, 0, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class Normalize(Kernel):
    """``x / sqrt(total / count + eps) * weight`` (reads x, totals of its rows, weight [features]; writes as x).

    Attributes:
        dtype: of the result.
        count: features of a whole row.
    """

    dtype: np.dtype
    count: int
    eps: float
    name = "normalize"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """RMSNorm, given the sums of squares."""
        total = tiles[1].astype(np.float32)[:, :, None]
        scale = np.float32(1) / np.sqrt(total / np.float32(self.count) + np.float32(self.eps))
        done = _by_rows(tiles[0]) * scale * tiles[2].astype(np.float32)[:, None]
        return (done.reshape(tiles[0].shape).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Two products over the tile, and a few calls on what belongs to rows."""
        tile, rows = _calls(2, writes[0]), _calls(4, reads[1])
        return Cost(0, tile.vector_calls + rows.vector_calls, tile.elements + rows.elements, tile.dtype_bits)


@dataclass(frozen=True)
class Rotate(Kernel):
    """Rotary positions of pairs next to each other (reads x, and cosines and sines of half as many; writes as x).

    Attributes:
        first: where in the row of what is read the features begin; as many follow as there are written.
        rotates: False: only takes the part out.
        dtype, shape: of what is written.
    """

    first: int
    rotates: bool
    dtype: np.dtype
    shape: tuple[int, ...]
    name = "rotate"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """(a, b) of each pair to (a cos - b sin, a sin + b cos)."""
        x = _by_rows(tiles[0])[:, :, self.first : self.first + self.shape[-1]]
        if self.rotates:
            even, odd = x[:, :, ::2], x[:, :, 1::2]
            cos, sin = (_by_rows(tile) for tile in tiles[1:])
            x = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=3).reshape(x.shape)
        return (x.reshape(len(x), *self.shape).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Four products and two sums over half the tile; or a copy."""
        return _calls(3 if self.rotates else 1, writes[0])


@dataclass(frozen=True)
class SwiGLU(Kernel):
    """``gate / (1 + exp(-gate)) * up`` (reads up and gate, or both in one row, up first; writes one).

    Attributes:
        dtype: of the result.
    """

    dtype: np.dtype
    name = "swiglu"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """SiLU of the gate, times up."""
        up, gate = tiles if len(tiles) == 2 else np.split(tiles[0], 2, axis=-1)
        up, gate = up.astype(np.float32), gate.astype(np.float32)
        return ((gate / (np.float32(1) + np.exp(-gate)) * up).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Negative, exponential, sum, quotient, product."""
        return _calls(5, writes[0])


@dataclass(frozen=True)
class Add(Kernel):
    """Sum of two tiles, in the type of the second (the residual)."""

    name = "add"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Rounded once."""
        return ((tiles[0].astype(np.float32) + tiles[1].astype(np.float32)).astype(tiles[1].dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One call."""
        return _calls(1, writes[0])


@dataclass(frozen=True)
class Mask(Kernel):
    """``scale * scores``, and -inf where the column's token is later than the row's or is none.

    Reads scores [tokens, tokens], and which token each row and each column is, from 1 on; 0: none. Writes scores.
    """

    scale: float
    name = "mask"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Causal."""
        scores, rows, columns = tiles
        hidden = (columns[:, None] > rows[:, :, None]) | (columns[:, None] == 0)
        return (np.where(hidden, -np.inf, scores.astype(np.float32) * np.float32(self.scale)).astype(scores.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Scale, compare, choose."""
        return _calls(3, writes[0])


@dataclass(frozen=True)
class RowPeak(Kernel):
    """The largest of each row (reads [tokens, n]; writes [tokens])."""

    name = "row_peak"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """-inf where all are hidden."""
        return (tiles[0].max(axis=2),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A call over tokens per column."""
        size, rows = prod(reads[0].shape), prod(writes[0].shape)
        return Cost(0, size // rows, size, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class RowExponentials(Kernel):
    """``exp(score - peak)`` and sums of rows (reads scores and peaks; writes scores, sums)."""

    name = "row_exponentials"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """0 in rows of which all is hidden."""
        scores, peak = (tile.astype(np.float32) for tile in tiles)
        shown = np.where(np.isfinite(peak), peak, np.float32(0))[:, :, None]
        weights = np.exp(scores - shown)
        return weights.astype(tiles[0].dtype), np.add.accumulate(weights, axis=2)[:, :, -1].astype(tiles[1].dtype)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Subtract, exponentiate, and a call over tokens per column for the sums."""
        size, rows = prod(reads[0].shape), prod(writes[1].shape)
        return Cost(0, 2 + size // rows, 3 * size, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class RowDivide(Kernel):
    """Rows by their sums (reads [tokens, n] and [tokens]; writes [tokens, n]).

    Attributes:
        dtype: of the result.
    """

    dtype: np.dtype
    name = "row_divide"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """0 where the sum is."""
        weights, total = tiles[0].astype(np.float32), tiles[1].astype(np.float32)[:, :, None]
        return (np.where(total > 0, weights / np.where(total > 0, total, 1), 0).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """The reciprocals, and a product over the tile."""
        return Cost(0, 2, prod(writes[0].shape) + prod(reads[1].shape), 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class HeadScores(Kernel):
    """Scores of cached keys, head by head (reads q [heads * n] and keys, each [1, heads * n]; writes [heads * keys]).

    Attributes:
        heads: in one core.
        dtype: of scores.
    """

    heads: int
    scale: float
    dtype: np.dtype
    name = "head_scores"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """The core's part of the sums over features."""
        keys = np.concatenate(tiles[1:], axis=1).astype(np.float32)
        query = tiles[0].astype(np.float32).reshape(len(tiles[0]), 1, self.heads, -1)
        parts = query * np.float32(self.scale) * keys.reshape(*keys.shape[:2], self.heads, -1)
        total = np.add.accumulate(parts, axis=3)[..., -1]
        return (total.swapaxes(1, 2).reshape(len(total), -1).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A multiply-add over keys per feature; one call to scale the query."""
        features, keys = prod(reads[0].shape), len(reads) - 1
        return Cost(features * keys, features + 1, features, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class HeadPeak(Kernel):
    """The largest score of each head (reads scores [heads * n] and mask [n]; writes [heads])."""

    heads: int
    name = "head_peak"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Of what the mask shows; -inf where that is nothing."""
        return (_masked(self.heads, *tiles).max(axis=2).astype(tiles[0].dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One call to mask, one to find the largest, per head."""
        size = prod(reads[0].shape)
        return Cost(0, 2 * self.heads, 2 * size, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class HeadExponentials(Kernel):
    """``exp(score + mask - peak)`` and their sums (reads scores, mask, peak [heads]; writes scores, sums [heads])."""

    heads: int
    name = "head_exponentials"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """0 where masked."""
        peak = tiles[2].astype(np.float32)[:, :, None]
        weights = np.exp(_masked(self.heads, *tiles[:2]) - np.where(np.isfinite(peak), peak, np.float32(0)))
        total = np.add.accumulate(weights, axis=2)[:, :, -1]
        return weights.reshape(tiles[0].shape).astype(tiles[0].dtype), total.astype(tiles[2].dtype)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Mask, subtract, exponentiate, sum, per head."""
        size = prod(reads[0].shape)
        return Cost(0, 4 * self.heads, 4 * size, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class HeadValues(Kernel):
    """Sums of cached values by their weights (reads weights [heads * n] and values, each [1, f]; writes [f])."""

    heads: int
    dtype: np.dtype
    name = "head_values"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """In the order of slots."""
        values = np.concatenate(tiles[1:], axis=1).astype(np.float32)
        values = values.reshape(*values.shape[:2], self.heads, -1)
        weights = tiles[0].astype(np.float32).reshape(len(values), self.heads, -1).swapaxes(1, 2)[..., None]
        return (np.add.accumulate(weights * values, axis=1)[:, -1].reshape(len(values), -1).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A multiply-add over the features of a head per value."""
        features, values = prod(writes[0].shape), len(reads) - 1
        return Cost(features * values, self.heads * values + 1, features, 8 * reads[1].dtype.itemsize)


@dataclass(frozen=True)
class HeadDivide(Kernel):
    """Features by the sum of their head (reads [f] and [heads]; writes [f]).

    Attributes:
        dtype: of the result.
    """

    dtype: np.dtype
    name = "head_divide"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """0 where no token is held."""
        total = tiles[1].astype(np.float32)[:, :, None]
        parts = tiles[0].astype(np.float32).reshape(*total.shape[:2], -1)
        done = np.where(total > 0, parts / np.where(total > 0, total, 1), 0)
        return (done.reshape(tiles[0].shape).astype(self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """The reciprocal, and a product, per head."""
        heads, size = prod(reads[1].shape), prod(writes[0].shape)
        return Cost(0, 2 * heads, heads + size, 8 * writes[0].dtype.itemsize)


def _masked(heads: int, scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return scores.astype(np.float32).reshape(len(scores), heads, -1) + mask.astype(np.float32)[:, None]
