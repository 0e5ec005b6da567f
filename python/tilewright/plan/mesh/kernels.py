# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one core computes on its tiles, with the rounding of the machine, and what that costs.

Multiply-adds are fused: each rounds once, to the type of the accumulator. A product of two numbers and its sum with a
third are exact enough in the next wider type for the second rounding to change nothing (its mantissa has more than
twice the bits and two).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import ml_dtypes
import numpy as np

from tilewright.plan.mesh.writer import Kernel
from tilewright.sim.coremesh.program import Cost

Shapes = tuple[tuple[int, ...], ...]

_WIDER = {
    np.dtype(np.float16): np.dtype(np.float32),
    np.dtype(ml_dtypes.bfloat16): np.dtype(np.float32),
    np.dtype(np.float32): np.dtype(np.float64),
}


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

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """a, of [cores, m, k]; b, of [cores, k, n] or [cores, n, k]; c of [cores, m, n], 0 where it is not given.

        Products are added in the order of k.
        """
        left, right = tiles[:2]
        right = right.swapaxes(1, 2) if self.transposed else right
        total = tiles[2] if len(tiles) > 2 else np.zeros((*left.shape[:2], right.shape[2]), self.dtype)
        wide = _WIDER.get(total.dtype, total.dtype)
        for k in range(left.shape[2]):
            step = left[:, :, k, None].astype(wide) * right[:, None, k, :].astype(wide)
            total = (total.astype(wide) + step).astype(total.dtype)
        return (total,)

    def cost(self, reads: Shapes, writes: Shapes) -> Cost:
        """Multiply-adds, and one vector call per element of b (WaferLLM's inner loop)."""
        m, k = reads[0][-2:]
        n = writes[0][-1]
        return Cost(macs=m * k * n, vector_calls=k * n)


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

    def cost(self, reads: Shapes, writes: Shapes) -> Cost:
        """One element each, in one call."""
        return Cost(elements=prod(writes[0]), vector_calls=1)


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

    def cost(self, reads: Shapes, writes: Shapes) -> Cost:
        """One element each, in one call per tile."""
        return Cost(elements=prod(writes[0]), vector_calls=len(reads))
