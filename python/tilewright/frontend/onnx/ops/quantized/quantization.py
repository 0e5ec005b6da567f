# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization: to and from small types by scale and zero point, and products of quantized tensors."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import (
    E8M0,
    F32,
    F64,
    I32,
    is_float,
    is_int,
)
from tilewright.frontend.builder.formats import Numbers, dequantize, quantize
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.rounding import quantized, saturated
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import matmul_op
from tilewright.frontend.onnx.ops.nn.convolution import conv, per_channel
from tilewright.frontend.onnx.ops.quantized.arithmetic import (
    by_column,
    by_filter,
    by_row,
    centred,
    is_weight,
    kept_weight,
    known_one,
    may_shift,
    requantized,
    whole,
)
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.registry import Builder, Node, op

_U8 = np.dtype(np.uint8)


# Granularity ------------------------------------------------------------------------------------------------------


def _parameter(b: Builder, node: Node, v: Tensor, x: Tensor, what: str) -> Tensor:
    """A scale or zero point as a tensor that broadcasts with `x`: for the whole of it, for an axis, or for blocks."""
    if v.rank == 0 or (v.rank == 1 and known_one(v.shape[0])):
        return v.with_ones(())
    if x.rank == 0:
        node.wrong(f"{what} has the shape {list(v.shape)}, the input has no dimensions")
    axis = node.axis(node.attr("axis", 1), x.rank) if x.rank > 1 else 0
    block = node.attr("block_size", 0)
    if v.rank == 1 and not (block and x.rank == 1):
        _require_size(node, v.shape[0], x.shape[axis], what)
        return v.unsqueeze([*range(axis), *range(axis + 1, x.rank)])
    if v.rank != x.rank:
        node.wrong(f"{what} has {v.rank} dimensions; it needs none, one, or the {x.rank} of the input")
    return _blocked(b, node, v, x, axis, block, what)


def _require_size(node: Node, size: Size, wanted: Size, what: str) -> None:
    if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
        node.wrong(f"{what} has {size} elements for {wanted} along the axis")


