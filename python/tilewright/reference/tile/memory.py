# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of `tile` on memory: allocate, load, store, copy, and what orders them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.tile.compute import reduce_kind
from tilewright.reference.tile.tasks import Pending, remote_view
from tilewright.reference.tile_access import Access, Pattern, access, access_by
from tilewright.reference.upstream.contraction import reduce_array
from tilewright.reference.upstream.memref_ops import allocate


@handles("tile.alloc")
def alloc(frame: Any, node: Node) -> np.ndarray:
    """Memory of the running task, full of poison."""
    buffer = allocate(node, ())
    if frame.task is not None:
        frame.task.buffers[node.results[0]] = buffer
    return buffer


@handles("tile.load")
def load(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """Read a tile; positions that are not valid read as the pad value (default 0)."""
    (memory,), offsets, indices, valid, pad = node.groups(operands)
    shape = node.once("shape", lambda: types.shape_of(node.result_type()))
    group = node.once("interleave", lambda: _interleave(node))
    if group:
        return _alternating(node, memory, shape, [int(offset) for offset in offsets], group)
    if node.attribute("bounded") is not None:
        return _bounded(node, memory, shape, [int(offset) for offset in offsets], valid)
    found = access(node, memory, shape, offsets, indices, valid)
    if not valid:
        return found.read().copy()
    tile = np.full(shape, pad[0] if pad else 0, memory.dtype)
    if tile[found.valid].size:
        tile[found.valid] = found.read()
    return tile


def _bounded(node: Node, memory: np.ndarray, shape: tuple[int, ...], offsets: list[int], valid: Any) -> np.ndarray:
    """Zeros where a place lies outside of memory along a dimension that `bounded` names."""
    pattern = node.once("pattern", lambda: Pattern.read(node, memory.ndim, len(shape)))
    bounded = node.once("bounded", lambda: types.integers(node.attribute("bounded")))
    tile = np.zeros(shape, memory.dtype)
    counts = [max(0, min(int(v), n)) for v, n in zip(valid, shape, strict=True)] if valid else list(shape)
    part, first = [], list(offsets)
    for t, (d, step) in enumerate(zip(pattern.dims, pattern.steps, strict=True)):
        low, high = 0, counts[t]
        if d in bounded:
            low = min(max(-(first[d] // step), 0), high)
            high = max(min(-((first[d] - memory.shape[d]) // step), high), low)
        part.append(slice(low, high))
        first[d] += low * step
    inside = tile[tuple(part)]
    if inside.size and all(0 <= first[d] < memory.shape[d] for d in pattern.fixed if d in bounded):
        inside[...] = access_by(pattern, memory, inside.shape, first, (), ()).read()
    return tile


def _interleave(node: Node) -> int:
    """How many rows alternate in the layout of the tile that is loaded."""
    found = re.search(r"interleave = (\d+)", str(node.result_type()))
    return int(found.group(1)) if found else 0


def _alternating(node: Node, memory: np.ndarray, shape: tuple[int, ...], offsets: list[int], group: int) -> np.ndarray:
    """The last dimension of ``memory`` holds rows that alternate; ``dims`` names those of their groups and columns."""
    rows, columns = shape
    pattern = node.once("pattern", lambda: Pattern.read(node, memory.ndim, len(shape)))
    groups, lanes = pattern.dims
    blocks = np.moveaxis(memory, [groups, lanes, memory.ndim - 1], [-3, -1, -2])
    block = blocks[tuple(offsets[d] for d in pattern.fixed if d != memory.ndim - 1)]
    first, count = offsets[groups], -(-rows // group)
    if first < 0 or first + count > block.shape[0] or offsets[lanes] + columns > block.shape[2]:
        raise InterpreterError(f"reads {count} groups of rows from {first} in dimension {groups} of {memory.shape}")
    part = block[first : first + count, :, offsets[lanes] : offsets[lanes] + columns]
    return part.reshape(count * group, columns)[:rows].copy()


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
    if node.attribute("fill") is not None:
        if source.ndim != target.ndim or any(s > t for s, t in zip(source.shape, target.shape, strict=True)):
            raise InterpreterError(f"copies shape {source.shape} into the start of shape {target.shape}")
        frame.move(np.zeros_like(target), target)
        target = target[tuple(slice(size) for size in source.shape)]
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
