# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders of the kind of LLaMA: sizes, and weights as the host writes them to a mesh.

A layer is RMSNorm, attention with rotary positions, a residual sum, RMSNorm, SwiGLU, a residual sum. Keys and values
have the width of queries: heads that share them get copies, as WaferLLM's released kernels have it. Rotary positions
turn pairs of features next to each other (LLaMA's own order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError


@dataclass(frozen=True)
class Decoder:
    """Sizes of a layer.

    Attributes:
        width: of activations; ``hidden``: of the SwiGLU.
        heads, kv_heads: of queries, and of keys and values; one head: as wide as activations.
        eps: of norms.
        dtype: of activations, weights and caches; ``accumulator``: of sums, also of those that travel.
    """

    width: int
    hidden: int
    heads: int = 1
    kv_heads: int = 1
    eps: float = 1e-5
    dtype: Any = np.float32
    accumulator: Any = np.float32

    def __post_init__(self) -> None:
        if min(self.width, self.hidden, self.heads, self.kv_heads) < 1:
            raise UserError(f"A decoder needs sizes of 1 or more: {self}.")
        if self.width % self.heads or self.heads % self.kv_heads:
            raise UserError(
                f"{self.width} features are cut into {self.heads} heads, which share {self.kv_heads} heads of keys and "
                "values: each must divide the one before."
            )
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        object.__setattr__(self, "accumulator", np.dtype(self.accumulator))

    @property
    def head(self) -> int:
        """Features of one head."""
        return self.width // self.heads

    def slice(self, columns: int) -> int:
        """Features of queries, keys or values in one of so many columns of cores: whole pairs of one head, or heads.

        Raises:
            UserError: heads do not fit the columns.
        """
        if self.heads == 1:
            return 2 * -(-self.width // (2 * columns))
        if self.heads % columns == 0:
            return self.heads // columns * self.head
        if columns % self.heads == 0 and self.head % (2 * (columns // self.heads)) == 0:
            return self.width // columns
        raise UserError(
            f"{self.heads} heads of {self.head} features do not fit {columns} columns of cores: a column holds whole "
            "heads, or a head whole columns with an even number of features each. Take a number of columns that "
            f"divides {self.heads}, or a multiple of it."
        )

    def heads_in(self, columns: int) -> int:
        """Heads in one column; 1 where a head takes several."""
        return max(1, self.heads // columns)


def full_width(weight: np.ndarray, decoder: Decoder) -> np.ndarray:
    """Weights [width, kv_heads * head] of keys or values for all heads of queries: [width, width]."""
    parts = weight.reshape(weight.shape[0], decoder.kv_heads, decoder.head)
    return parts.repeat(decoder.heads // decoder.kv_heads, axis=1).reshape(weight.shape[0], -1)


def side_by_side(weights: list[np.ndarray], columns: int, part: int) -> np.ndarray:
    """Several weights as one, [n, columns * parts]: each column of cores has its part of each, one behind the other."""
    padded = [np.pad(one, ((0, 0), (0, columns * part - one.shape[1]))) for one in weights]
    return np.stack([one.reshape(len(one), columns, part) for one in padded], axis=2).reshape(len(weights[0]), -1)


def rotary(positions: np.ndarray, features: int, head: int, base: float = 10_000.0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of pairs, float32 [positions, features / 2]; heads follow each other."""
    pairs = (np.arange(features // 2) % (head // 2)).astype(np.float64)
    angles = np.asarray(positions, np.float64)[:, None] * base ** (-2 * pairs / head)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
