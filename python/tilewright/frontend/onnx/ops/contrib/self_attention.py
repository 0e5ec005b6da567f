# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention with its projections inside, as ONNX Runtime's tool for transformers writes BERT's and GPT-2's."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, wanted
from tilewright.frontend.onnx.ops.contrib.heads import Softening, attend, scale_of, split_heads
from tilewright.frontend.onnx.ops.contrib.masks import hidden_score, key_mask, padding_mask
from tilewright.frontend.onnx.ops.math.contraction import matmul
from tilewright.frontend.onnx.ops.nn.attention import Heads
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


def _sizes(node: Node, w: Tensor) -> list[Size]:
    """Columns of queries, keys and values."""
    given = node.attr("qkv_hidden_sizes")
    total = w.shape[1]
    if given:
        if len(given) != 3 or given[0] != given[1] or (isinstance(total, int) and sum(given) != total):
            node.wrong(f"qkv_hidden_sizes {list(given)} do not fit {total} columns of weights")
        return list(given)
    if isinstance(total, int) and total % 3:
        node.wrong(f"{total} columns of weights are not three times as many as a head's; qkv_hidden_sizes is absent")
    return [total // 3] * 3


def project(b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None, sizes: Sequence[Size]) -> list[Tensor]:
    """The queries, keys and values [batch, heads, sequence, size] of x [batch, sequence, inputs]: three products."""
    results, at = [], 0
    for size in sizes:
        y = matmul(b, x, part(b, w, 1, at, size))
        if bias is not None:
            y = b.elementwise(lambda m, y, v: y + v, y, part(b, bias, 0, at, size))
        results.append(split_heads(b, node, y, node.attr("num_heads", 0)))
        at = at + size
    return results


def _refuse(node: Node, shared: Tensor | None) -> None:
    if node.attr("do_rotary", 0):
        node.unsupported("rotary embeddings inside (do_rotary), which only CUDA's kernels compute; use RotaryEmbedding")
    if node.attr("past_present_share_buffer", 0) or shared is not None:
        node.unsupported(
            "a cache that past and present share (past_present_share_buffer): values have no places in a compiled "
            "model; write the model again without it"
        )


def joined(b: Builder, past: Tensor | None, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values behind those of the past [2, batch, heads, length, size]."""
    if past is None:
        return k, v
    old = [part(b, past, 0, i, 1).squeeze([0]) for i in (0, 1)]
    return b.concat([old[0], k], 2), b.concat([old[1], v], 2)


@op("Attention", domain=DOMAIN)
def attention(
    b: Builder,
    node: Node,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    past: Tensor | None = None,
    added: Tensor | None = None,
    shared: Tensor | None = None,
) -> list[Tensor]:
    """Self-attention of x [batch, sequence, inputs]; keys and values, with those of the past, as the second result."""
    _refuse(node, shared)
    if x.rank != 3 or w.rank != 2:
        node.wrong(f"the input {list(x.shape)} needs 3 dimensions, the weights {list(w.shape)} 2")
    q, k, v = project(b, node, x, w, bias, _sizes(node, w))
    k, v = joined(b, past, k, v)
    rows, columns = q.shape[2], k.shape[2]
    given = None if mask is None else padding_mask(b, node, mask, (x.shape[0], rows, columns), x.dtype)
    shown = columns - rows if node.attr("unidirectional", 0) else None
    seen = key_mask(b, rows, columns, shown, given, hidden_score(node, mask, x.dtype))
    y = attend(b, Heads(q, k, v), seen, Softening(scale_of(node, q.shape[3])), added).y
    if not wanted(node, 1):
        return [y]
    return [y, b.concat([k.unsqueeze([0]), v.unsqueeze([0])], 0)]
