# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""EmbedLayerNormalization: what BERT does with ids before its first layer."""

from __future__ import annotations

from tilewright.frontend.builder.dtypes import I32
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.bounds import check_indices
from tilewright.frontend.onnx.ops.common.precision import widen
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, wanted
from tilewright.frontend.onnx.ops.nn.normalization import standardize
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


def _rows(b: Builder, node: Node, table: Tensor, ids: Tensor) -> Tensor:
    check_indices(b, node, ids, table.shape[0], 0)
    return widen(b, b.gather(table, ids, 0))


def _positions(b: Builder, node: Node, table: Tensor, ids: Tensor, positions: Tensor | None) -> Tensor:
    """Embeddings of the positions: those that are given, or 0, 1, ..."""
    if positions is not None:
        return _rows(b, node, table, positions)
    rows, count = table.shape[0], ids.shape[1]
    if isinstance(rows, int) and isinstance(count, int) and count > rows:
        node.wrong(f"{count} words for the embeddings of {rows} positions")
    if not isinstance(count, int):
        b.require(b.idx(count) <= b.idx(rows), f"more words than the embeddings of positions, {rows}, allow")
    return widen(b, part(b, table, 0, 0, count).unsqueeze([0]))


@op("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_norm(
    b: Builder,
    node: Node,
    ids: Tensor,
    segments: Tensor | None,
    words: Tensor,
    places: Tensor,
    kinds: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> list[Tensor | None]:
    """LayerNormalization of the sum of embeddings; the number of ones in each row of the mask; the sum itself."""
    if ids.rank != 2:
        node.wrong(f"the ids {list(ids.shape)} need a batch and a sequence")
    parts = [_rows(b, node, words, ids), _positions(b, node, places, ids, positions)]
    if kinds is not None:
        which = Tensor.known([[0]], I32) if segments is None else segments
        parts.append(_rows(b, node, kinds, which))
    total = b.elementwise(lambda m, x, *rest: sum(rest, start=x), *parts)
    y, _, _ = standardize(
        b, total, [2], node.attr("epsilon", 1e-12), lambda m, y, s, f: y * s + f, widen(b, gamma), widen(b, beta)
    )
    results: list[Tensor | None] = [b.cast(y, words.dtype), None, None]
    if wanted(node, 1):
        results[1] = _lengths(b, ids, mask)
    if wanted(node, 2):
        results[2] = b.cast(total, words.dtype)
    return results[: len(node.proto.output)]


def _lengths(b: Builder, ids: Tensor, mask: Tensor | None) -> Tensor:
    """Words of each row: the ones of its mask (i32); 0 without a mask, as ONNX Runtime has it."""
    if mask is None:
        return b.full(0, [ids.shape[0]], I32)
    return b.reduce("sum", b.elementwise(lambda m, v: m.cast(m.eq(v, 1), I32), mask, dtype=I32), [1], keepdims=False)
