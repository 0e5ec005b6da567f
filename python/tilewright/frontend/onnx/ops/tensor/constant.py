# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants, ranges, diagonals."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dims import Dim, Size, is_static, maximum
from tilewright.frontend.builder.dtypes import I64, is_int
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.load import dense_array
from tilewright.frontend.onnx.ops.common.runtime import Truth, choose, require_sizes, sizes
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("Constant")
def constant(b: Builder, node: Node) -> Tensor:
    """A tensor given by one of the value attributes."""
    value = node.tensor("value")
    if value is not None:
        return Tensor.known(value)
    kinds = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    for name, kind in kinds.items():
        if node.attr(name) is not None:
            return Tensor.known(node.attr(name), kind)
    if node.attr("sparse_value") is not None:
        return Tensor.known(dense_array(node.attr("sparse_value")))
    node.unsupported("only numeric values have a lowering")


@op("ConstantOfShape", since=9)
def constant_of_shape(b: Builder, node: Node, shape: Tensor) -> Tensor:
    """A splat; zeros of f32 by default."""
    value = node.tensor("value")
    item = np.zeros(1, np.float32) if value is None else value
    wanted = b.settle(sizes(b, node, shape, "the shape"), node.declared(), node)
    if is_static(wanted):
        return Tensor.known(np.broadcast_to(item.reshape(()), tuple(wanted)))
    require_sizes(b, wanted)
    return b.full(item.reshape(-1)[0].item(), wanted, item.dtype)


@op("Range", since=11)
def range_(b: Builder, node: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """start, start + delta, ... below limit."""
    if not (start.is_known and limit.is_known and delta.is_known):
        return _range_at_run_time(b, node, start, limit, delta)
    first, last, step = (x.numpy().reshape(-1)[0] for x in (start, limit, delta))
    if step == 0:
        node.wrong("delta is 0")
    check_known(max(0, int(abs((last.item() - first.item()) / step.item()))))
    return Tensor.known(np.arange(first.item(), last.item(), step.item()), start.dtype)


def _range_at_run_time(b: Builder, node: Node, *bounds: Tensor) -> Tensor:
    dtype, m = bounds[0].dtype, b.math
    first, last, step = (b.item(x) for x in bounds)
    if bounds[2].is_known and bounds[2].numpy().reshape(-1)[0] == 0:
        node.wrong("delta is 0")
    if not bounds[2].is_known:
        b.require(m.logical_not(m.eq(step, 0)), "delta is 0")
    if is_int(dtype):
        low, high, by = (b.index_of(x) for x in bounds)
        count = _steps(b, low, high, by)
    else:
        wide = np.dtype(np.float64)
        low, high, by = (m.cast(s, wide) for s in (first, last, step))
        count = maximum(Dim(b.idx(m.cast(m.ceil((high - low) / by), I64)).value, nonneg=False), 0)
    (count,) = b.settle([count], node.declared(), node)
    # Bounds that a run brings are operands, as kernels want them.
    start, delta = (b.reshape(x, ()) for x in (bounds[0], bounds[2]))
    return b.elementwise(lambda m, i, s, d: s + m.cast(i, dtype) * d, b.positions(count), start, delta, dtype=dtype)


def _steps(b: Builder, low: Size, high: Size, by: Size) -> Size:
    """The number of integers from `low` on, below `high` (above it, where `by` is negative)."""
    back: Truth = by < 0 if isinstance(by, int) else b.idx(by) < b.idx(0)
    span, stride = choose(b, back, low - high, high - low), choose(b, back, 0 - by, by)
    return maximum((span + stride - 1) // stride, 0)


@op("EyeLike", since=9)
def eye_like(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Ones on a diagonal."""
    dtype, k = dtype_attribute(node, "dtype", x.dtype), node.attr("k", 0)
    if x.rank != 2:
        node.wrong(f"the input has {x.rank} dimensions instead of 2")
    if x.is_static:
        rows, columns = x.shape[0], x.shape[1]
        check_known(int(rows), int(columns))
        return Tensor.known(np.eye(int(rows), int(columns), k=k).astype(dtype))

    def body(m, i, j):
        return m.where(m.eq(j, i + b.idx(k)), m.scalar(1, dtype), m.scalar(0, dtype))

    return b.produce(x.shape, dtype, body)


@op("Trilu", since=14)
def trilu(b: Builder, node: Node, x: Tensor, k: Tensor | None = None) -> Tensor:
    """The upper or lower triangle of matrices; zeros elsewhere."""
    if x.rank < 2:
        node.wrong(f"the input has {x.rank} dimensions; a matrix is needed")
    upper = bool(node.attr("upper", 1))
    rows, columns = b.positions(x.shape[-2]).unsqueeze([1]), b.positions(x.shape[-1])
    shift = Tensor.known(0, I64) if k is None else b.reshape(k, ())

    def body(m, x, i, j, k):
        kept = j - i >= k if upper else j - i <= k
        return m.where(kept, x, 0)

    return b.elementwise(body, x, rows, columns, shift)
