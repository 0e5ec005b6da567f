# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of quantized tensors, as ONNX Runtime's quantizer and its optimizer write them (com.microsoft)."""

from __future__ import annotations

from tilewright.frontend.builder.dtypes import F32, I32
from tilewright.frontend.builder.rounding import saturated
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import matmul_op
from tilewright.frontend.onnx.ops.quantized.arithmetic import by_column, centred, one, whole
from tilewright.frontend.onnx.ops.quantized.elementwise import MS
from tilewright.frontend.onnx.ops.quantized.quantization import dynamic_quantize_linear, matmul_integer
from tilewright.frontend.onnx.registry import Builder, Node, op


def scaled(b: Builder, total: Tensor, x_scale: Tensor, y_scale: Tensor, bias: Tensor | None, dtype) -> Tensor:
    """Integer sums as floats: total * (x_scale * y_scale) + bias."""

    def body(m, total, xs, ys, *bias):
        y = m.cast(total, F32) * (m.cast(xs, F32) * m.cast(ys, F32))
        return m.cast(y + m.cast(bias[0], F32) if bias else y, dtype)

    given = [one(x_scale), whole(y_scale, by_column), *([] if bias is None else [bias])]
    return b.elementwise(body, total, *given, dtype=dtype, shape=total.shape)


@op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(
    b: Builder,
    node: Node,
    x: Tensor,
    y: Tensor,
    x_scale: Tensor,
    y_scale: Tensor,
    x_zero: Tensor | None = None,
    y_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """MatMulInteger, then floats: scales and zero points of the right columns, or of all of them."""
    total = matmul_integer(b, node, x, y, x_zero, y_zero)
    return scaled(b, total, x_scale, y_scale, bias, x_scale.dtype)


@op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(
    b: Builder,
    node: Node,
    x: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Floats, quantized by their own range, times a quantized matrix."""
    codes, x_scale, x_zero = dynamic_quantize_linear(b, node, x)
    return matmul_integer_to_float(b, node, codes, y, x_scale, y_scale, x_zero, y_zero, bias)


@op("MatMulInteger16", domain=MS)
def matmul_integer_16(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """A product in 32 bits of 16-bit integers."""
    wide = "uint32" if x.dtype.kind == "u" and y.dtype.kind == "u" else "int32"
    return matmul_op(b, node, b.cast(x, wide), b.cast(y, wide))


@op("QGemm", domain=MS)
def qgemm(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    zero: Tensor | None = None,
) -> Tensor:
    """alpha * x' y' + bias, in int32; as codes where the result has a scale, else as floats."""
    x = x.transpose([1, 0]) if node.attr("transA", 0) else x
    y = y.transpose([1, 0]) if node.attr("transB", 0) else y
    if x.rank != 2 or y.rank != 2:
        node.wrong(f"cannot multiply {list(x.shape)} by {list(y.shape)}")
    if (scale is None) != (zero is None):
        node.wrong("y_scale and y_zero_point come together")
    left, right = centred(b, x, whole(x_zero, by_column)), centred(b, y, whole(y_zero, by_column))
    total = matmul_op(b, node, left, right)
    if bias is not None:
        total = b.elementwise(lambda m, t, c: t + m.cast(c, I32), total, bias)
    alpha = node.attr("alpha", 1.0)
    results = [] if scale is None or zero is None else [one(scale), one(zero)]

    def body(m, total, xs, ys, *result):
        factor = m.cast(xs, F32) * m.cast(ys, F32) * alpha
        if not result:
            return m.cast(total, F32) * factor
        factor = factor / m.cast(result[0], F32)
        return saturated(m, m.round(m.cast(total, F32) * factor) + m.cast(result[1], F32), dtype)

    dtype = F32 if zero is None else zero.dtype
    return b.elementwise(body, total, one(x_scale), whole(y_scale, by_column), *results, dtype=dtype)
