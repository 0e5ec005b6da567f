# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RotaryEmbedding."""

from __future__ import annotations

from tilewright.frontend.builder.dims import Size, same
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.bounds import check_indices
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


def _cache(b: Builder, node: Node, x: Tensor, ids: Tensor | None) -> Tensor:
    """Cosines or sines as [batch, sequence, 1, half of the rotated part]."""
    if ids is not None:
        check_indices(b, node, ids, x.shape[0], 0)
        x = b.gather(x, ids, 0)
    return x.unsqueeze([2])


def _pairs(b: Builder, x: Tensor, half: int, interleaved: bool) -> tuple[Tensor, Tensor]:
    """The coordinates that rotate together."""
    if not interleaved:
        return part(b, x, 3, 0, half), part(b, x, 3, half, half)
    sizes, steps = [*x.shape[:3], half], [1, 1, 1, 2]
    return b.slice(x, [0, 0, 0, 0], sizes, steps), b.slice(x, [0, 0, 0, 1], sizes, steps)


def rotate(b: Builder, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """x [batch, sequence, heads, size], its first coordinates rotated by angles [batch, sequence, 1, half of them]."""
    rotated = 2 * cos.shape[3]
    y = _rotate(b, part(b, x, 3, 0, rotated), cos, sin, interleaved)
    if same(rotated, x.shape[3]):
        return y
    return b.concat([y, part(b, x, 3, rotated, x.shape[3] - rotated)], 3)


def _rotate(b: Builder, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    half = _fixed(x.shape[3]) // 2
    first, second = _pairs(b, x, half, interleaved)
    real = b.elementwise(lambda m, u, v, c, s: c * u - s * v, first, second, cos, sin)
    imaginary = b.elementwise(lambda m, u, v, c, s: s * u + c * v, first, second, cos, sin)
    if not interleaved:
        return b.concat([real, imaginary], 3)
    return b.reshape(b.concat([real.unsqueeze([4]), imaginary.unsqueeze([4])], 4), x.shape)


def _fixed(size: Size) -> int:
    assert isinstance(size, int), "checked where the node is read"
    return size


@op("RotaryEmbedding", since=23)
def rotary_embedding(b: Builder, node: Node, x: Tensor, cos: Tensor, sin: Tensor, ids: Tensor | None = None) -> Tensor:
    """Rotate pairs of coordinates of every head: halves or neighbours, all or the first ones."""
    if x.rank not in (3, 4):
        node.wrong(f"the input has {x.rank} dimensions; 3 or 4 are allowed")
    columns = 3 if ids is None else 2
    if cos.rank != columns or sin.rank != columns:
        node.wrong(f"the caches {list(cos.shape)} and {list(sin.shape)} need {columns} dimensions")
    shape, half = x.shape, cos.shape[-1]
    if half == 0 or shape[-1] == 0:
        node.wrong(f"no coordinates to rotate: input {list(shape)}, caches {list(cos.shape)}")
    rotated = node.attr("rotary_embedding_dim", 0)
    if x.rank == 4:
        x = x.transpose([0, 2, 1, 3])
    else:
        heads = node.attr("num_heads", 0) or shape[2] // (2 * half)
        if isinstance(shape[2], int) and shape[2] % heads:
            node.wrong(f"{shape[2]} columns do not divide into {heads} heads")
        x = b.reshape(x, (*shape[:2], heads, shape[2] // heads))
    if not isinstance(x.shape[3], int):
        node.unsupported("heads whose size is known at run time only; state the input's shape in the model")
    rotated = rotated or x.shape[3]
    if rotated % 2 or rotated > x.shape[3] or (isinstance(half, int) and half != rotated // 2):
        node.wrong(f"{rotated} of {x.shape[3]} coordinates cannot rotate by a cache of {half} columns")
    cosines, sines = _cache(b, node, cos, ids), _cache(b, node, sin, ids)
    y = rotate(b, x, cosines, sines, bool(node.attr("interleaved", 0)))
    return y.transpose([0, 2, 1, 3]) if len(shape) == 4 else b.reshape(y, shape)
