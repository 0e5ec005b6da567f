# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks of ONNX Runtime's attentions: which keys a query sees, and what is added to scores.

Scores are [batch, key heads, group, rows, columns], as in `nn/attention.py`. Keys that a padding mask leaves out get a
finite number (`mask_filter_value`) added; keys behind a query, in causal attention, are left out altogether.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dims import Size, equal, same
from tilewright.frontend.builder.dtypes import BOOL, largest
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.domain import wanted
from tilewright.frontend.onnx.ops.nn.attention import Mask
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node

POSITION = np.dtype(np.int32)


def key_mask(b: Builder, rows: Size, columns: Size, past: Size | None, given: Tensor | None, hidden: float) -> Mask:
    """Query i sees the keys up to past + i, and the last query all of them; `given` is added.

    Source: PrepareMask in ONNX Runtime's contrib_ops/cpu/bert/attention_helper.h, whose loop ends before the last
    query. That differs only where there are more new keys than queries.

    Args:
        b: the builder.
        rows: how many queries there are.
        columns: how many keys, those of the past included.
        past: how many of the keys are of the past; None where each query sees all keys but padding.
        given: what `padding_mask` returns.
        hidden: the score of a key that a query does not see, see `hidden_score`.
    """
    places = b.positions(columns, POSITION)
    if past is None:
        return Mask(None, None, given, places, hidden)
    row = b.positions(rows, POSITION).unsqueeze([1])
    high = b.elementwise(lambda m, r, s: r + s, row, b.size_tensor(past, POSITION))
    if not same(columns, past + rows):
        last, end = (b.size_tensor(n - 1, POSITION) for n in (rows, columns))
        high = b.elementwise(lambda m, r, h, n, e: m.where(r >= n, e, h), row, high, last, end)
    return Mask(None, high, given, places, hidden)


def _filled(node: Node, dtype: np.dtype) -> float:
    """What padding adds to a score."""
    return max(node.attr("mask_filter_value", -10000.0), -largest(dtype))


def hidden_score(node: Node, mask: Tensor | None, dtype: np.dtype) -> float:
    """The score of a key that is not seen: the lowest number where that shows, else -inf.

    ONNX Runtime gives the lowest number. That shows where scores are a result, and in a row of nothing but padding and
    keys behind it where padding has the same score: such a row is the mean of all values.
    """
    shows = node.proto.op_type == "MultiHeadAttention" and wanted(node, 3)
    return -largest(dtype) if shows or (mask is not None and _hides(node, dtype)) else -np.inf


def _hides(node: Node, dtype: np.dtype) -> bool:
    """Whether padding leaves nothing of a score."""
    return _filled(node, dtype) == -largest(dtype)


def padding_mask(b: Builder, node: Node, mask: Tensor, heads_shape: tuple[Size, Size, Size], dtype: np.dtype) -> Tensor:
    """0 where a key counts, the attribute mask_filter_value elsewhere: [batch, 1, 1, rows or 1, columns].

    Where that is the lowest number, whether a key counts: no sum with a score is another number. One choice of what is
    seen then tells plans that a row may see nothing, whose hidden keys count as much as padding.

    Args:
        b: the builder.
        node: the attention.
        mask: [batch, columns], [batch, rows, columns] or [batch, 1, longest, longest], 0 for padding; or [batch], how
            many of the first keys count; or [2 * batch], their ends and then their starts.
        heads_shape: batch, rows, columns.
        dtype: of the scores.

    Raises:
        UnsupportedError: a mask of packed lengths, which only CUDA's kernels take.
    """
    added = _added(b, node, mask, heads_shape, dtype)
    return b.elementwise(lambda m, v: m.eq(v, 0.0), added, dtype=BOOL) if _hides(node, dtype) else added


def _added(b: Builder, node: Node, mask: Tensor, heads_shape: tuple[Size, Size, Size], dtype: np.dtype) -> Tensor:
    batch, rows, columns = heads_shape
    value = _filled(node, dtype)
    if mask.rank == 1:
        return _by_lengths(b, node, mask, batch, columns, (value, dtype))
    if mask.rank not in (2, 3, 4):
        node.wrong(f"the mask {list(mask.shape)} has {mask.rank} dimensions; 1 to 4 are allowed")
    if mask.rank == 4:
        mask = part(b, part(b, mask, 2, columns - rows, rows), 3, 0, columns)
    last = mask.rank - 1
    width = b.require_same(mask.shape[last], columns, "the mask has another number of columns than there are keys")
    mask = b.resize(mask, [*mask.shape[:last], width]) if not same(width, mask.shape[last]) else mask
    mask = mask.unsqueeze({2: [1, 2, 3], 3: [1, 2], 4: [2]}[mask.rank])
    return b.elementwise(lambda m, v, zero: m.where(v > 0, zero, value), mask, Tensor.known(0, dtype), dtype=dtype)


def _by_lengths(b: Builder, node: Node, mask: Tensor, batch: Size, columns: Size, fill: tuple) -> Tensor:
    count, (value, dtype) = mask.shape[0], fill
    if equal(count, batch) is not False:
        b.require_same(count, batch, "the mask has another number of lengths than there are rows of the batch")
        bounds = [mask]
    elif equal(count, 2 * batch):
        bounds = [part(b, mask, 0, 0, batch), part(b, mask, 0, batch, batch)]
    else:
        node.unsupported(
            f"a mask of {count} numbers for a batch of {batch}: packed lengths, which only CUDA's kernels take; "
            "write the model again with a mask [batch, sequence]"
        )
    bounds = [v.unsqueeze([1, 2, 3, 4]) for v in bounds]
    places = b.positions(columns, POSITION)

    def body(m, zero, place, end, *start):
        inside = place < end
        for first in start:
            inside = m.logical_and(inside, place >= first)
        return m.where(inside, zero, value)

    return b.elementwise(body, Tensor.known(0, dtype), places, *bounds, dtype=dtype)


def by_head(b: Builder, bias: Tensor, key_heads: Size, group: Size) -> Tensor:
    """A bias [batch or 1, heads or 1, rows, columns] beside scores: [.., key heads, group, rows, columns]."""
    batch, heads, rows, columns = bias.shape
    split = (1, 1) if isinstance(heads, int) and heads == 1 else (key_heads, group)
    return b.reshape(bias, (batch, *split, rows, columns))
