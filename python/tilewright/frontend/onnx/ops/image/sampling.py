# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sampling at coordinates that are data: AffineGrid, GridSample, DeformConv."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import F32, is_float, promoted
from tilewright.frontend.builder.emit import At, Index, Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.access import (
    Number,
    Tap,
    cubic_taps,
    interpolate,
    linear_taps,
    measure,
    or_zero,
)
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.nn.convolution import per_channel
from tilewright.frontend.onnx.registry import Builder, Node, op

_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # names before opset 20


def _steps(b: Builder, size: Size, align: bool) -> Tensor:
    """Coordinates from -1 to 1 along an axis: of the corners' centres, or of the cells'."""
    places, count = b.positions(size), b.size_tensor(size)

    def body(m, i, n):
        i, n = m.cast(i, F32), m.cast(n, F32)
        if align:
            return i * (2.0 / m.maximum(n - 1.0, 1.0)) - 1.0
        return (i * 2.0 + 1.0) / n - 1.0

    return b.elementwise(body, places, count, dtype=F32)


@op("AffineGrid", since=20)
@widened
def affine_grid(b: Builder, node: Node, theta: Tensor, size: Tensor) -> Tensor:
    """The coordinates of a result's places, each mapped by its sample's affine matrix."""
    rank = theta.shape[1] if theta.rank == 3 else 0
    if not isinstance(rank, int) or rank not in (2, 3) or theta.shape[2] != rank + 1:
        node.wrong(f"theta needs the shape [n, 2, 3] or [n, 3, 4], not {list(theta.shape)}")
    sizes = b.shape_values(size)
    if len(sizes) != rank + 2:
        node.wrong(f"size needs {rank + 2} elements, not {len(sizes)}")
    shape = b.settle((theta.shape[0], *sizes[2:], rank), node.declared(0), node)
    align = bool(node.attr("align_corners", 0))
    axes = [_steps(b, n, align).unsqueeze(_others(i + 1, rank + 2)) for i, n in enumerate(shape[1:-1])]
    axes = [b.cast(axis, theta.dtype) for axis in reversed(axes)]  # x first
    ones = range(1, rank + 1)
    columns = [
        b.slice(theta, [0, 0, j], [*theta.shape[:2], 1], [1] * 3).squeeze([2]).unsqueeze(ones) for j in range(rank + 1)
    ]

    def body(m, *values):
        total = values[rank]
        for factor, place in zip(values[:rank], values[rank + 1 :], strict=True):
            total = total + factor * place
        return total

    return b.elementwise(body, *columns, *axes)


def _others(kept: int, rank: int) -> list[int]:
    return [d for d in range(rank) if d != kept]


def _reflected(m, x, low: Number, high: Number):
    """A coordinate outside of a range mirrored at its ends until it lies inside."""
    below, above = x < low, x > high
    span = high - low
    span = max(span, 1e-20) if isinstance(span, float) else m.maximum(span, 1e-20)
    distance = m.where(below, low - x, x - high)
    times = m.floor(distance / span)
    rest = distance - times * span
    odd = (times - m.floor(times * 0.5) * 2.0) > 0.5
    mirrored = m.where(m.logical_xor(below, odd), rest + low, high - rest)
    return m.where(m.logical_or(below, above), mirrored, x)


def _grid_taps(m, x, extent: Number, mode: str, padding: str, align: bool) -> list[Tap]:
    """What a normalized coordinate (-1 to 1) reads along an axis."""
    low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
    x = (x + 1.0) * 0.5 * (extent - 1.0) if align else ((x + 1.0) * extent - 1.0) * 0.5
    if mode == "nearest":
        x = m.round(x)
    if padding == "border" and mode != "cubic":  # which reads border elements beside inner ones
        x = m.where(x < low, 0.0, m.where(x > high, extent - 1.0 + x * 0.0, x))
    elif padding == "reflection":
        x = _reflected(m, x, low, high)
    taps = [Tap(x)] if mode == "nearest" else linear_taps(m, x) if mode == "linear" else cubic_taps(m, x, -0.75)
    if padding == "zeros":
        return or_zero(m, taps, extent)
    return [Tap(_reflected(m, t.at, low, high), t.weight) for t in taps] if padding == "reflection" else taps


