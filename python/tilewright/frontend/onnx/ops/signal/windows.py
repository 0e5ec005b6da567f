# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Window functions and mel filters, of sizes that may be known at run time only. Computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.frontend.builder.dims import maximum
from tilewright.frontend.builder.dtypes import F32, F64
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op

_TURN = 2.0 * math.pi

# Each window as a function of (m, phase), where the phase goes from 0 to one turn.
_WINDOWS: dict[str, Callable[..., Any]] = {
    "HannWindow": lambda m, t: m.sin(t * 0.5) * m.sin(t * 0.5),
    "HammingWindow": lambda m, t: 25.0 / 46.0 - m.cos(t) * (21.0 / 46.0),
    "BlackmanWindow": lambda m, t: 0.42 - m.cos(t) * 0.5 + m.cos(t * 2.0) * 0.08,
}


def _result_type(node: Node) -> np.dtype:
    return dtype_attribute(node, "output_datatype", F32)


@op(*_WINDOWS, since=17)
def window(b: Builder, node: Node, size: Tensor) -> Tensor:
    """Hann, Hamming and Blackman: periodic, or symmetric."""
    body = _WINDOWS[node.proto.op_type]
    (count,) = b.settle([maximum(b.index_of(size), 0)], node.declared(0), node)
    period = b.size_tensor(count if node.attr("periodic", 1) else count - 1, F64)
    values = b.elementwise(lambda m, i, n: body(m, i * _TURN / n), b.positions(count, F64), period)
    return b.cast(values, _result_type(node))


@op("MelWeightMatrix", since=17)
def mel_weights(
    b: Builder, node: Node, filters: Tensor, length: Tensor, rate: Tensor, lower: Tensor, upper: Tensor
) -> Tensor:
    """Triangles over the bins of a spectrum, equally spaced in mel: [bins, filters]."""
    shape = (b.index_of(length) // 2 + 1, b.index_of(filters))
    bins, count = b.settle(shape, node.declared(0), node)
    edges = _edges(b, b.positions(count + 2), *(b.cast(x, F64) for x in (filters, length, rate, lower, upper)))
    left, centre, right = (part(b, edges, 0, i, count) for i in range(3))

    def body(m, j, left, centre, right):
        rising = m.where(m.eq(left, centre), 1.0, (j - left) / m.maximum(centre - left, 1.0))
        rising = m.where(m.logical_and(j >= left, j <= centre), rising, 0.0)
        falling = (right - j) / m.maximum(right - centre, 1.0)
        return m.where(m.logical_and(j >= centre, j < right), falling, rising)

    rows = b.positions(bins, F64).unsqueeze([1])
    return b.cast(b.elementwise(body, rows, left, centre, right), _result_type(node))


def _edges(
    b: Builder, number: Tensor, filters: Tensor, length: Tensor, rate: Tensor, lower: Tensor, upper: Tensor
) -> Tensor:
    """The bins where the triangles begin, peak and end."""

    def mel(m, hertz):
        return m.log(1.0 + hertz / 700.0) * (2595.0 / math.log(10.0))

    def body(m, i, filters, length, rate, lower, upper):
        low = mel(m, lower)
        at = low + i * ((mel(m, upper) - low) / (filters + 2.0))
        hertz = 700.0 * (m.exp(at * (math.log(10.0) / 2595.0)) - 1.0)
        return m.floor((length + 1.0) * hertz / rate)

    scalars = (x.squeeze(range(x.rank)) for x in (filters, length, rate, lower, upper))
    return b.elementwise(body, b.cast(number, F64), *scalars)
