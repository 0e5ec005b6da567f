# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys and values of the past, for the requests that are under way together.

Each request is a row. All rows end at the same place, where the next token goes; a shorter one begins later, and what
lies before its start is padding that the mask hides. So a step takes the arrays as they are, whoever is under way; they
are copied only when a request joins or leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Part:
    """An input of the past with its output: keys or values of a layer, or both.

    Attributes:
        past, present: names of the input and the output.
        shape: of the input; entries at the two axes mean nothing.
        dtype: of its elements.
        batch, along: the axes of requests (-1: there is none, the model takes one request) and of tokens.
    """

    past: str
    present: str
    shape: tuple[int, ...]
    dtype: np.dtype
    batch: int
    along: int

    def zeros(self, rows: int, length: int) -> np.ndarray:
        """A past that holds nothing yet."""
        shape = list(self.shape)
        shape[self.along] = length
        if self.batch >= 0:
            shape[self.batch] = rows
        return np.zeros(shape, self.dtype)


@dataclass
class Cache:
    """The past of some requests.

    Attributes:
        parts: of the model.
        starts: of each row, the place of its first token.
        length: places that are taken.
        arrays: of each part.
    """

    parts: Sequence[Part]
    starts: list[int] = field(default_factory=list)
    length: int = 0
    arrays: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def empty(cls, parts: Sequence[Part], least: int = 0) -> Cache:
        """The past of one request that has not begun, with `least` places of padding for models that want some."""
        return cls(parts, [least], least, [part.zeros(1, least) for part in parts])

    @property
    def rows(self) -> int:
        """The number of requests."""
        return len(self.starts)

    def tokens(self, row: int) -> int:
        """Tokens that a request has in the cache."""
        return self.length - self.starts[row]

    def feeds(self) -> dict[str, np.ndarray]:
        """The model's inputs."""
        return {part.past: array for part, array in zip(self.parts, self.arrays, strict=True)}

    def advance(self, outputs: Mapping[str, Any] | Any, count: int) -> None:
        """Take over what a step made of the past and `count` new tokens of each row."""
        self.arrays = [outputs[part.present] for part in self.parts]
        self.length += count

    def mask(self, count: int, dtype: np.dtype) -> np.ndarray:
        """1 at tokens of the past and `count` new ones, 0 at padding: [rows, length + count]."""
        places = np.arange(self.length + count)
        return (places >= np.array(self.starts)[:, None]).astype(dtype)

    def positions(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Of `count` new tokens of each row, the place among its tokens: [rows, count]."""
        return (np.arange(self.length, self.length + count) - np.array(self.starts)[:, None]).astype(dtype)

    def join(self, other: Cache) -> None:
        """Take the rows of another cache behind those that are here."""
        if not self.rows:
            self.starts, self.length, self.arrays = list(other.starts), other.length, other.arrays
            return
        length = max(self.length, other.length)
        self.starts = [start + length - c.length for c in (self, other) for start in c.starts]
        self.arrays = [
            np.concatenate([_from_the_end(a, p.along, length), _from_the_end(b, p.along, length)], p.batch)
            for p, a, b in zip(self.parts, self.arrays, other.arrays, strict=True)
        ]
        self.length = length

    def keep(self, rows: Sequence[int]) -> None:
        """Let all other rows go, and padding that all that stay have."""
        if len(rows) == self.rows:
            return
        starts = [self.starts[row] for row in rows]
        first = min(starts, default=0)
        self.starts = [start - first for start in starts]
        if not rows:
            self.length, self.arrays = 0, []
            return
        self.length -= first
        chosen = list(rows)
        self.arrays = [
            np.ascontiguousarray(_cut(np.take(a, chosen, p.batch), p.along, first))
            for p, a in zip(self.parts, self.arrays, strict=True)
        ]


def _from_the_end(array: np.ndarray, axis: int, length: int) -> np.ndarray:
    """An array with zeros before it, so that it has `length` places."""
    room = [(length - n, 0) if d == axis else (0, 0) for d, n in enumerate(array.shape)]
    return np.pad(array, room)


def _cut(array: np.ndarray, axis: int, first: int) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(first, None),)]
