# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Biases of attention by distance: T5's buckets, and WavLM's gates."""

from __future__ import annotations

import math

from tilewright.frontend.builder.dtypes import F32, I64
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN
from tilewright.frontend.onnx.ops.contrib.heads import split_heads
from tilewright.frontend.onnx.ops.math.contraction import matmul
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("RelativePositionBias", domain=DOMAIN)
def relative_position_bias(b: Builder, node: Node, table: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Of a table [buckets, heads]: [1, heads, rows, columns], by the bucket of each column's distance from a row.

    Half of the buckets (of each direction) stand for one distance each, the others for ranges that grow with it up to
    max_distance.
    """
    both, farthest = bool(node.attr("is_bidirectional", 0)), node.attr("max_distance", 0)
    buckets = table.shape[0]
    if not isinstance(buckets, int) or table.rank != 2 or farthest < 2:
        node.wrong(
            f"a table {list(table.shape)} and max_distance {farthest}; [buckets, heads] and 2 or more are needed"
        )
    few = buckets // 2 if both else buckets
    exact = few // 2
    factor = (few - exact) / math.log(farthest / exact)
    height, width = b.index_of(rows), b.index_of(columns)
    row = b.positions(height, I64).unsqueeze([1])
    column = b.positions(width, I64)

    def bucket(m, r, c):
        back = r - c
        start = m.cast(back < 0, I64) * few if both else 0
        far = m.absolute(back) if both else m.maximum(back, 0)
        grown = m.log(m.cast(m.maximum(far, 1), F32) / float(exact)) * factor
        large = m.minimum(m.cast(grown, I64) + exact, few - 1)
        return start + m.where(far < exact, far, large)

    chosen = b.elementwise(bucket, row, column, dtype=I64)
    return b.gather(table, chosen, 0).transpose([2, 0, 1]).unsqueeze([0])


@op("GatedRelativePositionBias", domain=DOMAIN)
@widened
def gated_relative_position_bias(
    b: Builder,
    node: Node,
    query: Tensor,
    bias: Tensor,
    positions: Tensor,
    w: Tensor,
    gate_bias: Tensor,
    constant: Tensor,
    packed: Tensor | None = None,
) -> Tensor:
    """positions [1, heads, rows, columns], scaled for each head and row by two gates that its query opens."""
    if packed is not None:
        node.unsupported("packed tokens (token_offset); write the model again without packing")
    heads = split_heads(b, node, b.elementwise(lambda m, q, v: q + v, query, bias), node.attr("num_heads", 0))
    gates = b.elementwise(lambda m, y, v: y + v, matmul(b, heads, w), gate_bias)
    half = w.shape[1] // 2
    sums = [b.reduce("sum", part(b, gates, 3, at, half), [3]) for at in (0, half)]

    def body(m, u, r, c, p):
        u, r = (1.0 / (1.0 + m.exp(-v)) for v in (u, r))
        return (u * (r * c - 1.0) + 2.0) * p

    return b.elementwise(body, *sums, constant, positions)
