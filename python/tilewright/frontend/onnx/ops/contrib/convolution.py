# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with an addition and an activation, and with channels last."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, as_standard
from tilewright.frontend.onnx.ops.contrib.fused import apply_activation
from tilewright.frontend.onnx.ops.nn.convolution import conv
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("FusedConv", domain=DOMAIN)
@widened
def fused_conv(
    b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None, z: Tensor | None = None
) -> Tensor:
    """activation(convolution + bias + z)."""
    y = conv(b, as_standard(node), x, w, bias)
    if z is not None:
        y = b.elementwise(lambda m, y, z: y + z, y, z)
    return apply_activation(b, node, y, node.attr("activation_params") or [])


@op("NhwcConv", "NhwcFusedConv", domain=DOMAIN)
def nhwc_conv(b: Builder, node: Node, x: Tensor, *rest: Tensor | None) -> Tensor:
    """The same with channels last in the input, the addition and the result; filters as the standard has them."""
    return channels_last(lambda x, z: fused_conv(b, node, x, *rest[:2], *([] if z is None else [z])), x, *rest[2:3])


def channels_last(function: Callable[..., Tensor], x: Tensor, z: Tensor | None = None) -> Tensor:
    """A function of tensors [n, c, spatial...] on tensors [n, spatial..., c]; the transposes are views."""
    to_first = [0, x.rank - 1, *range(1, x.rank - 1)]
    y = function(x.transpose(to_first), None if z is None else z.transpose(to_first))
    return y.transpose([0, *range(2, y.rank), 1])
