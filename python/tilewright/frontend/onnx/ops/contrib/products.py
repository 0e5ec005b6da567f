# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with transposes, factors and activations: FusedMatMul, FusedGemm, GemmFastGelu, complex products, CDist."""

from __future__ import annotations

from tilewright.frontend.builder.dtypes import promoted
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.activations import fast_gelu_of
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, as_standard
from tilewright.frontend.onnx.ops.contrib.fused import apply_activation, scaled_parameters
from tilewright.frontend.onnx.ops.math.contraction import gemm, matmul
from tilewright.frontend.onnx.registry import Builder, Node, op


def _turned(x: Tensor, side: str, node: Node) -> Tensor:
    """An operand by transA, transBatchA: a view. transBatch moves the first dimension behind the other leading ones."""
    order = list(range(x.rank))
    if node.attr(f"transBatch{side}", 0):
        order = [*order[1:-1], order[0], order[-1]]
    if x.rank > 1 and node.attr(f"trans{side}", 0):
        order[-2:] = [order[-1], order[-2]]
    return x.transpose(order)


@op("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=DOMAIN)
def fused_matmul(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """alpha * x' y' as NumPy's matmul, then an activation; transposes are views."""
    if x.rank == 0 or y.rank == 0:
        node.wrong("an input is a scalar")
    rows = x.unsqueeze([0]) if x.rank == 1 else _turned(x, "A", node)
    columns = y.unsqueeze([1]) if y.rank == 1 else _turned(y, "B", node)
    inner = rows.shape[-1], columns.shape[-2]
    if all(isinstance(n, int) for n in inner) and inner[0] != inner[1]:
        node.wrong(f"inner dimensions differ: {list(rows.shape)} times {list(columns.shape)} after transposing")
    alpha, wide = node.attr("alpha", 1.0), promoted(x.dtype)
    product = matmul(b, rows, columns, wide)
    if alpha != 1.0:
        product = b.elementwise(lambda m, p: p * alpha, product)
    product = b.cast(apply_activation(b, node, product, scaled_parameters(node)), x.dtype)
    dropped = [product.rank - 2] * (x.rank == 1) + [product.rank - 1] * (y.rank == 1)
    return product.squeeze(dropped)


@op("FusedGemm", domain=DOMAIN)
def fused_gemm(b: Builder, node: Node, x: Tensor, y: Tensor, z: Tensor | None = None) -> Tensor:
    """Gemm, then an activation."""
    return apply_activation(b, node, gemm(b, as_standard(node), x, y, z), scaled_parameters(node))


@op("GemmFastGelu", domain=DOMAIN)
@widened
def gemm_fast_gelu(b: Builder, node: Node, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Tensor:
    """FastGelu of a matrix product + bias."""
    product = matmul(b, x, y)
    if bias is None:
        return b.elementwise(fast_gelu_of, product)
    return b.elementwise(lambda m, p, v: fast_gelu_of(m, p + v), product, bias)


@op("ComplexMul", "ComplexMulConj", domain=DOMAIN)
@widened
def complex_product(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """Products of pairs (real, imaginary) in the last dimension; Conj: with the conjugate of the second."""
    if x.shape[-1] != 2 or y.shape[-1] != 2:
        node.wrong(f"the last dimensions of {list(x.shape)} and {list(y.shape)} need a real and an imaginary part")
    sign = -1.0 if node.proto.op_type == "ComplexMulConj" else 1.0
    (a, c), (d, e) = (_parts(b, v) for v in (x, y))
    real = b.elementwise(lambda m, a, c, d, e: a * d - sign * (c * e), a, c, d, e)
    imaginary = b.elementwise(lambda m, a, c, d, e: sign * (a * e) + c * d, a, c, d, e)
    return b.concat([real, imaginary], real.rank - 1)


def _parts(b: Builder, x: Tensor) -> list[Tensor]:
    ones = [1] * x.rank
    return [b.slice(x, [0] * (x.rank - 1) + [i], [*x.shape[:-1], 1], ones) for i in (0, 1)]


@op("CDist", domain=DOMAIN)
@widened
def distances(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances (or their squares) of all rows of x [m, k] from all rows of y [n, k]: [m, n]."""
    metric = node.attr("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        node.unsupported(f"the metric {metric}; export the model with euclidean or sqeuclidean distances")
    if x.rank != 2 or y.rank != 2:
        node.wrong(f"rows of {list(x.shape)} and {list(y.shape)}; both need 2 dimensions")
    difference = b.elementwise(lambda m, x, y: (x - y) * (x - y), x.unsqueeze([1]), y.unsqueeze([0]))
    total = b.reduce("sum", difference, [2], keepdims=False)
    return total if metric == "sqeuclidean" else b.elementwise(lambda m, s: m.sqrt(s), total)
