# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and poolings of quantized images, channels first or last (com.microsoft)."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.nn.pooling import average_pool, max_pool
from tilewright.frontend.onnx.ops.quantized.arithmetic import centred, one, zero_of
from tilewright.frontend.onnx.ops.quantized.elementwise import MS, mean_of_codes, requantized
from tilewright.frontend.onnx.ops.quantized.quantization import qlinear_conv
from tilewright.frontend.onnx.registry import Builder, Node, op


def channels_first(x: Tensor) -> Tensor:
    """[n, spatial..., c] as [n, c, spatial...]: a view."""
    return x.transpose([0, x.rank - 1, *range(1, x.rank - 1)])


def channels_last(x: Tensor) -> Tensor:
    """[n, c, spatial...] as [n, spatial..., c]: a view."""
    return x.transpose([0, *range(2, x.rank), 1])


@op("QLinearConv", domain=MS)
def qlinear_conv_of_images(b: Builder, node: Node, x: Tensor, *rest: Tensor) -> Tensor:
    """ONNX's QLinearConv, with `channels_last` too: filters are [outputs, inputs, window...] in both."""
    if not node.attr("channels_last", 0):
        return qlinear_conv(b, node, x, *rest)
    return channels_last(qlinear_conv(b, node, channels_first(x), *rest))


@op("NhwcMaxPool", domain=MS)
def nhwc_max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """MaxPool of [n, spatial..., c]."""
    return channels_last(max_pool(b, node, channels_first(x))[0])


@op("QLinearAveragePool", domain=MS)
def qlinear_average_pool(
    b: Builder,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
) -> Tensor:
    """The mean of each window, whose differences from the zero point are summed exactly (below 2^24)."""
    last = node.attr("channels_last", 0)
    differences = b.cast(centred(b, channels_first(x) if last else x, zero_of(x, x_zero)), F32)
    y = requantized(
        b, average_pool(b, node, differences), [one(x_scale), Tensor.known(np.float32(1)), one(scale)], zero_of(x, zero)
    )
    return channels_last(y) if last else y


@op("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_average_pool(
    b: Builder, node: Node, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor
) -> Tensor:
    """The mean over all spatial dimensions."""
    axes = list(range(1, x.rank - 1) if node.attr("channels_last", 0) else range(2, x.rank))
    return mean_of_codes(b, x, one(x_zero), axes, (x_scale, scale, zero))