@op("GridSample", since=16)
def grid_sample(b: Builder, node: Node, x: Tensor, grid: Tensor) -> Tensor:
    """Any number of spatial dimensions, whose coordinates the grid holds last dimension first."""
    rank = x.rank - 2
    if grid.rank != x.rank or grid.shape[-1] != rank:
        node.wrong(f"input {list(x.shape)} and grid {list(grid.shape)} do not fit")
    mode = node.attr("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.attr("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        node.wrong(f"mode {mode} with padding {padding} is not known")
    if mode != "nearest" and not is_float(x.dtype):
        node.unsupported(f"mode {mode} on {x.dtype}; cast to a float")
    align, wide = bool(node.attr("align_corners", 0)), promoted(grid.dtype)
    space = Space([*x.shape[:2], *grid.shape[1:-1]])
    outputs = range(2, rank + 2)
    x, extents = b.stored(x), [measure(b, n, wide) for n in x.shape[2:]]

    def body(m, *values):
        coordinates = [m.widened(v) for v in values[:rank]]
        taps = [_grid_taps(m, c, n, mode, padding, align) for c, n in zip(coordinates, extents, strict=True)]
        first = [b.counter(space, 0), b.counter(space, 1)]
        return interpolate(m, lambda place: b.read(x, [*first, *place]), taps, extents)

    inputs = [(grid, [0, *outputs, At((), rank - 1 - i)]) for i in range(rank)]
    return b.generic(space, inputs, range(rank + 2), x.dtype, body, order=[0, *outputs, 1])


def _columns(
    b: Builder, node: Node, x: Tensor, offset: Tensor, mask: Tensor | None, kernel: Sequence[int], out: Sequence[Size]
) -> Tensor:
    """What each tap of each window reads: [n, groups, channels, window..., outputs...] from [n, groups, c, d...]."""
    rank, groups = len(kernel), x.shape[1]
    strides, dilations = (node.attr(name) or [1] * rank for name in ("strides", "dilations"))
    low = (node.attr("pads") or [0] * 2 * rank)[:rank]
    space = Space([*x.shape[:3], *kernel, *out])
    taps, outputs = list(range(3, 3 + rank)), list(range(3 + rank, 3 + 2 * rank))
    offset = b.reshape(offset, (x.shape[0], groups, *kernel, rank, *out))
    inputs: list[tuple[Tensor, list[Index]]] = []
    for i in range(rank):
        at = [b.positions(n, x.dtype) for n in (kernel[i], out[i])]
        step = strides[i], dilations[i], low[i]
        grid = b.elementwise(lambda m, k, o, s=step: o * s[0] + k * s[1] - s[2], at[0].unsqueeze([1]), at[1])
        inputs += [(offset, [0, 1, *taps, At((), i), *outputs]), (grid, [taps[i], outputs[i]])]
    if mask is not None:
        inputs.append((b.reshape(mask, (x.shape[0], groups, *kernel, *out)), [0, 1, *taps, *outputs]))
    x, extents = b.stored(x), [measure(b, n, x.dtype) for n in x.shape[3:]]

    def body(m, *values):
        places = [values[2 * i] + values[2 * i + 1] for i in range(rank)]
        axes = [or_zero(m, linear_taps(m, place), n) for place, n in zip(places, extents, strict=True)]
        first = [b.counter(space, d) for d in range(3)]
        value = interpolate(m, lambda place: b.read(x, [*first, *place]), axes, extents)
        return value if mask is None else value * values[2 * rank]

    return b.generic(space, inputs, range(3 + 2 * rank), x.dtype, body, order=[0, *outputs, *taps, 1, 2])


@op("DeformConv", since=19)
@widened
def deform_conv(
    b: Builder,
    node: Node,
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """A convolution whose taps are moved by data: sampled into columns, then multiplied."""
    groups, parts, rank = node.attr("group", 1), node.attr("offset_group", 1), x.rank - 2
    channels, outputs, kernel = x.shape[1], w.shape[0], w.shape[2:]
    if groups < 1 or parts < 1:
        node.wrong(f"group is {groups} and offset_group {parts}; both are at least 1")
    if w.rank != x.rank or channels != w.shape[1] * groups or channels % parts or outputs % groups:
        node.wrong(f"filters {list(w.shape)} in {groups} groups, {parts} of offsets, do not fit {list(x.shape)}")
    if any(v is not None and v.rank != x.rank for v in (offset, mask)):
        node.wrong(f"offsets and mask need {x.rank} dimensions, as the input has")
    out = offset.shape[2:]
    columns = _columns(
        b, node, b.reshape(x, (x.shape[0], parts, channels // parts, *x.shape[2:])), offset, mask, kernel, out
    )
    columns = b.reshape(columns, (x.shape[0], groups, channels // groups, *kernel, *out))
    w = b.reshape(w, (groups, outputs // groups, *w.shape[1:]))
    places, group, channel, depth = list(range(1, rank + 1)), rank + 1, rank + 2, rank + 3
    taps = list(range(rank + 4, 2 * rank + 4))
    space = Space([x.shape[0], *out, groups, outputs // groups, w.shape[2], *kernel], frozenset([depth, *taps]))
    y = b.contract(
        space,
        (columns, [0, group, depth, *taps, *places]),
        (w, [group, channel, depth, *taps]),
        [0, group, channel, *places],
        [0, *places, group, channel],
    )
    y = b.reshape(y, (x.shape[0], outputs, *out))
    return y if bias is None else b.elementwise(lambda m, y, v: y + v, y, per_channel(bias, y.rank))
