# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of tensors: lists at compile time, of which the compiled program sees the tensors only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ..dims import same_shape
from ..registry import Builder, Node, op
from ..sequences import TensorList, Value
from ..tensor import Tensor


def _items(node: Node, x: Value | None) -> tuple[Tensor, ...]:
    if not isinstance(x, TensorList):
        node.wrong("the input is not a sequence")
    return x.items


def _position(node: Node, x: Value | None, length: int, default: int, extra: int = 0) -> int:
    """A non-negative position, known at compile time; `extra` positions behind the last are allowed."""
    if x is None:
        at = default
    elif not isinstance(x, Tensor):
        node.wrong("the position is not a tensor")
    else:
        at = node.ints(x, "the position")[0]
    if not -length <= at < length + extra:
        node.wrong(f"position {at} is out of range for a sequence of {length}")
    return at + length if at < 0 else at


@op("SequenceEmpty", since=11)
def sequence_empty(b: Builder, node: Node) -> TensorList:
    """No tensors yet."""
    kind = node.attr("dtype", onnx.TensorProto.FLOAT)
    return TensorList((), np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)))


@op("SequenceConstruct", since=11)
def sequence_construct(b: Builder, node: Node, *xs: Tensor) -> TensorList:
    """The inputs, in order."""
    if len({x.dtype for x in xs}) > 1:
        node.wrong(f"the tensors have different element types: {', '.join(str(x.dtype) for x in xs)}")
    return TensorList(xs, xs[0].dtype)


@op("SequenceInsert", since=11, structures=True)
def sequence_insert(b: Builder, node: Node, sequence: Value, x: Tensor, position: Tensor | None = None) -> TensorList:
    """Before a position, by default behind the last."""
    items = _items(node, sequence)
    if any(item.dtype != x.dtype for item in items):
        node.wrong(f"{x.dtype} does not fit a sequence of {items[0].dtype}")
    at = _position(node, position, len(items), len(items), extra=1)
    return TensorList((*items[:at], x, *items[at:]), x.dtype)


@op("SequenceErase", since=11, structures=True)
def sequence_erase(b: Builder, node: Node, sequence: Value, position: Tensor | None = None) -> TensorList:
    """Without the tensor at a position, by default the last."""
    items = _items(node, sequence)
    at = _position(node, position, len(items), -1)
    return TensorList((*items[:at], *items[at + 1 :]), items[at].dtype)


@op("SequenceAt", since=11, structures=True)
def sequence_at(b: Builder, node: Node, sequence: Value, position: Tensor) -> Tensor:
    """The tensor at a position; where that is known at run time only, all must have one shape."""
    items = _items(node, sequence)
    if not isinstance(position, Tensor) or position.is_known or len(items) == 1:
        return items[_position(node, position if len(items) > 1 or position.is_known else None, len(items), 0)]
    if not items or not all(same_shape(x.shape, items[0].shape) for x in items):
        shapes = ", ".join(str(list(x.shape)) for x in items)
        node.unsupported(f"the position is known at run time only, and the tensors differ in shape: {shapes}")
    stacked = b.concat([x.unsqueeze([0]) for x in items], 0)
    return b.gather(stacked, position.squeeze(range(position.rank)), 0)


@op("SequenceLength", since=11, structures=True)
def sequence_length(b: Builder, node: Node, sequence: Value) -> Tensor:
    """How many tensors: known."""
    return Tensor.known(len(_items(node, sequence)), np.int64)


@op("SplitToSequence", since=11)
def split_to_sequence(b: Builder, node: Node, x: Tensor, split: Tensor | None = None) -> TensorList:
    """Parts along `axis`: single ones, chunks of one size, or of the sizes given."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    extent = x.shape[axis]
    if not isinstance(extent, int):
        node.unsupported("the size of the split dimension is known at run time only, and so is the number of parts")
    sizes = _part_sizes(node, split, extent)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    parts = []
    for start, size in zip(starts, sizes, strict=True):
        first, extents = [0] * x.rank, list(x.shape)
        first[axis], extents[axis] = start, size
        parts.append(b.slice(x, first, extents, [1] * x.rank))
    if split is None and not node.attr("keepdims", 1):
        parts = [p.squeeze([axis]) for p in parts]
    return TensorList(tuple(parts), x.dtype)


def _part_sizes(node: Node, split: Tensor | None, extent: int) -> list[int]:
    if split is None:
        return [1] * extent
    given = node.ints(split, "split")
    if split.rank == 0:
        size = given[0]
        if size <= 0:
            node.wrong(f"parts of {size}")
        return [min(size, extent - at) for at in range(0, extent, size)]
    if sum(given) != extent or min(given, default=0) < 0:
        node.wrong(f"split {given} does not add up to {extent}")
    return given


@op("ConcatFromSequence", since=11, structures=True)
def concat_from_sequence(b: Builder, node: Node, sequence: Value) -> Tensor:
    """Concatenate, or stack along a new dimension."""
    items = _items(node, sequence)
    if not items:
        node.wrong("the sequence is empty")
    new = bool(node.attr("new_axis", 0))
    axis = node.axis(node.attr("axis"), items[0].rank + new)
    return b.concat([x.unsqueeze([axis]) for x in items] if new else list(items), axis)


@op("SequenceMap", since=17, structures=True)
def sequence_map(b: Builder, node: Node, sequence: Value, *others: Value) -> Sequence[TensorList]:
    """The body applied to each tensor of the first sequence; further sequences go along, tensors stay."""
    body = node.graph("body")
    length = len(_items(node, sequence))
    if any(isinstance(x, TensorList) and len(x) != length for x in others):
        node.wrong("the sequences have different lengths")
    rows = []
    for i in range(length):
        row = body(*(x.items[i] if isinstance(x, TensorList) else x for x in (sequence, *others)))
        rows.append([x if isinstance(x, Tensor) else node.wrong("the body makes a sequence") for x in row])
    columns = zip(*rows, strict=True) if rows else [()] * len(body.outputs)
    return [TensorList(tuple(c), c[0].dtype if c else None) for c in columns]
