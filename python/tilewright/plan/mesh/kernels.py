# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one core computes on its tiles, with the rounding of the machine, and what that costs.

Operands of a multiply-add are converted to the accumulator's type; the product rounds, then the sum, as the ops do that
`bodies` makes of it. (Products of two halves are exact in single precision.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.plan.mesh.writer import Kernel
from tilewright.sim.coremesh.combinations import Combine as How
from tilewright.sim.coremesh.combinations import combined, identity
from tilewright.sim.coremesh.program import Buffer, Cost, Meeting

Buffers = tuple[Buffer, ...]


@dataclass(frozen=True)
class MatMul(Kernel):
    """``a @ b + c`` (reads a, b, c; writes c), as one vector multiply-add over a column of c per element of b.

    Attributes:
        dtype: of the accumulator.
        transposed: b is [n, k] rather than [k, n].
    """

    dtype: np.dtype
    transposed: bool = False
    name = "matmul"

    @property
    def meeting(self) -> tuple[Meeting, ...]:
        """Columns of a and rows of b, or columns where it is transposed."""
        return (((0, 1), (1, 1 if self.transposed else 0)),)

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """a, of [cores, m, k]; b, of [cores, k, n] or [cores, n, k]; c of [cores, m, n], 0 where it is not given.

        Products are added in the order of k.
        """
        left, right = tiles[:2]
        right = right.swapaxes(1, 2) if self.transposed else right
        total = tiles[2] if len(tiles) > 2 else np.zeros((*left.shape[:2], right.shape[2]), self.dtype)
        left, right = left.astype(self.dtype), right.astype(self.dtype)
        for k in range(left.shape[2]):
            total = total + left[:, :, k, None] * right[:, None, k, :]
        return (total,)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Multiply-adds, and one vector call per element of b (WaferLLM's inner loop); before them, zeros for c."""
        (m, k), n = reads[0].shape, writes[0].shape[1]
        zeros = len(reads) == 2
        return Cost(m * k * n, k * n + zeros, m * n * zeros, _bits(reads[0]), doubles=_doubles(2 * m * k * n, writes))


@dataclass(frozen=True)
class VecMat(Kernel):
    """``x @ w`` (reads x, w) of one vector x, or of a few as rows.

    Attributes:
        dtype: of the accumulator.
    """

    dtype: np.dtype
    name = "vecmat"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """x, of [cores, k] or [cores, m, k], and w, of [cores, k, n], to [cores, n] or [cores, m, n].

        Products are added in the order of k.
        """
        rows = tiles[0] if tiles[0].ndim == 3 else tiles[0][:, None]
        (made,) = MatMul(self.dtype)(rows, tiles[1])
        return (made if tiles[0].ndim == 3 else made[:, 0],)

    @staticmethod
    def by_columns(rows: int, columns: int) -> bool:
        """Whether a vector multiply-add runs over a column of the result, of all vectors: where this is the longer."""
        return rows > columns

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """Multiply-adds, in vector calls over a row of the result per element of x, or over a column per element of w.

        Before them, zeros for the result.
        """
        k, n = reads[1].shape
        m = prod(reads[0].shape) // k
        calls = k * (n if self.by_columns(m, n) else m)
        return Cost(m * k * n, calls + 1, m * n, _bits(reads[0]), doubles=_doubles(2 * m * k * n, writes))


@dataclass(frozen=True)
class Fill(Kernel):
    """Writes one number everywhere; reads nothing.

    Attributes:
        shape, dtype: of the tile.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    value: float = 0
    name = "fill"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """A tile for all cores, [1, *shape]."""
        return (np.full((1, *self.shape), self.value, self.dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One element each, in one call."""
        return Cost(0, 1, prod(writes[0].shape), _bits(writes[0]))


@dataclass(frozen=True)
class Store(Kernel):
    """Tiles, one behind the other along the last dimension, in another type (None: the same).

    So values leave an accumulator, and move within a core.
    """

    dtype: np.dtype | None = None
    name = "store"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tiles of [cores, ..., n] to one of [cores, ..., n * tiles]."""
        return (np.concatenate(tiles, axis=-1).astype(self.dtype or tiles[0].dtype),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One element each, in one call, to join tiles, and again to convert them; or once to copy one."""
        joins, converts = len(reads) > 1, reads[0].dtype != writes[0].dtype
        steps = max(joins + converts, 1)
        return Cost(0, steps, steps * prod(writes[0].shape), max(joins * _bits(reads[0]), _bits(writes[0])))


@dataclass(frozen=True)
class Cut(Kernel):
    """Some of the elements of tiles that lie one behind the other along a dimension.

    Attributes:
        first, count: of the elements.
    """

    dimension: int
    first: int
    count: int
    name = "cut"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tiles of [cores, ..., n, ...] to one of [cores, ..., count, ...]."""
        joined = np.concatenate(tiles, axis=self.dimension + 1)
        return (joined.take(range(self.first, self.first + self.count), axis=self.dimension + 1),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One element each, in one call, to join tiles, and to cut them; at least to copy one."""
        joined = sum(one.shape[self.dimension] for one in reads)
        made, joins, cuts = prod(writes[0].shape), len(reads) > 1, joined != self.count
        elements = joins * made // self.count * joined + (cuts or not joins) * made
        return Cost(0, joins + (cuts or not joins), elements, _bits(writes[0]))


@dataclass(frozen=True)
class AsRow(Kernel):
    """A tile as the only row of one with a dimension more."""

    name = "as_row"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """A tile of [cores, ...] to one of [cores, 1, ...]."""
        return (tiles[0][:, None],)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """One element each, in one call."""
        return Cost(0, 1, prod(writes[0].shape), _bits(writes[0]))


@dataclass(frozen=True)
class PutAt(Kernel):
    """A tile in place of the only row of another where this is the row of a number (reads both, a first number, it).

    Attributes:
        offset: number of the row, counted from the first number.
    """

    offset: int
    name = "put_at"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tiles of [cores, ...] and [cores, 1, ...], numbers of [cores, 1], to one of [cores, 1, ...]."""
        new, old, first, number = tiles
        here = (first + np.int32(self.offset) == number).reshape(-1, *(1,) * (old.ndim - 1))
        return (np.where(here, new[:, None], old),)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A sum, a comparison and a choice for each element."""
        return Cost(0, 3, 3 * prod(writes[0].shape), _bits(writes[0]))


@dataclass(frozen=True)
class Combine(Kernel):
    """The first ``count`` elements along a dimension as one, which the result does not have, in order.

    Attributes:
        how: two numbers become one.
    """

    how: How
    dimension: int
    count: int
    name = "combine"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """A tile of [cores, ..., n, ...] to one without n."""
        parts = np.moveaxis(tiles[0], self.dimension + 1, 0)[: self.count]
        total = np.full_like(parts[0], identity(self.how, parts.dtype))
        for part in parts:
            total = combined(self.how, total, part)
        return (total,)

    def cost(self, reads: Buffers, writes: Buffers) -> Cost:
        """A step per element, after the start; first a copy where not all elements count."""
        made, size = prod(writes[0].shape), reads[0].shape[self.dimension]
        copied = self.count < size
        steps = self.count if writes[0].shape else 1
        elements, doubles = made * (self.count * (1 + copied) + 1), _doubles(made * self.count, writes)
        return Cost(0, steps + 1 + copied, elements, _bits(writes[0]), doubles=doubles)


def _doubles(operations: int, writes: Buffers) -> int:
    """Operations that are on f64."""
    return operations if writes[0].dtype == np.float64 else 0


def _bits(buffer: Buffer) -> int:
    return 8 * buffer.dtype.itemsize
