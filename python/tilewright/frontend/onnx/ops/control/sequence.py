# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of tensors: lists at compile time, of which the compiled program sees the tensors only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size, same_shape
from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.limits import check_copies
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op
from tilewright.frontend.onnx.sequences import TensorList, Value


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
    return TensorList((), dtype_attribute(node, "dtype", F32))


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
    length = len(items)
    if position is None or position.is_known:
        at = _position(node, position, length, length, extra=1)
        return TensorList((*items[:at], x, *items[at:]), x.dtype)
    at = _index(b, position, length)
    return TensorList(tuple(_inserted(b, node, items, x, at, i) for i in range(length + 1)), x.dtype)


def _inserted(b: Builder, node: Node, items: Sequence[Tensor], x: Tensor, at: Scalar, i: int) -> Tensor:
    """Item i of a sequence with `x` before a run-time position: behind it, before it, or `x` itself."""
    result = x if i == len(items) else _either(b, node, at > i, items[i], x)
    return result if i == 0 else _either(b, node, at < i, items[i - 1], result)


@op("SequenceErase", since=11, structures=True)
def sequence_erase(b: Builder, node: Node, sequence: Value, position: Tensor | None = None) -> TensorList:
    """Without the tensor at a position, by default the last."""
    items = _items(node, sequence)
    if position is None or position.is_known:
        at = _position(node, position, len(items), -1)
        return TensorList((*items[:at], *items[at + 1 :]), items[at].dtype)
    at = _index(b, position, len(items))
    return TensorList(
        tuple(_either(b, node, at <= i, items[i + 1], x) for i, x in enumerate(items[:-1])), items[0].dtype
    )


@op("SequenceAt", since=11, structures=True)
def sequence_at(b: Builder, node: Node, sequence: Value, position: Tensor) -> Tensor:
    """The tensor at a position; where that is known at run time only, all must have as many dimensions."""
    items = list(_items(node, sequence))
    if not items:
        node.wrong("the sequence is empty")
    if position.is_known:
        return items[_position(node, position, len(items), 0)]
    if len(items) > 2 and all(same_shape(x.shape, items[0].shape) for x in items):
        stacked = b.concat([x.unsqueeze([0]) for x in items], 0)
        return b.gather(stacked, position.squeeze(range(position.rank)), 0)
    at, result = _index(b, position, len(items)), items[0]
    for i, x in enumerate(items[1:], 1):
        result = _either(b, node, at.eq(i), x, result)
    return result


def _index(b: Builder, position: Tensor, length: int) -> Scalar:
    """A run-time position, counted from the front."""
    at = b.math.cast(b.item(position), np.dtype(np.int64))
    return b.math.where(at < 0, at + length, at)


def _either(b: Builder, node: Node, condition: Scalar, x: Tensor, y: Tensor) -> Tensor:
    if x.rank != y.rank:
        node.unsupported("the position is known at run time only, and the tensors differ in their number of dimensions")
    return b.if_(condition, lambda: [x], lambda: [y])[0]


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
    sizes = _part_sizes(b, node, split, extent)
    parts, at = [], 0
    for size in sizes:
        parts.append(part(b, x, axis, at, size))
        at = at + size
    if split is None and not node.attr("keepdims", 1):
        parts = [p.squeeze([axis]) for p in parts]
    return TensorList(tuple(parts), x.dtype)


def _part_sizes(b: Builder, node: Node, split: Tensor | None, extent: int) -> list[Size]:
    if split is None:
        check_copies(extent, "parts of a sequence")
        return [1] * extent
    if split.rank == 0:
        size = node.ints(split, "the size of the parts, and with it their number,")[0]
        if size <= 0:
            node.wrong(f"parts of {size}")
        check_copies(-(-extent // size), "parts of a sequence")
        return [min(size, extent - at) for at in range(0, extent, size)]
    if extent == 0:
        sizes: list[Size] = [0] * split.size
        for n in b.shape_values(split):
            b.require_same(n, 0, "the sizes of the parts do not add up to the size of the input")
        return sizes
    sizes = b.shape_values(split)
    if split.is_known and (sum(sizes) != extent or any(n < 0 for n in sizes)):
        node.wrong(f"split {sizes} does not add up to {extent}")
    for n in sizes if not split.is_known else ():
        b.require(b.idx(n) > b.idx(-1), "the size of a part is negative")
    b.require_same(sum(sizes), extent, "the sizes of the parts do not add up to the size of the input")
    return sizes


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
