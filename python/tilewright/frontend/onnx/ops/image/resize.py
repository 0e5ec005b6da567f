# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize and Upsample: one axis after the other, by vectors of positions and weights.

The vectors are computed in f64 as ONNX's reference does: at compile time where the scales are known, else by small
operations of the model. Whole multiples of a size become broadcasts, whole fractions slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static
from tilewright.frontend.builder.dtypes import F32, F64, I32, I64, int_range, is_float, promoted
from tilewright.frontend.builder.emit import At, Index, Space
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.onnx.ops.common.access import bounded
from tilewright.frontend.onnx.registry import Builder, Node, op

_UNROLLED = 4  # taps; more become a loop


@dataclass(frozen=True)
class _Options:
    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class _Axis:
    """One axis that is resized: sizes before and after, their ratio as ONNX means it, and the region of interest."""

    axis: int
    size: Size
    out: Size
    scale: Tensor
    roi: tuple[Tensor, Tensor] | None = None

    @property
    def is_same(self) -> bool:
        """Whether nothing changes along it."""
        if not (isinstance(self.size, int) and isinstance(self.out, int)) or self.size != self.out:
            return False
        if self.size == 1:
            return True
        region = [1.0, 0.0, 1.0] if self.roi is None else [1.0, *map(_constant, self.roi)]
        known = [_constant(self.scale), *region[1:]]
        return all(
            v is not None and math.isclose(v, w, abs_tol=1e-8) for v, w in zip(known, (1.0, 0.0, 1.0), strict=True)
        )


def _constant(x: Tensor) -> float | None:
    return float(x.numpy().reshape(-1)[0]) if x.is_known else None


# Positions and weights --------------------------------------------------------------------------------------------


def _coordinates(b: Builder, axis: _Axis, mode: str) -> Tensor:
    """Where each place of the result lies in the input, as a vector."""
    roi = axis.roi or (Tensor.known(0.0, F64), Tensor.known(1.0, F64))

    def body(m, y, scale, n, out, first, last):
        width = scale * n
        if mode == "align_corners":
            return m.where(m.eq(width, 1.0), 0.0, y * (n - 1.0) / (width - 1.0))
        if mode == "tf_crop_and_resize":
            span = (last - first) * (n - 1.0)
            inner = m.where(m.eq(width, 1.0), span * 0.5, y * span / (width - 1.0))
            return inner + first * (n - 1.0)
        x = y / scale if mode == "asymmetric" else (y + 0.5) / scale - 0.5
        if mode == "pytorch_half_pixel":
            return m.where(m.eq(width, 1.0), -0.5, x)
        return x + n * 0.5 * (1.0 - out / width) if mode == "half_pixel_symmetric" else x

    sizes = [b.size_tensor(n, F64) for n in (axis.size, axis.out)]
    return b.elementwise(body, b.positions(axis.out, F64), axis.scale, *sizes, *roi)


def _nearest(b: Builder, axis: _Axis, x: Tensor, mode: str) -> Tensor:
    """The position that is read at each place."""

    def body(m, x, n, scale):
        base = m.floor(x)
        part = x - base
        if mode == "simple":  # opset 10
            at = m.where(scale < 1.0, m.ceil(x), base)
        elif mode in ("floor", "ceil"):
            at = base if mode == "floor" else m.ceil(x)
        else:
            at = m.where(part <= 0.5 if mode == "round_prefer_floor" else part < 0.5, base, base + 1.0)
        return m.cast(bounded(m, at, 0.0, n - 1.0), I64)

    return b.elementwise(body, x, b.size_tensor(axis.size, F64), axis.scale, dtype=I64)


def _linear(m, distance):
    return m.maximum(1.0 - distance, 0.0)