def _blocked(b: Builder, node: Node, v: Tensor, x: Tensor, axis: int, block: int, what: str) -> Tensor:
    """Each element repeated `block` times along the axis."""
    size, blocks = _sizes_of_blocks(node, v, x, axis, block, what)
    check_known(size)
    if is_weight(x) and v.is_known and blocks > 1:
        return b.repeat(v, block, axis, size)  # the last block is shorter
    return b.gather(v, Tensor.known(np.arange(size) // block), axis)


def _sizes_of_blocks(node: Node, v: Tensor, x: Tensor, axis: int, block: int, what: str) -> tuple[int, int]:
    """The size of `x` along the axis, and its number of blocks, which are checked."""
    size, blocks = x.shape[axis], v.shape[axis]
    if not isinstance(size, int) or not isinstance(blocks, int):
        node.unsupported(f"quantization in blocks along dimension {axis}, whose size is known at run time only")
    if not block:
        node.wrong(f"{what} has the rank of the input, so block_size must be given")
    if -(-size // block) != blocks:
        node.wrong(f"{what} has {blocks} blocks of {block} for {size} elements along axis {axis}")
    return size, blocks


def _numbers(b: Builder, node: Node, x: Tensor, scale: Tensor, zero: Tensor | None) -> Numbers:
    """Scale and zero point as a format has them: for the whole of `x`, for an axis, or for blocks along it."""
    axis, block = node.axis(node.attr("axis", 1), x.rank) if x.rank > 1 else 0, node.attr("block_size", 0)
    blocks: dict[int, int] = {}

    def one(v: Tensor, what: str) -> Tensor:
        if not block or v.rank != x.rank or x.rank == 0 or all(known_one(n) for n in v.shape):
            return _parameter(b, node, v, x, what)
        _sizes_of_blocks(node, v, x, axis, block, what)
        blocks[axis] = block
        return v

    scale = one(scale, "the scale")
    if zero is None or not may_shift(zero):
        return Numbers(scale, None, blocks)
    return Numbers(scale, one(zero, "the zero point"), blocks)


def _in_blocks(b: Builder, node: Node, x: Tensor, given: list[Tensor]) -> tuple[Tensor, list[Tensor]] | None:
    """`x` with blocks along an axis and places in them along the next, and what has a number for each block beside it.

    None where these are not for blocks, or the last block is shorter. So a scale is as small in a program as in the
    model, and who multiplies a block knows that it has one.
    """
    axis, block = node.axis(node.attr("axis", 1), x.rank) if x.rank > 1 else 0, node.attr("block_size", 0)
    if not block or not x.is_static or not x.rank or x.shape[axis] % block:
        return None
    number = x.shape[axis] // block
    if any(v.shape != (*x.shape[:axis], number, *x.shape[axis + 1 :]) for v in given):
        return None
    split = (*x.shape[:axis], number, block, *x.shape[axis + 1 :])
    return b.reshape(x, split), [v.unsqueeze([axis + 1]) for v in given]


def _check_types(node: Node, wanted: np.dtype, zero: Tensor | None, what: str) -> None:
    if zero is not None and zero.dtype != wanted:
        node.wrong(f"the zero point is of type {zero.dtype}, {what} is of {wanted}")


# Linear -----------------------------------------------------------------------------------------------------------


def _precision(node: Node, x: Tensor, scale: Tensor) -> np.dtype:
    """The type in which QuantizeLinear divides."""
    if node.attr("precision", 0):
        chosen = dtype_attribute(node, "precision")
        return chosen if is_float(chosen) else node.wrong(f"precision {chosen} is no type of floats")
    if scale.dtype == E8M0:
        return x.dtype if is_float(x.dtype) else F32
    return scale.dtype if is_float(scale.dtype) else F64


@op("QuantizeLinear", since=10)
@op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(b: Builder, node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """saturate(round(x / scale) + zero)."""
    dtype = dtype_attribute(node, "output_dtype") if node.attr("output_dtype", 0) else None
    dtype = dtype or (_U8 if zero is None else zero.dtype)
    _check_types(node, dtype, zero, "the result")
    precision = _precision(node, x, scale)
    saturate = bool(node.attr("saturate", 1))
    if precision == scale.dtype and (saturate or is_int(dtype)):
        codes = quantize(b, x, _numbers(b, node, x, scale, zero), dtype)
        if codes is not None:
            return codes
    given = [_parameter(b, node, scale, x, "the scale")]
    if zero is not None and may_shift(zero):
        given.append(_parameter(b, node, zero, x, "the zero point"))

    def body(m, x, scale, *zero):
        return quantized(m, x, scale, *zero, dtype=dtype, precision=precision, saturate=saturate)

    return b.elementwise(body, x, *given, dtype=dtype, shape=x.shape)


@op("DequantizeLinear", since=10)
@op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(b: Builder, node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """(x - zero) * scale."""
    dtype = F32 if scale.dtype == E8M0 else scale.dtype
    dtype = dtype_attribute(node, "output_dtype") if node.attr("output_dtype", 0) else dtype
    _check_types(node, x.dtype, zero, "the input")
    if (y := dequantize(b, kept_weight(b, x), _numbers(b, node, x, scale, zero), dtype)) is not None:
        return y
    shape, numbers = x.shape, [scale] if zero is None or not may_shift(zero) else [scale, zero]
    if (found := _in_blocks(b, node, x, numbers)) is not None:
        x, given = found
    else:
        names = ("the scale", "the zero point")
        given = [_parameter(b, node, v, x, what) for v, what in zip(numbers, names, strict=False)]
    x = kept_weight(b, x)
    wide = I32 if is_int(x.dtype) else F32

    def body(m, x, scale, *zero):
        for z in zero:
            x = m.cast(x, wide) - m.cast(z, wide)
        return m.cast(m.cast(x, F32) * m.cast(scale, F32), dtype)

    y = b.elementwise(body, x, *given, dtype=dtype, shape=x.shape)
    return y if y.shape == shape else b.reshape(y, shape)


@op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """To uint8, by the range of the values themselves with zero in it; with the scale and zero point chosen."""
    axes = range(x.rank)
    high, low = (b.reduce(kind, x, axes, keepdims=False) for kind in ("max", "min"))

    def range_to_scale(m, low, high):
        width = m.maximum(high, 0.0) - m.minimum(low, 0.0)
        return m.where(m.eq(width, 0.0), 1.0, width) / 255.0

    scale = b.elementwise(range_to_scale, low, high)
    zero = b.elementwise(
        lambda m, low, s: saturated(m, m.round(0.0 - m.minimum(low, 0.0) / s), _U8), low, scale, dtype=_U8
    )
    y = quantize(b, x, Numbers(scale, zero), _U8)
    if y is None:
        y = b.elementwise(lambda m, *given: quantized(m, *given, dtype=_U8), x, scale, zero, dtype=_U8)
    return [y, scale, zero]


# Products ---------------------------------------------------------------------------------------------------------


@op("MatMulInteger", since=10)
def matmul_integer(
    b: Builder, node: Node, x: Tensor, y: Tensor, x_zero: Tensor | None = None, y_zero: Tensor | None = None
) -> Tensor:
    """A matrix product in int32 of 8-bit integers: zero points of the left rows and of the right columns."""
    left = centred(b, x, whole(x_zero, by_row))
    return matmul_op(b, node, left, centred(b, y, whole(y_zero, by_column)))


@op("QLinearMatMul", since=10)
def qlinear_matmul(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    out_scale: Tensor,
    out_zero: Tensor,
) -> Tensor:
    """A matrix product of quantized tensors."""
    total = matmul_integer(b, node, x, y, x_zero, y_zero)
    ways = ((x_scale, by_row), (y_scale, by_column), (out_scale, by_row))
    return requantized(b, total, [whole(v, way) for v, way in ways], whole(out_zero, by_row))


@op("ConvInteger", since=10)
def conv_integer(
    b: Builder, node: Node, x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    """A convolution in int32 of 8-bit integers; the zero point of the filters may be one for each."""
    return conv(b, node, centred(b, x, whole(x_zero, by_column)), centred(b, w, by_filter(w_zero, w.rank)))


@op("QLinearConv", since=10)
def qlinear_conv(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """A convolution of quantized tensors; the bias is of scale x_scale * w_scale."""
    image = centred(b, x, whole(x_zero, by_column))
    total = conv(b, node, image, centred(b, w, by_filter(w_zero, w.rank)), bias)
    scales = [
        whole(x_scale, by_column),
        whole(w_scale, lambda v: per_channel(v, total.rank)),
        whole(y_scale, by_column),
    ]
    return requantized(b, total, scales, whole(y_zero, by_column))
