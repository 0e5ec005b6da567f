# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MultiHeadAttention: attention of queries, keys and values that are projected already."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN
from tilewright.frontend.onnx.ops.contrib.heads import Softening, attend, scale_of, split_heads
from tilewright.frontend.onnx.ops.contrib.masks import hidden_score, key_mask, padding_mask
from tilewright.frontend.onnx.ops.nn.attention import Heads, ungrouped
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


def _biased(b: Builder, x: Tensor, bias: Tensor | None, at: int) -> Tensor:
    """x [batch, sequence, columns] + the part of the bias that begins at `at`."""
    if bias is None:
        return x
    return b.elementwise(lambda m, x, v: x + v, x, part(b, bias, 0, at, x.shape[2]))


def _unpacked(b: Builder, x: Tensor, count: int) -> list[Tensor]:
    """[batch, sequence, heads, count, size] to `count` tensors [batch, sequence, heads * size]."""
    batch, sequence, heads, _, size = x.shape
    return [b.reshape(part(b, x, 3, i, 1).squeeze([3]), (batch, sequence, heads * size)) for i in range(count)]


def _three(b: Builder, node: Node, q: Tensor, k: Tensor | None, v: Tensor | None) -> list[Tensor]:
    """Queries, keys and values, whatever is packed: [batch, sequence, columns], keys and values maybe split already."""
    if q.rank == 5:
        return _unpacked(b, q, 3)
    if k is None:
        node.wrong("the input key is missing, and the queries are not packed with keys and values")
    if k.rank == 5:
        return [q, *_unpacked(b, k, 2)]
    if v is None:
        node.wrong("the input value is missing")
    return [q, k, v]


def heads_of(b: Builder, node: Node, inputs: Sequence[Tensor], bias: Tensor | None) -> Heads:
    """Split heads. Keys and values [batch, heads, sequence, size] are split, and have their bias, already."""
    q, k, v = inputs
    count = node.attr("num_heads", 0)
    if q.rank != 3 or k.rank not in (3, 4) or v.rank != k.rank:
        shapes = ", ".join(str(list(x.shape)) for x in inputs)
        node.wrong(f"queries, keys and values {shapes} need 3 dimensions (packed 5, split keys and values 4)")
    width = q.shape[2]
    q = split_heads(b, node, _biased(b, q, bias, 0), count)
    if k.rank == 4:
        return Heads(q, k, v)
    k, v = _biased(b, k, bias, width), _biased(b, v, bias, 2 * width)
    return Heads(q, split_heads(b, node, k, count), split_heads(b, node, v, count))


@op("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(
    b: Builder,
    node: Node,
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    added: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_length: Tensor | None = None,
    beams: Tensor | None = None,
) -> list[Tensor]:
    """Self- and cross-attention, also of packed inputs; keys and values with the past, and scores, as results."""
    if past_length is not None or beams is not None:
        node.unsupported(
            "a cache in shared buffers or of beams (past_sequence_length, cache_indirection); "
            "write the model again without past_present_share_buffer and beam search"
        )
    new = heads_of(b, node, _three(b, node, query, key, value), bias)
    if past_key is None or past_value is None:
        return attended(b, node, new, mask, added, 0)
    heads = Heads(new.q, b.concat([past_key, new.k], 2), b.concat([past_value, new.v], 2))
    return attended(b, node, heads, mask, added, past_key.shape[2])


def attended(
    b: Builder, node: Node, heads: Heads, mask: Tensor | None, added: Tensor | None, past: Size
) -> list[Tensor]:
    """The result, keys, values and scores [batch, heads, rows, columns], as many as the node names.

    Args:
        b: the builder.
        node: the attention.
        heads: with the keys and values of the past.
        mask: see `padding_mask`.
        added: to scores.
        past: how many keys are of the past.
    """
    rows, columns, dtype = heads.q.shape[2], heads.k.shape[2], heads.q.dtype
    given = None if mask is None else padding_mask(b, node, mask, (heads.q.shape[0], rows, columns), dtype)
    shown = past if node.attr("unidirectional", 0) else None
    seen = key_mask(b, rows, columns, shown, given, hidden_score(node, mask, dtype))
    found = attend(b, heads, seen, Softening(scale_of(node, heads.q.shape[3])), added)
    results = [found.y, heads.k, heads.v]
    if len(node.proto.output) > 3:
        results.append(ungrouped(b, found.scores))
    return results[: len(node.proto.output)]
