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


@dataclass
class Access:
    """The elements of a memref that a tile covers.

    ``window`` is a view (or, with an index list, positions) of the valid elements in the tile's order of dimensions;
    ``valid`` is the part of the tile that they fill.
    """

    memory: np.ndarray
    index: tuple[Any, ...]
    order: list[int]
    valid: tuple[slice, ...]

    def read(self) -> np.ndarray:
        """Return the valid elements, in the tile's order of dimensions."""
        return self.memory[self.index].transpose(self.order)

    def write(self, values: np.ndarray) -> None:
        """Store the valid elements."""
        self.memory[self.index] = values.transpose(np.argsort(self.order))


def access(node: Node, memory: np.ndarray, shape: tuple[int, ...], operands: dict[str, Any]) -> Access:
    """Return what a load or store of a tile of ``shape`` touches.

    Raises:
        InterpreterError: a valid element lies outside of the memref.
    """
    rank = len(shape)
    trailing = list(range(memory.ndim - rank, memory.ndim))
    dims = node.once("dims", lambda: types.integers(node.attribute("dims"))) or trailing
    steps = node.once("steps", lambda: types.integers(node.attribute("steps"))) or [1] * rank
    valid = operands["valid"] or shape
    counts = [max(0, min(int(v), n)) for v, n in zip(valid, shape, strict=True)]
    offsets = [int(offset) for offset in operands["offsets"]]
    positions: list[Any] = [slice(offset, offset + 1) for offset in offsets]
    along = node.once("along", lambda: _along(node))
    for t, d in enumerate(dims):
        if operands["indices"] is not None and t == along:
            positions[d] = _listed(operands["indices"], offsets[d], counts[t], memory.shape[d])
        else:
            positions[d] = _stepped(offsets[d], counts[t], steps[t], memory.shape[d])
    if 0 not in counts:
        _check_fixed(offsets, dims, memory.shape)
    return _arranged(memory, positions, dims, tuple(slice(0, n) for n in counts))


def _stepped(offset: int, count: int, step: int, limit: int) -> Any:
    """A slice; with a step of 0 (one element, read again and again) an index list."""
    if step == 0 and count:
        return np.full(count, span(offset, 1, 1, limit).start)
    return span(offset, count, step, limit)


def _along(node: Node) -> int:
    attribute = node.attribute("along")
    return -1 if attribute is None else attribute.value


def _listed(indices: np.ndarray, offset: int, count: int, limit: int) -> np.ndarray:
    rows = indices.reshape(-1)[:count].astype(np.int64) + offset
    if rows.size and (rows.min() < 0 or rows.max() >= limit):
        raise InterpreterError(f"an index of {rows.min()}..{rows.max()} is outside a dimension of {limit}")
    return rows


def _check_fixed(offsets: list[int], dims: list[int], shape: tuple[int, ...]) -> None:
    for d, (offset, limit) in enumerate(zip(offsets, shape, strict=True)):
        if d not in dims and not 0 <= offset < limit:
            raise InterpreterError(f"offset {offset} is outside dimension {d} of size {limit}")


def _arranged(memory: np.ndarray, positions: list[Any], dims: list[int], valid: tuple[slice, ...]) -> Access:
    """Index the dimensions that the tile lacks by their offset, so that they vanish."""
    index = tuple(p if d in dims else p.start for d, p in enumerate(positions))
    if any(isinstance(p, np.ndarray) for p in index):
        index = _open_mesh(index, memory.shape)
    kept = sorted(dims)
    return Access(memory, index, [kept.index(d) for d in dims], valid)


def _open_mesh(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Slices as index arrays beside an index list, so that NumPy takes their product."""
    lists = [np.arange(n)[p] if isinstance(p, slice) else p for p, n in zip(index, shape, strict=True)]
    kept = [d for d, p in enumerate(lists) if np.ndim(p)]
    return tuple(
        p.reshape([-1 if other == d else 1 for other in kept]) if np.ndim(p) else p for d, p in enumerate(lists)
    )


@handles("tile.load")
def load(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """Read a tile; positions that are not valid read as the pad value (default 0)."""
    (memory,), offsets, indices, valid, pad = node.groups(operands)
    shape = node.once("shape", lambda: types.shape_of(node.result_type()))
    named = {"offsets": offsets, "indices": indices[0] if indices else None, "valid": valid}
    found = access(node, memory, shape, named)
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
    named = {"offsets": offsets, "indices": indices[0] if indices else None, "valid": valid}
    found = access(node, memory, tile.shape, named)
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
    along = _along(node)
    for p in range(values.shape[along]):
        part = tuple(slice(p, p + 1) if t == along else slice(None) for t in range(values.ndim))
        axis = found.order[along]
        index = tuple(i.take([p], axis) if np.ndim(i) and i.shape[axis] > 1 else i for i in found.index)
        row = Access(found.memory, index, found.order, part)
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
