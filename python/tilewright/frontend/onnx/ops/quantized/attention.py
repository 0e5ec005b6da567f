# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Self attention whose projection is a product of quantized tensors; all behind it is in floats (com.microsoft)."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dims import same
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.ops.nn.attention import Heads, scores, weigh
from tilewright.frontend.onnx.ops.quantized.elementwise import MS
from tilewright.frontend.onnx.ops.quantized.products import matmul_integer_to_float
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op

_COLUMNS = 4  # of the scores [batch, heads, 1, rows, columns]
_LOWEST = float(np.finfo(np.float32).min)


@op("QAttention", domain=MS)
def qattention(
    b: Builder,
    node: Node,
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    mask: Tensor | None = None,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    past: Tensor | None = None,
) -> list[Tensor]:
    """x [batch, sequence, inputs] times [inputs, 3 * hidden], then heads; present [2, batch, heads, all, size]."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.attr(name, 0):
            node.unsupported(f"{name} has no lowering; export the model again without it")
    heads = node.attr("num_heads", 0)
    columns = weights.shape[-1]
    if x.rank != 3 or weights.rank != 2 or heads < 1 or columns % (3 * heads):
        node.wrong(f"input {list(x.shape)} and weights {list(weights.shape)} do not fit {heads} heads")
    projected = matmul_integer_to_float(b, node, x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    split = b.reshape(projected, (*x.shape[:2], 3, heads, columns // 3 // heads)).transpose([2, 0, 3, 1, 4])
    q, k, v = (part(b, split, 0, i, 1).squeeze([0]) for i in range(3))
    if past is not None:
        k, v = (b.concat([part(b, past, 0, i, 1).squeeze([0]), new], 2) for i, new in ((0, k), (1, v)))
    given = Heads(q, k, v)
    s = scores(b, given, node.attr("scale") or (columns // 3 // heads) ** -0.5)
    s = _masked(b, node, s, mask)
    y = weigh(b, softmax(b, s, [_COLUMNS]), given, q.dtype, True)
    return [y, b.concat([k.unsqueeze([0]), v.unsqueeze([0])], 0)] if len(node.proto.output) > 1 else [y]


def _masked(b: Builder, node: Node, s: Tensor, mask: Tensor | None) -> Tensor:
    """The scores with what a mask adds to those of hidden tokens; what comes later is hidden whole."""
    if mask is not None:
        filled = node.attr("mask_filter_value", -10000.0)
        s = b.elementwise(lambda m, s, c: m.where(c, s, s + filled), s, _seen(b, node, mask, s))
    if not node.attr("unidirectional", 0):
        return s
    rows, columns = s.shape[3], s.shape[4]
    last = b.elementwise(lambda m, r, c: r + c, b.positions(rows).unsqueeze([1]), b.size_tensor(columns - rows))
    return b.elementwise(lambda m, s, c, last: m.where(c <= last, s, _LOWEST), s, b.positions(columns), last)


def _seen(b: Builder, node: Node, mask: Tensor, s: Tensor) -> Tensor:
    """Which tokens the mask leaves, as a tensor that broadcasts with scores [batch, heads, 1, rows, columns].

    A mask is 1 or 0 for each token [batch, all], for each row [batch, rows, all], or says where each sentence ends
    [batch], and where it begins behind that [2 * batch].
    """
    batch = s.shape[0]
    if mask.rank in (2, 3):
        wide = mask.unsqueeze([1, 2, 3] if mask.rank == 2 else [1, 2])
        return b.elementwise(lambda m, v: v > 0, wide, dtype=np.bool_)
    if mask.rank != 1:
        node.unsupported(f"a mask of {mask.rank} dimensions; masks of 1, 2 or 3 have a lowering")
    places = b.cast(b.positions(s.shape[4]), mask.dtype)
    ends = part(b, mask, 0, 0, batch).unsqueeze([1, 2, 3, 4])
    before = b.elementwise(lambda m, c, n: c < n, places, ends, dtype=np.bool_)
    if same(mask.shape[0], batch):
        return before
    if not isinstance(batch, int):  # a mask of other sizes would be read as if it said nothing of where they begin
        own = b.math.eq(b.idx(mask.shape[0]), b.idx(batch))
        b.require(own, "a mask of other than one number for each sentence; fix the batch with shapes=")
        return before
    if mask.shape[0] != 2 * batch:
        node.unsupported(
            f"a mask of {mask.shape[0]} numbers for {batch} sentences; one or two for each have a lowering"
        )
    starts = part(b, mask, 0, batch, batch).unsqueeze([1, 2, 3, 4])
    return b.elementwise(lambda m, seen, c, n: m.logical_and(seen, c >= n), before, places, starts, dtype=np.bool_)
