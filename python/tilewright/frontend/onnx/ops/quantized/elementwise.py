# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators and reductions of quantized tensors, as ONNX Runtime's quantizer writes them (com.microsoft).

Each is what its definition says: the codes stand for f32 numbers, the operator works on those, and the result is
rounded to codes again. Differences from the zero point are summed as integers, so that sums are exact.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.rounding import quantized
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.ops.quantized.arithmetic import centred, one, real, requantized, zero_of
from tilewright.frontend.onnx.registry import Builder, Node, op

MS = "com.microsoft"
_ONE = Tensor.known(np.float32(1))

_BINARY = {"QLinearAdd": lambda x, y: x + y, "QLinearMul": lambda x, y: x * y}


@op(*_BINARY, domain=MS)
def qlinear_binary(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
) -> Tensor:
    """Sum or product of two quantized tensors, which broadcast."""
    function = _BINARY[node.proto.op_type]

    def body(m, x, xs, xz, y, ys, yz, s, z):
        return quantized(m, function(real(m, x, xs, xz), real(m, y, ys, yz)), s, z, dtype=dtype)

    dtype = x.dtype
    left, right = (x, one(x_scale), zero_of(x, x_zero)), (y, one(y_scale), zero_of(y, y_zero))
    return b.elementwise(body, *left, *right, one(scale), zero_of(x, zero), dtype=dtype)


@op("QLinearSigmoid", "QLinearLeakyRelu", domain=MS)
def qlinear_unary(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
) -> Tensor:
    """An activation of a quantized tensor."""
    slope, leaky = node.attr("alpha", 0.01), node.proto.op_type == "QLinearLeakyRelu"

    def body(m, x, xs, xz, s, z):
        v = real(m, x, xs, xz)
        v = m.where(v < 0.0, v * slope, v) if leaky else 1.0 / (1.0 + m.exp(-v))
        return quantized(m, v, s, z, dtype=dtype)

    dtype = x.dtype
    return b.elementwise(body, x, one(x_scale), zero_of(x, x_zero), one(scale), zero_of(x, zero), dtype=dtype)


@op("QLinearWhere", domain=MS)
def qlinear_where(
    b: Builder,
    node: Node,
    condition: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    """One of two quantized tensors, element by element, by the scale of the result."""

    def body(m, c, x, xs, xz, y, ys, yz, s, z):
        return quantized(m, m.where(c, real(m, x, xs, xz), real(m, y, ys, yz)), s, z, dtype=dtype)

    dtype = x.dtype
    left, right = (x, one(x_scale), one(x_zero)), (y, one(y_scale), one(y_zero))
    return b.elementwise(body, condition, *left, *right, one(scale), one(zero), dtype=dtype)


@op("QLinearConcat", domain=MS)
def qlinear_concat(b: Builder, node: Node, scale: Tensor, zero: Tensor, *parts: Tensor) -> Tensor:
    """Quantized tensors side by side, by the scale of the result; each comes with its own scale and zero point."""
    if not parts or len(parts) % 3:
        node.wrong(f"{len(parts)} inputs behind the result's scale are no triples of tensor, scale and zero point")
    triples = [parts[i : i + 3] for i in range(0, len(parts), 3)]

    def body(m, x, xs, xz, s, z):
        return quantized(m, real(m, x, xs, xz), s, z, dtype=zero.dtype)

    given = one(scale), one(zero)
    pieces = [b.elementwise(body, x, one(xs), one(xz), *given, dtype=zero.dtype) for x, xs, xz in triples]
    return b.concat(pieces, node.axis(node.attr("axis", 0), pieces[0].rank))


@op("QLinearSoftmax", domain=MS)
def qlinear_softmax(
    b: Builder, node: Node, x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor
) -> Tensor:
    """Softmax along an axis; `opset` below 13: over all dimensions from the axis on."""
    axis = node.axis(node.attr("axis", -1), x.rank)
    axes = list(range(axis, x.rank)) if node.attr("opset", 13) < 13 else [axis]
    wide = b.elementwise(real, x, one(x_scale), zero_of(x, x_zero), dtype=F32)
    return rounded(b, softmax(b, wide, axes), scale, zero)


def rounded(b: Builder, x: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """f32 numbers as codes."""

    def body(m, x, s, z):
        return quantized(m, x, s, z, dtype=zero.dtype)

    return b.elementwise(body, x, one(scale), one(zero), dtype=zero.dtype)


@op("QLinearReduceMean", domain=MS)
def qlinear_reduce_mean(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
) -> Tensor:
    """The mean along axes."""
    axes = node.axes(node.attr("axes") or range(x.rank), x.rank)
    y = mean_of_codes(b, x, zero_of(x, x_zero), axes, (x_scale, scale, zero_of(x, zero)))
    return y if node.attr("keepdims", 1) else y.squeeze(axes)


def mean_of_codes(
    b: Builder, x: Tensor, x_zero: Tensor, axes: list[int], parameters: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """The mean along axes, which stay; `parameters`: scale of x, scale and zero point of the result."""
    x_scale, scale, zero = parameters
    total = b.reduce("sum", centred(b, x, x_zero), axes)
    count = b.size_tensor(prod(x.shape[d] for d in axes), F32)
    divisor = b.elementwise(lambda m, s, n: s * n, one(scale), count)
    return requantized(b, total, [one(x_scale), _ONE, divisor], one(zero))


@op("MulInteger", domain=MS)
def mul_integer(
    b: Builder, node: Node, x: Tensor, x_zero: Tensor | None, y: Tensor, y_zero: Tensor | None = None
) -> Tensor:
    """(x - x_zero) * (y - y_zero) in int32."""
    left, right = centred(b, x, zero_of(x, x_zero)), centred(b, y, zero_of(y, y_zero))
    return b.elementwise(lambda m, x, y: x * y, left, right)


@op("ReduceSumInteger", domain=MS)
def reduce_sum_integer(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Sums along axes in 32 bits, with a sign where the input has one."""
    axes = node.axes(node.attr("axes") or range(x.rank), x.rank)
    wide = b.cast(x, np.int32 if x.dtype.kind == "i" else np.uint32)
    return b.reduce("sum", wide, axes, bool(node.attr("keepdims", 1)))
