# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations with what stands beside them: BiasGelu, FastGelu, QuickGelu, BiasAdd, BiasSoftmax and their kin."""

from __future__ import annotations

import math

from tilewright.frontend.builder.dtypes import BOOL
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, wanted
from tilewright.frontend.onnx.ops.math.activations import swish_of
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op

_ROOT = math.sqrt(0.5)


def gelu_of(m, x):
    """x times the normal distribution up to x."""
    return 0.5 * x * (1.0 + m.erf(x * _ROOT))


def fast_gelu_of(m, x):
    """The same by tanh, with the constants of ONNX Runtime."""
    return 0.5 * x * (1.0 + m.tanh(x * (0.035677408136300125 * x * x + 0.7978845608028654)))


@op("BiasGelu", domain=DOMAIN)
@widened
def bias_gelu(b: Builder, node: Node, x: Tensor, bias: Tensor) -> Tensor:
    """Gelu of x + bias."""
    return b.elementwise(lambda m, x, v: gelu_of(m, x + v), x, bias)


@op("FastGelu", domain=DOMAIN)
@widened
def fast_gelu(b: Builder, node: Node, x: Tensor, bias: Tensor | None = None) -> Tensor:
    """Gelu by tanh, of x or of x + bias."""
    if bias is None:
        return b.elementwise(fast_gelu_of, x)
    return b.elementwise(lambda m, x, v: fast_gelu_of(m, x + v), x, bias)


@op("QuickGelu", domain=DOMAIN)
@widened
def quick_gelu(b: Builder, node: Node, x: Tensor) -> Tensor:
    """x * sigmoid(alpha * x)."""
    alpha = node.attr("alpha", 1.702)
    return b.elementwise(lambda m, x: swish_of(m, x, alpha), x)


@op("BiasSplitGelu", domain=DOMAIN)
@widened
def bias_split_gelu(b: Builder, node: Node, x: Tensor, bias: Tensor) -> Tensor:
    """The first half of x + bias along the last dimension times the gelu of the second."""
    size = x.shape[-1]
    if bias.rank != 1 or (isinstance(size, int) and size % 2):
        node.wrong(f"{list(x.shape)} has no two halves, or the bias {list(bias.shape)} is no vector")
    half = size // 2
    halves = [part(b, v, v.rank - 1, at, half) for at in (0, half) for v in (x, bias)]
    return b.elementwise(lambda m, x, v, y, w: (x + v) * gelu_of(m, y + w), *halves)


@op("BiasAdd", domain=DOMAIN)
@widened
def bias_add(b: Builder, node: Node, x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    """x + bias + skip."""
    return b.elementwise(lambda m, x, v, s: x + v + s, x, bias, skip)


@op("BiasSoftmax", domain=DOMAIN)
@widened
def bias_softmax(b: Builder, node: Node, x: Tensor, bias: Tensor) -> Tensor:
    """Softmax of x + bias over the dimensions from `axis` on.

    The bias lacks dimensions in front of them: the innermost ones (is_inner_broadcast) or all others.
    """
    axis = node.axis(node.attr("axis", 1), x.rank)
    if bias.rank < x.rank:
        inner = x.rank - axis
        if bias.rank < inner:
            node.wrong(f"the bias {list(bias.shape)} has fewer dimensions than softmax from {axis} on of {x.rank}")
        if node.attr("is_inner_broadcast", 0):
            outer = bias.rank - inner
            bias = bias.unsqueeze(range(outer, outer + x.rank - bias.rank))
    total = b.elementwise(lambda m, x, v: x + v, x, bias)
    return softmax(b, total, list(range(axis, x.rank)))


@op("BiasDropout", domain=DOMAIN)
def bias_dropout(
    b: Builder,
    node: Node,
    x: Tensor,
    bias: Tensor,
    residual: Tensor | None = None,
    ratio: Tensor | None = None,
    training: Tensor | None = None,
) -> list[Tensor]:
    """x + bias + residual; nothing is dropped outside of training."""
    if training is not None and (not training.is_known or training.numpy().any()):
        node.unsupported("dropout in training; export the model in evaluation mode")
    others = [bias, *([] if residual is None else [residual])]
    y = b.elementwise(lambda m, x, *rest: sum(rest, start=x), x, *others)
    return [y, b.full(1, y.shape, BOOL)] if wanted(node, 1) else [y]


@op("SwiGLU", domain=DOMAIN)
@widened
def swiglu(b: Builder, node: Node, x: Tensor, value: Tensor | None = None) -> Tensor:
    """Swish of the gate times (value + activation_beta), both limited: two inputs, or the halves of one."""
    if value is None:
        half = x.shape[-1] // 2
        x, value = (part(b, x, x.rank - 1, at, half) for at in (0, half))
    alpha, beta = node.attr("activation_alpha", 1.0), node.attr("activation_beta", 0.0)
    limit = node.attr("limit", 0.0)

    def body(m, gate, linear):
        if limit > 0.0:
            gate, linear = m.minimum(gate, limit), m.maximum(m.minimum(linear, limit), -limit)
        return swish_of(m, gate, alpha) * (linear if beta == 0.0 else linear + beta)

    return b.elementwise(body, x, value)