def _cubic(m, distance, a: float):
    near = (distance * (a + 2.0) - (a + 3.0)) * distance * distance + 1.0
    far = ((distance * a - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    return m.where(distance <= 1.0, near, m.where(distance < 2.0, far, 0.0))


def _first_tap(node: Node, axis: _Axis, options: _Options) -> int:
    """How far before a coordinate its first tap lies, as a number <= 0; as many lie behind it, and one more."""
    reach = 2 if options.mode == "cubic" else 1
    scale = _constant(axis.scale)
    if not options.antialias:
        return 1 - reach
    if scale is None:  # the least that gives this size
        if not (isinstance(axis.size, int) and isinstance(axis.out, int)):
            node.unsupported("antialias needs scales, or sizes of the result, that are known at compile time")
        scale = max(axis.out - 0.5, 0.5) / axis.size
    return math.floor(-reach / min(scale, 1.0)) + 1


def _taps(b: Builder, node: Node, axis: _Axis, x: Tensor, options: _Options) -> tuple[Tensor, Tensor]:
    """Positions (i32) and weights (f64) of what each place reads, both [places, taps]."""
    first = _first_tap(node, axis, options)
    check_known(2 - 2 * first)
    offsets = Tensor.known(np.arange(first, 2 - first, dtype=F64)[None])
    x, size = x.unsqueeze([1]), b.size_tensor(axis.size, F64)
    base = b.elementwise(lambda m, x: m.ceil(x) - 1.0, x)  # an integer coordinate reads its left neighbour too
    shrink = axis.scale if options.antialias else Tensor.known(1.0, F64)

    def weight(m, x, base, offset, scale, n):
        distance = m.absolute(offset - (x - base)) * m.minimum(scale, 1.0)
        value = _cubic(m, distance, options.cubic) if options.mode == "cubic" else _linear(m, distance)
        if not options.exclude_outside:
            return value
        at = base + offset
        return m.where(m.logical_and(at >= 0.0, at < n), value, 0.0)

    weights = b.elementwise(weight, x, base, offsets, shrink, size)
    if options.antialias or options.exclude_outside:
        total = b.reduce("sum", weights, [1])
        weights = b.elementwise(lambda m, w, t: w / m.where(m.eq(t, 0.0), 1.0, t), weights, total)
    at = b.elementwise(
        lambda m, base, offset, n: m.cast(bounded(m, base + offset, 0.0, n - 1.0), I32), base, offsets, size, dtype=I32
    )
    return at, weights


# Application ------------------------------------------------------------------------------------------------------


def _take(b: Builder, x: Tensor, at: Tensor, axis: int) -> Tensor:
    """x[..., at, ...] along an axis, by a broadcast or a slice where the positions are that regular."""
    size, out = x.shape[axis], at.shape[0]
    if at.is_known and isinstance(size, int) and isinstance(out, int):
        known = at.numpy()
        if out % size == 0 and (known == np.arange(out) // (out // size)).all():
            wide = x.unsqueeze([axis + 1])
            wide = b.broadcast(wide, [out // size if d == axis + 1 else n for d, n in enumerate(wide.shape)])
            return b.reshape(wide, [out if d == axis else n for d, n in enumerate(x.shape)])
        step = int(known[1] - known[0]) if out > 1 else 1
        if step > 0 and (np.diff(known) == step).all():
            starts, steps = ([v if d == axis else w for d in range(x.rank)] for v, w in ((int(known[0]), 0), (step, 1)))
            return b.slice(x, starts, [out if d == axis else n for d, n in enumerate(x.shape)], steps)
    return b.gather(x, at, axis)


def _mix(b: Builder, x: Tensor, axis: int, at: Tensor, weights: Tensor) -> Tensor:
    """The sum over taps t of weights[i, t] * x[..., at[i, t], ...]."""
    count, taps = at.shape
    assert isinstance(taps, int)
    weights, x, loop = b.cast(weights, x.dtype), b.stored(x), x.rank
    shape = [count if d == axis else n for d, n in enumerate(x.shape)]
    unrolled = taps <= _UNROLLED
    space = Space(shape if unrolled else [*shape, taps], frozenset() if unrolled else frozenset([loop]))

    def term(place, weight):
        return b.read(x, [place if d == axis else b.counter(space, d) for d in range(x.rank)]) * weight

    def sum_of(m, *values):
        terms = [term(place, w) for place, w in zip(values[:taps], values[taps : 2 * taps], strict=True)]
        total = terms[0]
        for value in terms[1:]:
            total = total + value
        return total

    order = x.full_order()
    if unrolled:
        inputs = [column for v in (at, weights) for column in _columns(b, v, axis)]
        return b.generic(space, inputs, range(x.rank), x.dtype, sum_of, order=order)
    inputs = [(v, [axis, loop]) for v in (at, weights)]
    return b.generic(space, inputs, range(x.rank), x.dtype, lambda m, p, w, acc: acc + term(p, w), 0.0, order)


def _columns(b: Builder, v: Tensor, axis: int) -> list[tuple[Tensor, Sequence[Index]]]:
    """The operands that read each column of [places, taps].

    Columns that the model computes are cut out, so that one task reads one region.
    """
    count, taps = v.shape
    if v.is_known:
        return [(v, [axis, At((), t)]) for t in range(int(taps))]
    return [(b.slice(v, [0, t], [count, 1], [1, 1]).squeeze([1]), [axis]) for t in range(int(taps))]


def _resized(b: Builder, node: Node, x: Tensor, axes: Sequence[_Axis], options: _Options) -> Tensor:
    """`x` resized along each axis in turn."""
    for axis in axes:
        if axis.is_same:
            continue
        places = _coordinates(b, axis, options.coordinates)
        if options.mode == "nearest":
            x = _take(b, x, _nearest(b, axis, places, options.nearest), axis.axis)
        else:
            x = _mix(b, x, axis.axis, *_taps(b, node, axis, places, options))
        if options.coordinates == "tf_crop_and_resize":
            x = _extrapolated(b, x, axis, places, options.extrapolation)
    return x


def _extrapolated(b: Builder, x: Tensor, axis: _Axis, places: Tensor, value: float) -> Tensor:
    outside = b.elementwise(
        lambda m, p, n: m.logical_or(p < 0.0, p > n - 1.0), places, b.size_tensor(axis.size, F64), dtype=np.bool_
    ).unsqueeze(range(1, x.rank - axis.axis))
    return b.elementwise(lambda m, v, o: m.where(o, value, v), x, outside)


# The operators ----------------------------------------------------------------------------------------------------


def _element(b: Builder, x: Tensor, i: int) -> Tensor:
    """One element of a vector, as f64."""
    return b.cast(b.slice(x, [i], [1], [1]).squeeze([0]), F64)


def _by_scales(b: Builder, x: Tensor, axes: Sequence[int], scales: Tensor) -> tuple[list[Size], list[Tensor]]:
    """Sizes after, and scales, of each axis."""
    factors = [_element(b, scales, i) for i in range(len(axes))]
    sizes = [_scaled_size(b, x.shape[a], f, 0.0) for a, f in zip(axes, factors, strict=True)]
    return sizes, factors


def _scaled_size(b: Builder, size: Size, factor: Tensor, rounding: float) -> Size:
    product = b.elementwise(
        lambda m, n, f: m.cast(m.floor(n * f + rounding), I64), b.size_tensor(size, F64), factor, dtype=I64
    )
    return b.index_of(product)


def _by_sizes(b: Builder, node: Node, x: Tensor, axes: Sequence[int], sizes: Tensor) -> tuple[list[Size], list[Tensor]]:
    """The same from sizes; a policy that keeps the aspect ratio takes one scale for all."""
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        shape = list(x.shape)
        for a, n in zip(axes, b.shape_values(sizes), strict=True):
            shape[a] = n
        shape = b.settle(shape, node.declared(0), node)
        ratio = lambda m, n, old: n / old  # noqa: E731
        scales = [b.elementwise(ratio, b.size_tensor(shape[a], F64), b.size_tensor(x.shape[a], F64)) for a in axes]
        return [shape[a] for a in axes], scales
    if policy not in ("not_larger", "not_smaller"):
        node.wrong(f"keep_aspect_ratio_policy {policy} is none of stretch, not_larger and not_smaller")
    before = b.cast(b.shape_tensor([x.shape[a] for a in axes]), F64)
    ratios = b.elementwise(lambda m, n, old: n / old, b.cast(sizes, F64), before)
    scale = b.reduce("min" if policy == "not_larger" else "max", ratios, [0], keepdims=False)
    return [_scaled_size(b, x.shape[a], scale, 0.5) for a in axes], [scale] * len(axes)


def _axes(b: Builder, node: Node, x: Tensor, roi, scales, sizes) -> list[_Axis]:
    """What happens along each axis."""
    given = node.attr("axes")
    axes = list(range(x.rank)) if given is None else [node.axis(a, x.rank) for a in given]
    vector = scales if sizes is None else sizes
    if vector is None or vector.rank != 1 or vector.shape[0] != len(axes):
        node.wrong(f"needs scales or sizes for {len(axes)} dimensions")
    after, factors = _by_scales(b, x, axes, scales) if sizes is None else _by_sizes(b, node, x, axes, sizes)
    shape = list(x.shape)
    for a, n in zip(axes, after, strict=True):
        shape[a] = n
    shape = b.settle(shape, node.declared(0), node)
    regions: list[tuple[Tensor, Tensor] | None] = [None] * len(axes)
    if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        if roi is None or roi.rank != 1 or roi.shape[0] != 2 * len(axes):
            node.wrong(f"tf_crop_and_resize needs a region of interest of {2 * len(axes)} numbers")
        regions = [(_element(b, roi, i), _element(b, roi, len(axes) + i)) for i in range(len(axes))]
    return [_Axis(a, x.shape[a], shape[a], f, r) for a, f, r in zip(axes, factors, regions, strict=True)]


def _in_floats(b: Builder, node: Node, x: Tensor, axes: Sequence[_Axis], options: _Options) -> Tensor:
    """Interpolation in f32 or f64; results of other types are limited to their range."""
    if options.mode == "nearest":
        return _resized(b, node, x, axes, options)
    dtype = x.dtype
    y = _resized(b, node, b.cast(x, promoted(dtype) if is_float(dtype) else F32), axes, options)
    if is_float(dtype):
        return b.cast(y, dtype)
    low, high = int_range(dtype)
    return b.elementwise(lambda m, v: m.cast(bounded(m, m.round(v), float(low), float(high)), dtype), y, dtype=dtype)


def _present(x: Tensor | None) -> Tensor | None:
    """An optional input; an empty tensor stands for an absent one."""
    return None if x is None or (isinstance(x.size, int) and x.size == 0) else x


@op("Resize", since=11)
def resize(
    b: Builder,
    node: Node,
    x: Tensor,
    roi: Tensor | None = None,
    scales: Tensor | None = None,
    sizes: Tensor | None = None,
) -> Tensor:
    """All modes; scales, sizes and regions may be known at run time only."""
    options = _Options(
        node.attr("mode", "nearest"),
        node.attr("coordinate_transformation_mode", "half_pixel"),
        node.attr("nearest_mode", "round_prefer_floor"),
        node.attr("cubic_coeff_a", -0.75),
        bool(node.attr("antialias", 0)),
        bool(node.attr("exclude_outside", 0)),
        node.attr("extrapolation_value", 0.0),
    )
    axes = _axes(b, node, x, _present(roi), _present(scales), _present(sizes))
    empty = next((a.axis for a in axes if isinstance(a.size, int) and a.size == 0 and not a.is_same), None)
    if empty is not None:
        node.wrong(f"dimension {empty} has no elements to resize")
    shape = list(x.shape)
    for axis in axes:
        shape[axis.axis] = axis.out
    if is_static(shape) and 0 in shape:
        return nothing(shape, x.dtype)
    return _in_floats(b, node, x, axes, options)


@op("Resize", since=10)
@op("Upsample")
def resize_asymmetric(b: Builder, node: Node, x: Tensor, scales: Tensor | None = None) -> Tensor:
    """Resize of opset 10, and Upsample: nearest or linear, by scales (attributes before opset 9)."""
    if scales is None:
        factors = node.attr("scales") or [1.0, 1.0, node.attr("height_scale", 1.0), node.attr("width_scale", 1.0)]
        scales = Tensor.known(np.array(factors, np.float32))
    mode = node.attr("mode", "nearest")
    nearest = "simple" if node.proto.op_type == "Resize" else "floor"
    options = _Options({"bilinear": "linear"}.get(mode, mode), "asymmetric", nearest)
    return _in_floats(b, node, x, _axes(b, node, x, None, scales, None), options)
