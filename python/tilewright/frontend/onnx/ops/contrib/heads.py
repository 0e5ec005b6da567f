# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ONNX Runtime's attentions share: heads, products, softmax with sinks, results."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import promoted
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.masks import by_head
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.ops.nn.attention import Heads, Mask, masked, may_hide_rows, scores, weigh
from tilewright.frontend.onnx.registry import Builder, Node

_COLUMNS = 4  # dimension of the scores


@dataclass(frozen=True)
class Softening:
    """How scores become weights.

    Attributes:
        scale: of the products.
        cap: scores are limited to it by tanh; 0 for no limit.
        sink: [heads], logits that take part in the sums of each head without a value; None for none.
    """

    scale: float
    cap: float = 0.0
    sink: Tensor | None = None


@dataclass(frozen=True)
class Attended:
    """The result [batch, rows, heads * value size], and scores and weights [batch, key heads, group, rows, columns]."""

    y: Tensor
    scores: Tensor
    weights: Tensor


def split_heads(b: Builder, node: Node, x: Tensor, heads: int) -> Tensor:
    """[batch, sequence, heads * size] to [batch, heads, sequence, size]."""
    columns = x.shape[2]
    if heads < 1 or (isinstance(columns, int) and columns % heads):
        node.wrong(f"{columns} columns do not divide into {heads} heads")
    return b.reshape(x, (*x.shape[:2], heads, columns // heads)).transpose([0, 2, 1, 3])


def scale_of(node: Node, size: Size) -> float:
    """The attribute `scale`, or the inverse root of the heads' size where it is absent or 0."""
    scale = node.attr("scale", 0.0)
    if scale:
        return float(scale)
    if not isinstance(size, int):
        node.unsupported("heads whose size is known at run time only; state `scale`, or the shapes in the model")
    if size < 1:
        node.wrong("heads have no elements")
    return size**-0.5


def attend(b: Builder, heads: Heads, mask: Mask, how: Softening, bias: Tensor | None = None) -> Attended:
    """Attention of heads under a mask; `bias` [batch or 1, heads or 1, rows, columns] is added to scores."""
    dtype = heads.q.dtype
    plain = scores(b, heads, how.scale)
    if how.cap > 0.0:
        cap = how.cap
        plain = b.elementwise(lambda m, s: m.tanh(s * (1.0 / cap)) * cap, plain)
    if bias is not None:
        by = by_head(b, b.cast(bias, dtype), plain.shape[1], plain.shape[2])
        plain = b.elementwise(lambda m, s, v: s + v, plain, by)
    seen = masked(b, plain, mask)
    if how.sink is None:
        weights = softmax(b, seen, [_COLUMNS], zeros=may_hide_rows(mask))
    else:
        weights = _with_sink(b, seen, how.sink)
    return Attended(weigh(b, weights, heads, dtype, True), seen, weights)


def _with_sink(b: Builder, x: Tensor, sink: Tensor) -> Tensor:
    """Softmax over scores and one logit per head that has no column."""
    wide = promoted(x.dtype)
    sink = b.reshape(b.cast(sink, wide), (1, x.shape[1], x.shape[2], 1, 1))
    top = b.elementwise(lambda m, t, s: m.maximum(m.cast(t, wide), s), b.reduce("max", x, [_COLUMNS]), sink, dtype=wide)
    powers = b.elementwise(lambda m, x, t: m.exp(m.cast(x, wide) - t), x, top, dtype=wide)
    total = b.reduce("sum", powers, [_COLUMNS])
    share = b.elementwise(lambda m, s, k, t: 1.0 / (s + m.exp(k - t)), total, sink, top)
    return b.elementwise(lambda m, e, r: m.cast(e * r, x.dtype), powers, share, dtype=x.dtype)
