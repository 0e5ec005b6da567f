# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products. Sums of 16- and 8-bit floats accumulate in float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import is_int, promoted
from tilewright.frontend.builder.emit import Index, Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.elementwise import legacy_broadcast
from tilewright.frontend.onnx.registry import Builder, Node, op


def sum_of_products(
    b: Builder,
    space: Space,
    operands: Sequence[tuple[Tensor, Sequence[Index]]],
    out: Sequence[int | None],
    dtype: np.typing.DTypeLike = None,
    order: Sequence[int] | None = None,
) -> Tensor:
    """Sum over the space's reductions of the product of one or two operands.

    The result has type `dtype` (default: the first operand's) and is stored in the given `order` of its loops.
    """
    own = operands[0][0].dtype
    wide, dtype = promoted(own), own if dtype is None else np.dtype(dtype)
    if len(operands) == 2 and all(x.dtype == wide for x, _ in operands):
        return b.cast(b.contract(space, operands[0], operands[1], out, order), dtype)
    if any(n == 0 for n in space.sizes):
        return Tensor.known(np.zeros([1 if d is None else space.sizes[d] for d in out], dtype))

    def body(m, *values):
        product, *rest = (m.cast(v, wide) for v in values[:-1])
        for value in rest:
            product = product * value
        return values[-1] + product

    return b.cast(b.generic(space, list(operands), out, wide, body, 0, order), dtype)


def matmul(b: Builder, x: Tensor, y: Tensor, dtype: np.typing.DTypeLike = None) -> Tensor:
    """[..., m, k] times [..., k, n] with broadcast leading dimensions, as `dtype` (default: the inputs').

    Inner dimensions do not broadcast: what one operand says of k holds for the other one, and is checked in the run.
    """
    depth = b.require_same(x.shape[-1], y.shape[-2], "the inner dimensions of a matrix product differ")
    x, y = _sized(b, x, x.rank - 1, depth), _sized(b, y, y.rank - 2, depth)
    batch = b.common_shape(x.shape[:-2], y.shape[:-2])
    m, n, k = (len(batch) + i for i in range(3))
    space = Space([*batch, x.shape[-2], y.shape[-1], depth], frozenset([k]))
    left = [*range(len(batch) - x.rank + 2, len(batch)), m, k]
    right = [*range(len(batch) - y.rank + 2, len(batch)), k, n]
    return sum_of_products(b, space, [(x, left), (y, right)], [*range(len(batch)), m, n], dtype)


def _sized(b: Builder, x: Tensor, dim: int, size: Size) -> Tensor:
    """`x` with that size of a dimension, which is known to be the same."""
    return b.resize(x, [size if d == dim else n for d, n in enumerate(x.shape)]) if x.shape[dim] is not size else x


@op("MatMul")
def matmul_op(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul."""
    if x.rank == 0 or y.rank == 0:
        node.wrong("an input is a scalar")
    rows = x.unsqueeze([0]) if x.rank == 1 else x
    columns = y.unsqueeze([1]) if y.rank == 1 else y
    _require_equal(node, rows.shape[-1], columns.shape[-2], f"{list(x.shape)} times {list(y.shape)}")
    result = matmul(b, rows, columns)
    dropped = [result.rank - 2] * (x.rank == 1) + [result.rank - 1] * (y.rank == 1)
    return result.squeeze(dropped)


def _require_equal(node: Node, left: Size, right: Size, what: str) -> None:
    if isinstance(left, int) and isinstance(right, int) and left != right:
        node.wrong(f"inner dimensions differ: {what}")


@op("Gemm")
def gemm(b: Builder, node: Node, x: Tensor, y: Tensor, z: Tensor | None = None) -> Tensor:
    """alpha * x' y' + beta * z; transposes are views."""
    x = x.transpose([1, 0]) if node.attr("transA", 0) else x
    y = y.transpose([1, 0]) if node.attr("transB", 0) else y
    if x.rank != 2 or y.rank != 2:
        node.wrong(f"cannot multiply {list(x.shape)} by {list(y.shape)}")
    _require_equal(node, x.shape[1], y.shape[0], f"{list(x.shape)} times {list(y.shape)}")
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    wide = _scaling_type(x.dtype, alpha, beta)
    product = matmul(b, x, y, wide)
    if alpha != 1.0:
        product = b.elementwise(lambda m, p: p * alpha, product)
    if z is not None and beta != 0.0:
        z = legacy_broadcast(node, product, z)

        def body(m, p, z):
            z = m.cast(z, wide)
            return p + (z if beta == 1.0 else z * beta)

        product = b.elementwise(body, product, z)
    return b.cast(product, x.dtype)


def _scaling_type(dtype: np.dtype, alpha: float, beta: float) -> np.dtype:
    """Integers are scaled by floats as float64, narrow floats as float32."""
    if is_int(dtype) and not (float(alpha).is_integer() and float(beta).is_integer()):
        return np.dtype(np.float64)
    return promoted(dtype)
