# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions between element types: Cast, CastLike, BitCast."""

from __future__ import annotations

import numpy as np
import onnx

from tilewright.frontend.builder.dtypes import bits
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op

_MODES = ("up", "down", "nearest")


def dtype_attribute(node: Node, name: str, default: np.dtype | None = None) -> np.dtype:
    """The element type that an attribute names; without a default it must be there. Refuses strings."""
    number = node.attr(name)
    if number is None:
        return node.wrong(f"the attribute {name} is missing") if default is None else default
    if isinstance(number, str):  # opset < 6
        number = onnx.TensorProto.DataType.Value(number)
    if number == onnx.TensorProto.STRING:
        node.unsupported("strings have no form in compiled code; convert the numbers outside of the model")
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, ValueError):
        node.wrong(f"the attribute {name} has the value {number}, which is no element type")


def _convert(b: Builder, node: Node, x: Tensor, dtype: np.dtype) -> Tensor:
    saturate, mode = bool(node.attr("saturate", 1)), node.attr("round_mode", "up")
    if mode not in _MODES:
        node.wrong(f"round_mode {mode!r} is none of {', '.join(_MODES)}")
    b.element_type(dtype)  # refuses strings
    if x.dtype == dtype:
        return x
    return b.elementwise(lambda m, x: m.cast(x, dtype, saturate, mode), x, dtype=dtype)


@op("Cast")
def cast(b: Builder, node: Node, x: Tensor) -> Tensor:
    """To the element type of attribute `to`."""
    return _convert(b, node, x, dtype_attribute(node, "to"))


@op("CastLike", since=15)
def cast_like(b: Builder, node: Node, x: Tensor, like: Tensor) -> Tensor:
    """To the element type of another tensor."""
    return _convert(b, node, x, like.dtype)


@op("BitCast", since=26)
def bit_cast(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The same bits as another type of the same width."""
    dtype = dtype_attribute(node, "to")
    widths = [8 if d == np.bool_ else bits(d) for d in (x.dtype, dtype)]
    if widths[0] != widths[1]:
        node.wrong(
            f"{x.dtype} has {widths[0]} bits, {dtype} has {widths[1]}: only types of equal width can be exchanged"
        )
    if x.is_known:
        return Tensor.known(np.ascontiguousarray(x.numpy()).view(dtype).reshape(x.shape))
    return x if x.dtype == dtype else b.elementwise(lambda m, x: m.bitcast(x, dtype), x, dtype=dtype)
