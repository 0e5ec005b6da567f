# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which elements of a memref a tile covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.slices import span


@dataclass(frozen=True)
class Pattern:
    """What never changes about a load or store: how the dimensions of its tile lie in those of its memref."""

    dims: list[int]  # memref dimension of each tile dimension
    steps: list[int]
    fixed: list[int]  # memref dimensions that the tile lacks
    along: int  # tile dimension of the index list, or -1
    order: list[int] | None  # permutation from memref order to tile order; None where they are the same

    @staticmethod
    def read(node: Node, memory_rank: int, rank: int) -> Pattern:
        """Return the pattern of ``node``, defaults filled in."""
        dims = types.integers(node.attribute("dims")) or list(range(memory_rank - rank, memory_rank))
        steps = types.integers(node.attribute("steps")) or [1] * rank
        along = node.attribute("along")
        return Pattern.of(dims, steps, memory_rank, -1 if along is None else along.value)

    @staticmethod
    def of(dims: list[int], steps: list[int], memory_rank: int, along: int = -1) -> Pattern:
        """Return the pattern for given dimensions and steps."""
        kept = sorted(dims)
        order = None if dims == kept else [kept.index(d) for d in dims]
        return Pattern(dims, steps, [d for d in range(memory_rank) if d not in dims], along, order)


@dataclass
class Access:
    """The elements of a memref that a tile covers: their positions, and the part of the tile that they fill."""

    memory: np.ndarray
    index: tuple[Any, ...]
    pattern: Pattern
    valid: tuple[slice, ...]

    def read(self) -> np.ndarray:
        """Return the valid elements, in the tile's order of dimensions."""
        values = self.memory[self.index]
        return values if self.pattern.order is None else values.transpose(self.pattern.order)

    def write(self, values: np.ndarray) -> None:
        """Store the valid elements."""
        order = self.pattern.order
        self.memory[self.index] = values if order is None else values.transpose(np.argsort(order))


def access(node: Node, memory: np.ndarray, shape: tuple[int, ...], offsets: Any, indices: Any, valid: Any) -> Access:
    """Return what a load or store of a tile of ``shape`` touches.

    Raises:
        InterpreterError: a valid element lies outside of the memref.
    """
    pattern = node.once("pattern", lambda: Pattern.read(node, memory.ndim, len(shape)))
    return access_by(pattern, memory, shape, offsets, indices, valid)


def access_by(
    pattern: Pattern, memory: np.ndarray, shape: tuple[int, ...], offsets: Any, indices: Any, valid: Any
) -> Access:
    """Return what a load or store with ``pattern`` touches.

    Raises:
        InterpreterError: a valid element lies outside of the memref.
    """
    counts = [max(0, min(int(v), n)) for v, n in zip(valid, shape, strict=True)] if valid else shape
    index: list[Any] = [int(offset) for offset in offsets]
    if 0 not in counts:
        for d in pattern.fixed:
            if not 0 <= index[d] < memory.shape[d]:
                raise InterpreterError(f"offset {index[d]} is outside dimension {d} of size {memory.shape[d]}")
    for t, d in enumerate(pattern.dims):
        if t == pattern.along:
            index[d] = _listed(indices[0], index[d], counts[t], memory.shape[d])
        else:
            index[d] = _stepped(index[d], counts[t], pattern.steps[t], memory.shape[d])
    if pattern.along >= 0 or 0 in pattern.steps:
        index = _open_mesh(index, memory.shape)
    return Access(memory, tuple(index), pattern, tuple(map(slice, counts)))


def _stepped(offset: int, count: int, step: int, limit: int) -> Any:
    """A slice; with a step of 0 (one element, read again and again) an index list."""
    if step == 0 and count:
        return np.full(count, span(offset, 1, 1, limit).start)
    return span(offset, count, step, limit)


def _listed(indices: np.ndarray, offset: int, count: int, limit: int) -> np.ndarray:
    rows = indices.reshape(-1)[:count].astype(np.int64) + offset
    if rows.size and (rows.min() < 0 or rows.max() >= limit):
        raise InterpreterError(f"an index of {rows.min()}..{rows.max()} is outside a dimension of {limit}")
    return rows


def _open_mesh(index: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Slices as index arrays beside an index list, so that NumPy takes their product."""
    lists = [np.arange(n)[p] if isinstance(p, slice) else p for p, n in zip(index, shape, strict=True)]
    kept = [d for d, p in enumerate(lists) if np.ndim(p)]
    return [p.reshape([-1 if other == d else 1 for other in kept]) if np.ndim(p) else p for d, p in enumerate(lists)]
