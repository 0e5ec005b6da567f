# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations, decomposed into reductions and elementwise steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..registry import Builder, Node, op
from ..tensor import Tensor


def inference_scale(
    b: Builder, node: Node, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    """BatchNormalization as x * factor + offset. Raises UnsupportedError in training mode."""
    if node.attr("training_mode", 0) or (node.version < 7 and not node.attr("is_test", 0)):
        node.unsupported("training mode; export the model for inference")
    if node.attr("spatial", 1) != 1:
        node.unsupported("spatial=0 (statistics per element)")
    epsilon = node.attr("epsilon", 1e-5)
    factor = b.elementwise(lambda m, s, v: s / m.sqrt(v + epsilon), scale, variance)
    return factor, b.elementwise(lambda m, s, u, f: s - u * f, shift, mean, factor)


@op("BatchNormalization")
def batch_norm(
    b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    """Inference; after a convolution it is folded there."""
    ones = range(1, x.rank - 1)
    factor, offset = (v.unsqueeze(ones) for v in inference_scale(b, node, scale, shift, mean, variance))
    return b.elementwise(lambda m, x, f, o: x * f + o, x, factor, offset)


def standardize(b: Builder, x: Tensor, axes: Sequence[int], epsilon: float, tail=None, *parameters: Tensor):
    """(x - mean) / sqrt(variance + epsilon) over `axes`, then `tail(m, y, *parameters)` in the same step.

    Returns the result and the sums behind mean and variance.
    """
    scale = 1.0 / prod(x.shape[d] for d in axes)
    total = b.reduce("sum", x, axes)
    centred = b.elementwise(lambda m, x, s: x - s * scale, x, total)
    squares = b.reduce("sum", b.elementwise(lambda m, d: d * d, centred), axes)

    def body(m, d, v, *rest):
        y = d * m.rsqrt(v * scale + epsilon)
        return y if tail is None else tail(m, y, *rest)

    return b.elementwise(body, centred, squares, *parameters), total, squares


def _affine(m, y, scale, shift):
    return y * scale + shift


@op("LayerNormalization", since=17)
def layer_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor | None = None) -> list[Tensor]:
    """Over all dimensions from `axis` on; mean and inverse deviation as optional results."""
    axes = list(range(node.axis(node.attr("axis", -1), x.rank), x.rank))
    epsilon, count = node.attr("epsilon", 1e-5), prod(x.shape[d] for d in axes)
    if shift is None:
        y, total, squares = standardize(b, x, axes, epsilon, lambda m, y, s: y * s, scale)
    else:
        y, total, squares = standardize(b, x, axes, epsilon, _affine, scale, shift)
    results = [y]
    if len(node.proto.output) > 1:
        results.append(b.elementwise(lambda m, s: s * (1.0 / count), total))
        results.append(b.elementwise(lambda m, v: m.rsqrt(v * (1.0 / count) + epsilon), squares))
    return results


@op("RMSNormalization", since=23)
def rms_norm(b: Builder, node: Node, x: Tensor, scale: Tensor) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * scale, over all dimensions from `axis` on."""
    axes = list(range(node.axis(node.attr("axis", -1), x.rank), x.rank))
    epsilon, factor = node.attr("epsilon", 1e-5), 1.0 / prod(x.shape[d] for d in axes)
    squares = b.reduce("sum", b.elementwise(lambda m, x: x * x, x), axes)
    return b.elementwise(lambda m, x, v, s: x * m.rsqrt(v * factor + epsilon) * s, x, squares, scale)


@op("InstanceNormalization")
def instance_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Each channel of each sample over its spatial dimensions."""
    ones, axes = range(1, x.rank - 1), range(2, x.rank)
    epsilon = node.attr("epsilon", 1e-5)
    return standardize(b, x, axes, epsilon, _affine, scale.unsqueeze(ones), shift.unsqueeze(ones))[0]


@op("GroupNormalization", since=18)
def group_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Groups of channels of each sample; scale and shift per group before opset 21, then per channel."""
    groups = node.attr("num_groups")
    if x.shape[1] % groups:
        node.wrong(f"{x.shape[1]} channels do not divide into {groups} groups")
    split = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    columns = groups if scale.shape[0] == groups and node.version < 21 else x.shape[1]
    per_group = [b.reshape(v, (groups, columns // groups, *[1] * (x.rank - 2))) for v in (scale, shift)]
    grouped = b.reshape(x, split)
    y, _, _ = standardize(b, grouped, range(2, len(split)), node.attr("epsilon", 1e-5), _affine, *per_group)
    return b.reshape(y, x.shape)
