# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of `tile` on memory: allocate, load, store, copy, and what orders them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.contraction import reduce_array
from tilewright.reference.errors import InterpreterError
from tilewright.reference.memref_ops import allocate
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.slices import span
from tilewright.reference.tasks import Pending, remote_view
from tilewright.reference.tile_compute import reduce_kind


@handles("tile.alloc")
def alloc(frame: Any, node: Node) -> np.ndarray:
    """Memory of the running task, full of poison."""
    buffer = allocate(node, ())
    if frame.task is not None:
        frame.task.buffers[node.results[0]] = buffer
    return buffer


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
        kept = sorted(dims)
        order = None if dims == kept else [kept.index(d) for d in dims]
        fixed = [d for d in range(memory_rank) if d not in dims]
        return Pattern(dims, steps, fixed, -1 if along is None else along.value, order)


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


@handles("tile.load")
def load(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """Read a tile; positions that are not valid read as the pad value (default 0)."""
    (memory,), offsets, indices, valid, pad = node.groups(operands)
    shape = node.once("shape", lambda: types.shape_of(node.result_type()))
    found = access(node, memory, shape, offsets, indices, valid)
    if not valid:
        return found.read().copy()
    tile = np.full(shape, pad[0] if pad else 0, memory.dtype)
    if tile[found.valid].size:
        tile[found.valid] = found.read()
    return tile


@handles("tile.store")
def store(_frame: Any, node: Node, *operands: Any) -> None:
    """Write a tile, or combine it with memory; positions that are not valid are left alone."""
    (tile,), (memory,), offsets, indices, valid = node.groups(operands)
    found = access(node, memory, tile.shape, offsets, indices, valid)
    values = tile[found.valid]
    if not values.size:
        return
    if node.attribute("reduce") is None:
        found.write(values)
    elif indices:
        _combine_rows(node, found, values)
    else:
        found.write(_combined(node, found.read(), values))


def _combined(node: Node, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return reduce_array(reduce_kind(node, "reduce"), np.stack([old, new]), [0])[0]


def _combine_rows(node: Node, found: Access, values: np.ndarray) -> None:
    """One index at a time, since an index list may name a row twice."""
    along, order = found.pattern.along, found.pattern.order
    for p in range(values.shape[along]):
        part = tuple(slice(p, p + 1) if t == along else slice(None) for t in range(values.ndim))
        axis = along if order is None else order[along]
        index = tuple(i.take([p], axis) if np.ndim(i) and i.shape[axis] > 1 else i for i in found.index)
        row = Access(found.memory, index, found.pattern, part)
        row.write(_combined(node, row.read(), values[part]))


@handles("tile.copy")
def copy(frame: Any, node: Node, *operands: Any) -> None:
    """Copy one buffer to another, maybe to the corresponding buffer of another task.

    Raises:
        InterpreterError: the shapes differ, or the other task cannot be reached.
    """
    source, target, *at = operands
    if source.shape != target.shape:
        raise InterpreterError(f"copies shape {source.shape} to shape {target.shape}")
    if at:
        target = remote_view(frame.task, target, tuple(int(i) for i in at))
    frame.move(source, target)


@handles("tile.async")
def async_(frame: Any, node: Node) -> Pending:
    """Its copies happen at some moment up to the await; meanwhile the destinations hold poison."""
    moves: list[tuple[np.ndarray, np.ndarray]] = []
    frame.moves = moves
    frame.run(node.body)
    frame.moves = None
    for _, target in moves:
        target[...] = types.poison(target.dtype)
    pending = Pending(lambda: _move_all(moves))
    return frame.task.issue(pending, frame.machine.random) if frame.task is not None else pending


def _move_all(moves: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for source, target in moves:
        target[...] = source


@handles("tile.barrier")
def barrier(frame: Any, _node: Node) -> None:
    """Wait for the other tasks of the cluster, or of the grid."""
    if frame.task.team is not None:
        frame.task.maybe_complete(frame.machine.random)
        frame.task.team.barrier(frame.task)


@handles("tile.await")
def await_(frame: Any, _node: Node, *tokens: Pending) -> None:
    """From here on the copies have happened."""
    for token in tokens:
        token.complete()
    if frame.task is not None:
        frame.task.maybe_complete(frame.machine.random)
