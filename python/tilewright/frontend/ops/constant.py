# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants and ranges."""

from __future__ import annotations

import numpy as np
import onnx

from ..registry import Builder, Node, op
from ..tensor import Tensor


@op("Constant")
def constant(b: Builder, node: Node) -> Tensor:
    """A tensor given by one of the value attributes."""
    if node.attr("value") is not None:
        return Tensor.known(onnx.numpy_helper.to_array(node.attr("value")))
    kinds = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    for name, kind in kinds.items():
        if node.attr(name) is not None:
            return Tensor.known(node.attr(name), kind)
    node.unsupported("only dense numeric values have a lowering")


@op("ConstantOfShape", since=9)
def constant_of_shape(b: Builder, node: Node, shape: Tensor) -> Tensor:
    """A splat; zeros of f32 by default."""
    value = node.attr("value")
    item = np.zeros(1, np.float32) if value is None else onnx.numpy_helper.to_array(value)
    return Tensor.known(np.broadcast_to(item.reshape(()), tuple(node.ints(shape, "the shape"))))


@op("Range", since=11)
def range_(b: Builder, node: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """start, start + delta, ... below limit."""
    first, last, step = (node.array(x, "a bound").reshape(())[()] for x in (start, limit, delta))
    if step == 0:
        node.wrong("delta is 0")
    return Tensor.known(np.arange(first.item(), last.item(), step.item()), start.dtype)


@op("EyeLike", since=9)
def eye_like(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Ones on a diagonal."""
    to = node.attr("dtype")
    dtype = x.dtype if to is None else onnx.helper.tensor_dtype_to_np_dtype(to)
    return Tensor.known(np.eye(*x.shape, k=node.attr("k", 0), dtype=dtype))


@op("Shape")
def shape(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The shape, or a part of it: known, since shapes are static."""
    return Tensor.known(np.array(x.shape[node.attr("start", 0) : node.attr("end", x.rank)], np.int64))


@op("Size")
def size(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Number of elements."""
    return Tensor.known(x.size, np.int64)
