# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on images in blocks of channels (com.microsoft.nchwc): here they are images of padded channels.

What is stored in blocks is up to the plan, as everywhere; `blocked_files.py` has made the filters plain.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dims import ceil_divide
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.blocked_files import DOMAIN
from tilewright.frontend.onnx.ops.contrib.convolution import fused_conv
from tilewright.frontend.onnx.ops.contrib.domain import as_standard
from tilewright.frontend.onnx.ops.image.resize import resize
from tilewright.frontend.onnx.ops.nn import pooling
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("ReorderInput", domain=DOMAIN)
def reorder_input(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Zeros behind the channels up to a whole block; channels that come last (channels_last) become second."""
    if node.attr("channels_last", 0):
        x = x.transpose([0, x.rank - 1, *range(1, x.rank - 1)])
    block = node.attr("block")
    missing = ceil_divide(x.shape[1], block) * block - x.shape[1]
    return b.pad(x, [0] * x.rank, [missing if d == 1 else 0 for d in range(x.rank)], 0.0)


@op("ReorderOutput", domain=DOMAIN)
def reorder_output(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The first `channels`, as the last dimension where channels_last says so."""
    y = part(b, x, 1, 0, node.attr("channels"))
    return y.transpose([0, *range(2, y.rank), 1]) if node.attr("channels_last", 0) else y


@op("Conv", domain=DOMAIN)
def blocked_conv(
    b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None, z: Tensor | None = None
) -> Tensor:
    """activation(convolution + bias + z)."""
    return fused_conv(b, node, x, w, bias, z)


@op("MaxPool", domain=DOMAIN)
def blocked_max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The maximum of each window."""
    return pooling.max_pool(b, as_standard(node), x)[0]


@op("AveragePool", domain=DOMAIN)
def blocked_average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean of each window."""
    return pooling.average_pool(b, as_standard(node), x)


@op("GlobalAveragePool", domain=DOMAIN)
def blocked_global_average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean over all spatial dimensions."""
    return pooling.global_average_pool(b, as_standard(node), x)


@op("GlobalMaxPool", domain=DOMAIN)
def blocked_global_max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The maximum over all spatial dimensions."""
    return pooling.global_max_pool(b, as_standard(node), x)


@op("Upsample", domain=DOMAIN)
def blocked_upsample(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Each place repeated by whole scales, or what lies between places as Resize of opset 11 finds it."""
    scales = node.attr("scales") or [1] * x.rank
    if node.attr("mode", "nearest") != "nearest":
        return resize(b, as_standard(node, 11), x, None, Tensor.known(np.array(scales, np.float32)))
    for axis, scale in enumerate(scales):
        if scale != 1:
            shape = [*x.shape[: axis + 1], scale, *x.shape[axis + 1 :]]
            flat = [n * scale if d == axis else n for d, n in enumerate(x.shape)]
            x = b.reshape(b.broadcast(x.unsqueeze([axis + 1]), shape), flat)
    return x
