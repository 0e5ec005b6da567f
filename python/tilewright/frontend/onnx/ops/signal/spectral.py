# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DFT and STFT."""

from __future__ import annotations

import functools

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static, maximum
from tilewright.frontend.builder.emit import At, Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.signal.fourier import Transform, transform
from tilewright.frontend.onnx.registry import Builder, Node, op


def _length(node: Node, x: Tensor, axis: int) -> Size:
    """Of the signal along an axis, where the node does not say."""
    size = x.shape[axis]
    return 2 * (size - 1) if node.attr("inverse", 0) and node.attr("onesided", 0) else size


def _along(b: Builder, node: Node, x: Tensor, axis: int, length: Size) -> Tensor:
    """The transform along one axis, in the input's type."""
    if isinstance(length, int) and length < 1:
        node.wrong(f"a transform of length {length} along axis {axis} of {list(x.shape)}")
    kind = Transform(length, bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0)))
    perm = [*(d for d in range(x.rank) if d not in (axis, x.rank - 1)), axis, x.rank - 1]
    y = transform(b, x.transpose(perm), kind)
    return b.cast(y, x.dtype).transpose([perm.index(d) for d in range(x.rank)])


def _signal_axis(node: Node, value: int, rank: int) -> int:
    axis = node.axis(value, rank)
    if axis == rank - 1:
        node.wrong("the last dimension holds the parts of complex numbers; it is no axis of the signal")
    return axis


@op("DFT", since=17)
def dft_of_attribute(b: Builder, node: Node, x: Tensor, length: Tensor | None = None) -> Tensor:
    """Before opset 20 the axis is an attribute."""
    axis = _signal_axis(node, node.attr("axis", 1), x.rank)
    return _along(b, node, x, axis, _length(node, x, axis) if length is None else b.index_of(length))


@op("DFT", since=20)
def dft(b: Builder, node: Node, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None) -> Tensor:
    """Forward and inverse, of real and complex input; an axis known at run time only chooses among all."""
    size = None if length is None else b.index_of(length)
    lengths = [_length(node, x, d) if size is None else size for d in range(x.rank - 1)]
    if axis is None or axis.is_known:
        chosen = _signal_axis(node, -2 if axis is None else node.ints(axis, "the axis")[0], x.rank)
        return _along(b, node, x, chosen, lengths[chosen])
    m, given = b.math, b.item(axis)
    positive = m.where(given < 0, given + x.rank, given)
    candidates = [d for d, n in enumerate(lengths) if not isinstance(n, int) or n > 0]
    if not candidates:
        node.wrong(f"no axis of {list(x.shape)} can be transformed")
    matches = [m.eq(positive, d) for d in candidates]
    b.require(functools.reduce(m.logical_or, matches), f"the axis is out of range for {x.rank} dimensions")

    def choose(i: int) -> list[Tensor]:
        axis = candidates[i]
        if i == len(candidates) - 1:
            return [_along(b, node, x, axis, lengths[axis])]
        return b.if_(matches[i], lambda: [_along(b, node, x, axis, lengths[axis])], lambda: choose(i + 1))

    return choose(0)[0]


@op("STFT", since=17)
def stft(
    b: Builder, node: Node, x: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None
) -> Tensor:
    """Transforms of windows at regular steps: [batch, frames, frequencies, 2]."""
    if x.rank == 2:
        x = x.unsqueeze([2])
    if x.rank != 3:
        node.wrong(f"the signal has {x.rank} dimensions; [batch, samples, 1 or 2] is expected")
    if window is not None and window.rank != 1:
        node.wrong(f"the window has {window.rank} dimensions instead of 1")
    size: Size = x.shape[1]
    if window is not None:
        size = window.shape[0]
    elif length is not None:
        size = b.index_of(length)
    if isinstance(size, int) and size < 1:
        node.wrong(f"a frame has {size} samples")
    stride = b.index_of(step)
    if isinstance(stride, int) and stride < 1:
        node.wrong(f"frame_step is {stride}")
    stride = stride if isinstance(stride, int) else maximum(stride, 1)
    count = maximum((x.shape[1] - size) // stride + 1, 0)
    kind = Transform(size, onesided=bool(node.attr("onesided", 1)))
    sizes = (x.shape[0], count, kind.outputs, 2)
    count = b.settle(sizes, node.declared(0), node)[1]
    frames = _frames(b, x, count, size, stride)
    if window is not None:
        frames = b.elementwise(lambda m, x, w: x * w, frames, window.unsqueeze([1]))
    return b.cast(transform(b, frames, kind), x.dtype)


def _frames(b: Builder, x: Tensor, count: Size, size: Size, step: Size) -> Tensor:
    """[batch, frames, samples, parts]."""
    shape = (x.shape[0], count, size, x.shape[2])
    if is_static(shape) and isinstance(step, int):
        at = [0, At(((1, step), (2, 1))), 3]
        return b.generic(Space(shape), [(x, at)], range(4), x.dtype, lambda m, x, _: x)

    def body(m, batch, frame, sample, which):
        return b.read(x, [batch, frame * b.idx(step) + sample, which])

    x = b.stored(x)
    return b.produce(shape, np.dtype(x.dtype), body)
