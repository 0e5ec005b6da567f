# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations with what is added before them: SkipLayerNormalization, GroupNorm and their kin.

LayerNormalization and SimplifiedLayerNormalization are ONNX Runtime's too, though they stand in the standard's domain:
it had them before opset 17, and writes them into files of any opset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widen
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, as_standard, wanted
from tilewright.frontend.onnx.ops.math.activations import swish_of
from tilewright.frontend.onnx.ops.nn.normalization import layer_norm, share, standardize
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("LayerNormalization", since=1)
def old_layer_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, shift: Tensor | None = None) -> list[Tensor]:
    """LayerNormalization of files older than opset 17."""
    return layer_norm(b, as_standard(node), x, scale, shift)


def rms_of(b: Builder, x: Tensor, scale: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor]:
    """x by the root of its mean square over `axes`, times the scale; and the factor alone."""
    part = share(b, x, axes)
    squares = b.reduce("sum", b.elementwise(lambda m, x: x * x, x), axes)
    y = b.elementwise(lambda m, x, v, p, s: x * m.rsqrt(v * p + epsilon) * s, x, squares, part, scale)
    return y, b.elementwise(lambda m, v, p: m.rsqrt(v * p + epsilon), squares, part)


@op("SimplifiedLayerNormalization")
@op("SimplifiedLayerNormalization", domain=DOMAIN)
def simplified_layer_norm(b: Builder, node: Node, x: Tensor, scale: Tensor) -> list[Tensor]:
    """RMSNormalization over the dimensions from `axis` on; the inverse root as an optional result."""
    axes = list(range(node.axis(node.attr("axis", -1), x.rank), x.rank))
    y, factor = rms_of(b, widen(b, x), widen(b, scale), axes, node.attr("epsilon", 1e-5))
    return [b.cast(y, scale.dtype), *([factor] if wanted(node, 1) else [])]


def _sum_of(b: Builder, x: Tensor, *others: Tensor | None) -> Tensor:
    given = [v for v in others if v is not None]
    return b.elementwise(lambda m, x, *rest: sum(rest, start=x), x, *given)


def _checked(node: Node, x: Tensor, gamma: Tensor) -> None:
    if x.rank not in (2, 3) or gamma.rank != 1:
        node.wrong(f"the input {list(x.shape)} needs 2 or 3 dimensions, the scale {list(gamma.shape)} one")


def _results(
    b: Builder, node: Node, x: Tensor, total: Tensor, statistics: Callable[[], tuple[Tensor, Tensor | None, Tensor]]
) -> list[Tensor | None]:
    """Normalized, mean, inverse deviation, sum: the optional ones where the model wants them."""
    y, mean, deviation = statistics()
    optional = (mean, deviation, b.cast(total, x.dtype))
    wide: list[Tensor | None] = [b.cast(y, x.dtype)]
    wide += [v if wanted(node, i + 1) else None for i, v in enumerate(optional)]
    return wide[: len(node.proto.output)]


@op("SkipLayerNormalization", domain=DOMAIN)
def skip_layer_norm(
    b: Builder,
    node: Node,
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
) -> list[Tensor | None]:
    """LayerNormalization of x + skip + bias over the last dimension; skip may lack the batch."""
    _checked(node, x, gamma)
    total = _sum_of(b, *(v if v is None else widen(b, v) for v in (x, skip, bias)))
    axes, epsilon = [x.rank - 1], node.attr("epsilon", 1e-12)
    parameters = [widen(b, v) for v in (gamma, beta) if v is not None]

    def statistics() -> tuple[Tensor, Tensor | None, Tensor]:
        def tail(m, y, scale, *shift):
            return sum(shift, start=y * scale)

        y, sums, squares = standardize(b, total, axes, epsilon, tail, *parameters)
        part = share(b, total, axes)
        mean = b.elementwise(lambda m, s, p: s * p, sums, part)
        return y, mean, b.elementwise(lambda m, v, p: m.rsqrt(v * p + epsilon), squares, part)

    return _results(b, node, x, total, statistics)


@op("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_simplified_layer_norm(
    b: Builder, node: Node, x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None
) -> list[Tensor | None]:
    """RMSNormalization of x + skip + bias over the last dimension."""
    _checked(node, x, gamma)
    total = _sum_of(b, *(v if v is None else widen(b, v) for v in (x, skip, bias)))

    def statistics() -> tuple[Tensor, Tensor | None, Tensor]:
        y, factor = rms_of(b, total, widen(b, gamma), [x.rank - 1], node.attr("epsilon", 1e-12))
        return y, None, factor

    if wanted(node, 1):
        node.unsupported("the mean, which this normalization does not compute; remove that output")
    return _results(b, node, x, total, statistics)


def _group_norm(b: Builder, node: Node, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """f32 [n, spatial..., c] or [n, c, spatial...] by groups of channels, with the activation."""
    groups, last = node.attr("groups", 0), bool(node.attr("channels_last", 1))
    x = x.transpose([0, x.rank - 1, *range(1, x.rank - 1)]) if last else x
    channels = x.shape[1]
    if x.rank < 3 or groups < 1 or (isinstance(channels, int) and channels % groups):
        node.wrong(f"{channels} channels of {list(x.shape)} do not divide into {groups} groups")
    split = (x.shape[0], groups, channels // groups, *x.shape[2:])
    ones = [1] * (x.rank - 2)
    affine = [b.reshape(b.cast(v, F32), (groups, channels // groups, *ones)) for v in (gamma, beta)]
    silu = node.attr("activation", 0)
    if silu not in (0, 1):
        node.wrong(f"activation {silu} is neither 0 nor 1")

    def tail(m, y, scale, shift):
        y = y * scale + shift
        return swish_of(m, y, 1.0) if silu else y

    axes = range(2, len(split))
    y, _, _ = standardize(b, b.reshape(x, split), axes, node.attr("epsilon", 1e-5), tail, *affine)
    y = b.reshape(y, x.shape)
    return y.transpose([0, *range(2, y.rank), 1]) if last else y


@op("GroupNorm", domain=DOMAIN)
def group_norm(b: Builder, node: Node, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Groups of channels, channels last unless channels_last=0, then SiLU where activation=1."""
    return b.cast(_group_norm(b, node, widen(b, x), gamma, beta), x.dtype)


@op("SkipGroupNorm", domain=DOMAIN)
def skip_group_norm(
    b: Builder, node: Node, x: Tensor, gamma: Tensor, beta: Tensor, skip: Tensor, bias: Tensor | None = None
) -> list[Tensor]:
    """The same of x + skip + bias; the sum is the second result. A skip [n, c] holds for all places."""
    last = bool(node.attr("channels_last", 1))
    if skip.rank == 2:
        skip = skip.unsqueeze([1, 2] if last else [2, 3])
    if bias is not None and not last:
        bias = bias.unsqueeze([1, 2])
    total = _sum_of(b, *(v if v is None else widen(b, v) for v in (x, skip, bias)))
    y = b.cast(_group_norm(b, node, total, gamma, beta), x.dtype)
    return [y, *([b.cast(total, x.dtype)] if wanted(node, 1) else [])]
