# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products."""

from __future__ import annotations

import numpy as np

from ..emit import Space
from ..registry import Builder, Node, op
from ..tensor import Tensor
from .elementwise import legacy_broadcast


def matmul(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """[..., m, k] times [..., k, n] with broadcast leading dimensions."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    m, n, k = (len(batch) + i for i in range(3))
    space = Space([*batch, x.shape[-2], y.shape[-1], x.shape[-1]], frozenset([k]))
    left = [*range(len(batch) - x.rank + 2, len(batch)), m, k]
    right = [*range(len(batch) - y.rank + 2, len(batch)), k, n]
    return b.contract(space, (x, left), (y, right), [*range(len(batch)), m, n])


@op("MatMul")
def matmul_op(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul."""
    if x.rank == 0 or y.rank == 0:
        node.wrong("an input is a scalar")
    rows = x.unsqueeze([0]) if x.rank == 1 else x
    columns = y.unsqueeze([1]) if y.rank == 1 else y
    if rows.shape[-1] != columns.shape[-2]:
        node.wrong(f"inner dimensions differ: {list(x.shape)} times {list(y.shape)}")
    result = matmul(b, rows, columns)
    dropped = [result.rank - 2] * (x.rank == 1) + [result.rank - 1] * (y.rank == 1)
    return result.squeeze(dropped)


@op("Gemm")
def gemm(b: Builder, node: Node, x: Tensor, y: Tensor, z: Tensor | None = None) -> Tensor:
    """alpha * x' y' + beta * z; transposes are views."""
    x = x.transpose([1, 0]) if node.attr("transA", 0) else x
    y = y.transpose([1, 0]) if node.attr("transB", 0) else y
    if x.rank != 2 or y.rank != 2 or x.shape[1] != y.shape[0]:
        node.wrong(f"cannot multiply {list(x.shape)} by {list(y.shape)}")
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    product = matmul(b, x, y)
    if alpha != 1.0:
        product = b.elementwise(lambda m, p: p * alpha, product)
    if z is None or beta == 0.0:
        return product
    if beta == 1.0:
        return b.elementwise(lambda m, p, z: p + z, product, legacy_broadcast(node, product, z))
    return b.elementwise(lambda m, p, z: p + z * beta, product, legacy_broadcast(node, product, z))
