# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations, decomposed into reductions and elementwise steps. Narrow floats are computed in f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.frontend.builder.dtypes import F32, promoted
from tilewright.frontend.builder.emit import At, Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widen, widened
from tilewright.frontend.onnx.ops.common.window import loop_extents
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.registry import Builder, Node, op


def is_training(node: Node) -> bool:
    """Whether a BatchNormalization computes statistics: by attribute, or (opset 7 to 13) by its further results."""
    if node.version >= 14:
        return bool(node.attr("training_mode", 0))
    if node.version >= 7:
        return any(node.proto.output[1:])
    return not node.attr("is_test", 0)


def inference_scale(
    b: Builder, node: Node, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    """BatchNormalization by given statistics as x * factor + offset."""
    epsilon = node.attr("epsilon", 1e-5)
    factor = b.elementwise(lambda m, s, v: s / m.sqrt(v + epsilon), scale, variance)
    return factor, b.elementwise(lambda m, s, u, f: s - u * f, shift, mean, factor)


@op("BatchNormalization")
def batch_norm(
    b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> list[Tensor]:
    """By given statistics, or by those of the batch, which then update the running ones.

    After a convolution the first is folded there. Statistics are per channel, or (spatial=0) per element.
    """
    wide = promoted(x.dtype)
    y, parameters = b.cast(x, wide), [b.cast(v, wide) for v in (scale, shift, mean, variance)]
    axes = [0] if node.attr("spatial", 1) == 0 else [0, *range(2, x.rank)]
    outline = [1 if d in axes else n for d, n in enumerate(x.shape)]
    if is_training(node):
        return _batch_norm_training(b, node, y, x.dtype, parameters, (mean.dtype, axes, outline))
    factor, offset = (v.with_ones(outline) for v in inference_scale(b, node, *parameters))
    return [b.cast(b.elementwise(lambda m, x, f, o: x * f + o, y, factor, offset), x.dtype)]


def _batch_norm_training(b: Builder, node: Node, x: Tensor, dtype, parameters, statistics) -> list[Tensor]:
    scale, shift, *running = parameters
    kind, axes, outline = statistics
    affine = [v.with_ones(outline) for v in (scale, shift)]
    y, total, squares = standardize(b, x, axes, node.attr("epsilon", 1e-5), _affine, *affine)
    part, momentum = share(b, x, axes), node.attr("momentum", 0.9)
    batch = [b.elementwise(lambda m, s, p: s * p, s, part) for s in (total, squares)]
    results = [b.cast(y, dtype)]
    for old, new in zip(running, batch, strict=True):
        mixed = b.elementwise(lambda m, o, n: o * momentum + n * (1.0 - momentum), old, new.with_ones(old.shape))
        results.append(b.cast(mixed, kind))
    return results + [b.cast(v.with_ones(o.shape), kind) for v, o in zip(batch, running, strict=True)]


def share(b: Builder, x: Tensor, axes: Sequence[int]) -> Tensor:
    """1 / the number of elements along `axes`, as a tensor without dimensions: a constant where sizes are known."""
    return b.elementwise(lambda m, n: 1.0 / n, b.size_tensor(prod(x.shape[d] for d in axes), x.dtype))


def standardize(
    b: Builder, x: Tensor, axes: Sequence[int], epsilon: float, tail: Callable | None = None, *parameters: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, then `tail(m, y, *parameters)` in the same step.

    Returns the result and the sums behind mean and variance.
    """
    part = share(b, x, axes)
    total = b.reduce("sum", x, axes)
    centred = b.elementwise(lambda m, x, s, p: x - s * p, x, total, part)
    squares = b.reduce("sum", b.elementwise(lambda m, d: d * d, centred), axes)

    def body(m, d, v, p, *rest):
        y = d * m.rsqrt(v * p + epsilon)
        return y if tail is None else tail(m, y, *rest)

    return b.elementwise(body, centred, squares, part, *parameters), total, squares


def _affine(m, y, scale, shift):
    return y * scale + shift


def _check_channels(node: Node, x: Tensor, *parameters: Tensor) -> None:
    if x.rank < 2 or any(v.rank != 1 for v in parameters):
        shapes = ", ".join(str(list(v.shape)) for v in parameters)
        node.wrong(f"the input {list(x.shape)} needs channels, and a vector for each parameter, not {shapes}")


@op("LayerNormalization", since=17)
def layer_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor | None = None) -> list[Tensor]:
    """Over all dimensions from `axis` on; mean and inverse deviation as optional results of the stash type."""
    axes = list(range(node.axis(node.attr("axis", -1), x.rank), x.rank))
    epsilon = node.attr("epsilon", 1e-5)
    stash = dtype_attribute(node, "stash_type", F32)
    wide, scale = widen(b, x), widen(b, scale)
    if shift is None:
        y, total, squares = standardize(b, wide, axes, epsilon, lambda m, y, s: y * s, scale)
    else:
        y, total, squares = standardize(b, wide, axes, epsilon, _affine, scale, widen(b, shift))
    results = [b.cast(y, x.dtype)]
    if len(node.proto.output) > 1:
        part = share(b, wide, axes)
        mean = b.elementwise(lambda m, s, p: s * p, total, part)
        deviation = b.elementwise(lambda m, v, p: m.rsqrt(v * p + epsilon), squares, part)
        results += [b.cast(mean, stash), b.cast(deviation, stash)]
    return results


@op("RMSNormalization", since=23)
@widened
def rms_norm(b: Builder, node: Node, x: Tensor, scale: Tensor) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * scale, over all dimensions from `axis` on."""
    axes = list(range(node.axis(node.attr("axis", -1), x.rank), x.rank))
    epsilon, part = node.attr("epsilon", 1e-5), share(b, x, axes)
    squares = b.reduce("sum", b.elementwise(lambda m, x: x * x, x), axes)
    return b.elementwise(lambda m, x, v, p, s: x * m.rsqrt(v * p + epsilon) * s, x, squares, part, scale)


@op("InstanceNormalization")
@widened
def instance_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Each channel of each sample over its spatial dimensions."""
    _check_channels(node, x, scale, shift)
    ones, axes = range(1, x.rank - 1), range(2, x.rank)
    epsilon = node.attr("epsilon", 1e-5)
    return standardize(b, x, axes, epsilon, _affine, scale.unsqueeze(ones), shift.unsqueeze(ones))[0]


@op("GroupNormalization", since=18)
@widened
def group_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Groups of channels of each sample; scale and shift per group before opset 21, then per channel."""
    groups = node.attr("num_groups")
    _check_channels(node, x, scale, shift)
    if groups < 1 or x.shape[1] % groups:
        node.wrong(f"{x.shape[1]} channels do not divide into {groups} groups")
    split = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    columns = groups if scale.shape[0] == groups and node.version < 21 else x.shape[1]
    per_group = [b.reshape(v, (groups, columns // groups, *[1] * (x.rank - 2))) for v in (scale, shift)]
    grouped = b.reshape(x, split)
    y, _, _ = standardize(b, grouped, range(2, len(split)), node.attr("epsilon", 1e-5), _affine, *per_group)
    return b.reshape(y, x.shape)


@op("LpNormalization")
@widened
def lp_norm(b: Builder, node: Node, x: Tensor) -> Tensor:
    """x divided by its norm along an axis; 0 where the norm is 0."""
    axis, p = node.axis(node.attr("axis", -1), x.rank), node.attr("p", 2)
    if p not in (1, 2):
        node.wrong(f"p is {p}; the norms are 1 and 2")
    power = (lambda m, x: m.absolute(x)) if p == 1 else (lambda m, x: x * x)
    total = b.reduce("sum", b.elementwise(power, x), [axis])
    norm = total if p == 1 else b.elementwise(lambda m, s: m.sqrt(s), total)
    return b.elementwise(lambda m, x, n: m.where(m.eq(n, 0.0), n, x / n), x, norm)


@op("MeanVarianceNormalization")
@widened
def mean_variance_norm(b: Builder, node: Node, x: Tensor) -> Tensor:
    """(x - mean) / (deviation + 1e-9) over `axes`; before opset 9 over the spatial ones, with or without channels."""
    if node.version < 9:
        axes = list(range(1 if node.attr("across_channels", 0) else 2, x.rank))
    else:
        axes = node.axes(node.attr("axes") or [0, 2, 3], x.rank)
    part = share(b, x, axes)
    total = b.reduce("sum", x, axes)
    centred = b.elementwise(lambda m, x, s, p: x - s * p, x, total, part)
    if node.version < 9 and not node.attr("normalize_variance", 1):
        return centred
    squares = b.reduce("sum", b.elementwise(lambda m, d: d * d, centred), axes)
    return b.elementwise(lambda m, d, v, p: d / (m.sqrt(v * p) + 1e-9), centred, squares, part)


@op("LRN")
@widened
def local_response_norm(b: Builder, node: Node, x: Tensor) -> Tensor:
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ** beta."""
    size, bias = node.attr("size"), node.attr("bias", 1.0)
    if size < 1 or x.rank < 2:
        node.wrong(f"{size} neighbouring channels of an input {list(x.shape)}")
    factor, beta = node.attr("alpha", 1e-4) / size, node.attr("beta", 0.75)
    low = (size - 1) // 2
    before, behind = ([n if d == 1 else 0 for d in range(x.rank)] for n in (low, size - 1 - low))
    padded = b.pad(b.elementwise(lambda m, x: x * x, x), before, behind, 0.0)
    space = Space([*x.shape, size], frozenset([x.rank]))
    reads = [At(((d, 1), (x.rank, 1))) if d == 1 else d for d in range(x.rank)]
    inputs = [(padded, reads), *loop_extents(b, [(x.rank, size)])]
    order = x.stored_order()
    sums = b.generic(space, inputs, range(x.rank), x.dtype, lambda m, x, *rest: rest[-1] + x, 0.0, order)
    return b.elementwise(lambda m, x, s: x / m.power(s * factor + bias, beta), x, sums)
