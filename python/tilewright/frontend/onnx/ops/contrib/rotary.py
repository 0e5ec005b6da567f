# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings of ONNX Runtime: angles from tables of cosines and sines, by positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import I64
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.bounds import check_indices
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN
from tilewright.frontend.onnx.ops.nn.rotary import rotate
from tilewright.frontend.onnx.registry import Builder, Node, op


def angles(b: Builder, node: Node, table: Tensor, positions: Tensor) -> Tensor:
    """Rows of cosines or sines [longest, half] at positions [batch or 1, sequence]: [batch or 1, sequence, 1, half]."""
    check_indices(b, node, positions, table.shape[0], 0)
    return b.gather(table, positions, 0).unsqueeze([2])


def fixed_size(node: Node, size: Size, what: str) -> int:
    """A size that must be known at compile time."""
    if not isinstance(size, int):
        node.unsupported(f"{what} is known at run time only; state the shape in the model (value_info)")
    return size


def _positions(b: Builder, node: Node, ids: Tensor, sequence: Size) -> Tensor:
    """[batch or 1, sequence]: given, or counted from the one that is."""
    if ids.rank == 2:
        return ids
    if ids.rank != 1 or ids.shape[0] != 1:
        node.wrong(f"position_ids {list(ids.shape)} are neither one number nor [batch, sequence]")
    return b.elementwise(lambda m, p, s: p + s, b.positions(sequence, I64).unsqueeze([0]), b.cast(ids, I64))


@op("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(b: Builder, node: Node, x: Tensor, ids: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [batch, sequence, heads * size], or [batch, heads, sequence, size], its heads rotated."""
    if node.attr("is_packed_batching", 0):
        node.unsupported("batches of tokens without padding (is_packed_batching); export with [batch, sequence]")
    if x.rank not in (3, 4) or cos.rank != 2 or sin.rank != 2:
        node.wrong(f"the input {list(x.shape)} needs 3 or 4 dimensions, the tables {list(cos.shape)} 2")
    shape, half = x.shape, fixed_size(node, cos.shape[1], "the width of the tables")
    if x.rank == 4:
        x = x.transpose([0, 2, 1, 3])
    else:
        size = _head_size(node, shape[2], half)
        x = b.reshape(x, (*shape[:2], shape[2] // size, size))
    positions = _positions(b, node, ids, x.shape[1])
    if node.attr("scale", 1.0) != 1.0:
        b.remark("the attribute scale is ignored, as ONNX Runtime ignores it")
    cosines, sines = (angles(b, node, v, positions) for v in (cos, sin))
    y = rotate(b, x, cosines, sines, bool(node.attr("interleaved", 0)))
    return y.transpose([0, 2, 1, 3]) if len(shape) == 4 else b.reshape(y, shape)


def _head_size(node: Node, columns: Size, half: int) -> int:
    """The heads' size: by their number where the node rotates a part only, else twice the tables' width."""
    rotated, heads = node.attr("rotary_embedding_dim", 0), node.attr("num_heads", 0)
    if not rotated:
        return 2 * half
    if heads < 1:
        node.wrong("rotary_embedding_dim needs num_heads")
    if rotated != 2 * half:
        node.wrong(f"{rotated} coordinates cannot rotate by tables of {half} columns")
    return fixed_size(node, columns, "the width of the input") // heads


@op("MRotaryEmbedding", domain=DOMAIN)
def rotary_embedding_of_images(b: Builder, node: Node, x: Tensor, ids: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Three positions per token (ids [3, batch, sequence]: time, row, column), each for its share of the angles."""
    shares, half = node.attr("mrope_section"), fixed_size(node, cos.shape[1], "the width of the tables")
    if ids.rank != 3 or not shares or len(shares) != 3 or sum(shares) != half:
        node.wrong(f"ids {list(ids.shape)} and mrope_section {shares} do not fit tables of {half} columns")
    which = Tensor.known(_streams(shares, half, bool(node.attr("mrope_layout", 0))))
    by_token = ids.transpose([1, 2, 0])
    check_indices(b, node, ids, cos.shape[0], 0)
    places = b.gather(by_token, which, 2)

    def chosen(table: Tensor) -> Tensor:
        flat = b.reshape(table, (table.shape[0] * half,))
        at = b.elementwise(lambda m, p, c: p * half + c, b.cast(places, I64), b.positions(half, I64))
        return b.gather(flat, at, 0).unsqueeze([2])

    shape = x.shape
    if x.rank == 4:
        x = x.transpose([0, 2, 1, 3])
    else:
        size = _head_size(node, shape[2], half)
        x = b.reshape(x, (*shape[:2], shape[2] // size, size))
    y = rotate(b, x, chosen(cos), chosen(sin), bool(node.attr("interleaved", 0)))
    return y.transpose([0, 2, 1, 3]) if len(shape) == 4 else b.reshape(y, shape)


def _streams(shares: Sequence[int], half: int, interleaved: bool) -> np.ndarray:
    """Which of the three positions each angle takes: in turn, or every third one (interleaved) up to a share's end."""
    if not interleaved:
        return np.repeat(np.arange(3), shares)
    result = np.zeros(half, np.int64)
    for stream in (1, 2):
        result[stream : shares[stream] * 3 : 3] = stream
    return result


@op("GemmaRotaryEmbedding", domain=DOMAIN)
@widened
def gemma_rotary_embedding(
    b: Builder, node: Node, angle: Tensor, q: Tensor, q_rot: Tensor, k: Tensor, k_rot: Tensor
) -> list[Tensor]:
    """x * cos + (half-rotated x) * sin, of queries and keys [batch, heads, sequence, size]."""
    dtype = q.dtype
    cos = b.elementwise(lambda m, a: m.cast(m.cos(a), dtype), angle, dtype=dtype).unsqueeze([1])
    sin = b.elementwise(lambda m, a: m.cast(m.sin(a), dtype), angle, dtype=dtype).unsqueeze([1])
    pairs = ((q, q_rot), (k, k_rot))
    return [b.elementwise(lambda m, x, r, c, s: x * c + r * s, x, r, cos, sin) for x, r in pairs]


def rotated_heads(
    b: Builder, node: Node, x: Tensor, positions: Tensor, tables: tuple[Tensor, Tensor], interleaved: bool
) -> Tensor:
    """Heads [batch, heads, sequence, size] rotated, as attentions do it inside."""
    cos, sin = (angles(b, node, v, positions) for v in tables)
    return rotate(b, x.transpose([0, 2, 1, 3]), cos, sin, interleaved).transpose([0, 2, 1, 3])
