# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions: channels last, filters as [window..., inputs, outputs], BatchNormalization folded into the weights.

Depthwise convolutions leave images as they come: planes of one channel each or channels last.

A transposed convolution of stride s is a convolution that makes the s neighbours of each place as channels, which are
then put side by side: y[q * s + r] = sum over j of x[q - j] * w[j * s + r].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.frontend.builder.dims import is_static
from tilewright.frontend.builder.dtypes import is_narrow
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widen, widened
from tilewright.frontend.onnx.ops.common.window import Window, window
from tilewright.frontend.onnx.ops.math.activations import swish_of
from tilewright.frontend.onnx.ops.nn.normalization import batch_norm, inference_scale, is_training
from tilewright.frontend.onnx.registry import Builder, Node, op

#: Elements of a line from which on vectors run along lines rather than along channels, where both would do.
_LONG_LINE = 32


def per_channel(v: Tensor, rank: int) -> Tensor:
    """A vector of channels, shaped to broadcast with [n, c, spatial...]."""
    return v.unsqueeze(range(1, rank - 1))


def _fold_norm(
    b: Builder, norm: Node, parameters: Sequence[Tensor], w: Tensor, bias: Tensor | None, narrow: bool
) -> tuple[Tensor, Tensor | None]:
    """Scale the filters and move the bias by a BatchNormalization that follows.

    Filters that are `narrow` floats, widened, are scaled by an operation, however few they are: machines that multiply
    narrow floats scale the sums instead.
    """
    factor, shift = inference_scale(b, norm, *(b.cast(v, w.dtype) for v in parameters))
    order = [*range(2, w.rank), 1, 0]
    into = b.empty([w.shape[d] for d in order if w.shape[d] != 1] or [1], w.dtype) if narrow else None
    scaled = b.elementwise(lambda m, w, f: w * f, w, factor.unsqueeze(range(1, w.rank)), order=order, into=into)
    if bias is None:
        return scaled, shift
    return scaled, b.elementwise(lambda m, v, f, s: v * f + s, bias, factor, shift)


def convolve(b: Builder, x: Tensor, w: Tensor, win: Window, groups: int) -> Tensor:
    """[n, c, spatial...] with [o, c / groups, window...] to [n, o, outputs...], zero padded."""
    rank, outputs, inputs = x.rank - 2, w.shape[0], w.shape[1]
    planes = outputs == groups == x.shape[1] and _in_planes(x)
    x = win.padded(b, x, 0.0, range(x.rank) if planes else [0, *range(2, x.rank), 1])
    w = b.ordered(w, [*range(2, w.rank), 1, 0])
    x = b.reshape(x, (x.shape[0], groups, inputs, *x.shape[2:]))
    w = b.reshape(w, (groups, outputs // groups, *w.shape[1:]))
    n, group, channel = 0, rank + 1, rank + 2
    spatial = list(range(1, rank + 1))
    taps = list(range(rank + 3, 2 * rank + 3))
    depth = 2 * rank + 3
    sizes = [x.shape[0], *win.out, groups, outputs // groups, *win.kernel, inputs]
    space = Space(sizes, frozenset([*taps, depth]))
    left = (x, [n, group, depth, *win.reads(spatial, taps)])
    right = (w, [group, channel, depth, *taps])
    order = [n, group, channel, *spatial] if planes else [n, *spatial, group, channel]
    y = b.contract(space, left, right, [n, group, channel, *spatial], order)
    return b.reshape(y, (x.shape[0], outputs, *win.out))


def _in_planes(x: Tensor) -> bool:
    """Whether each channel of an image is stored by itself, in lines that are long enough for vectors."""
    order = x.stored_order()
    return order == tuple(sorted(order)) and len(order) > 1 and is_static(x.shape) and x.shape[-1] >= _LONG_LINE


def _with_bias(b: Builder, y: Tensor, bias: Tensor | None) -> Tensor:
    return y if bias is None else b.elementwise(lambda m, y, v: y + v, y, per_channel(bias, y.rank))


def _check_ranks(node: Node, x: Tensor, w: Tensor) -> None:
    if x.rank < 3 or w.rank != x.rank:
        node.wrong(f"input {list(x.shape)} and filters {list(w.shape)} need the same number of dimensions, at least 3")


@op("Conv")
def conv(b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """Any number of spatial dimensions, grouped, strided, dilated; narrow floats are computed in f32, rounded once."""
    dtype = x.dtype
    if is_narrow(dtype):
        x, w, bias = widen(b, x), widen(b, w), None if bias is None else widen(b, bias)
    return b.cast(_conv(b, node, x, w, bias, is_narrow(dtype)), dtype)


def _conv(b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None, narrow: bool) -> Tensor:
    groups = node.attr("group", 1)
    _check_ranks(node, x, w)
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        node.wrong(f"filters {list(w.shape)} in {groups} groups do not fit the input {list(x.shape)}")
    following = node.fuse_next("BatchNormalization")
    folded = following is not None and not is_training(following[0])
    if following is not None and folded:
        w, bias = _fold_norm(b, *following, w, bias, narrow)
    y = _with_bias(b, convolve(b, x, w, window(node, x, w.shape[2:]), groups), bias)
    return batch_norm(b, following[0], y, *following[1])[0] if following is not None and not folded else y


@op("CausalConvWithState", since=27)
@widened
def causal_conv(
    b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None, past: Tensor | None = None
) -> list[Tensor]:
    """Each channel with its own filter over itself and what came before; the end of the sequence is handed on."""
    channels, size = x.shape[1], w.shape[-1]
    if x.rank != 3 or tuple(w.shape) != (channels, 1, size):
        node.wrong(f"input {list(x.shape)} needs filters [{channels}, 1, k], not {list(w.shape)}")
    activation = node.attr("activation", "none").lower()
    if activation not in ("none", "silu", "swish"):
        node.wrong(f"activation {activation} is none of none, silu and swish")
    whole = b.pad(x, [0, 0, size - 1], [0, 0, 0], 0.0) if past is None else b.concat([past, x], 2)
    one = [1]
    win = Window([size], one, one, [0], [0], [x.shape[2]])
    y = _with_bias(b, convolve(b, whole, w, win, channels), bias)
    if activation != "none":
        y = b.elementwise(lambda m, y: swish_of(m, y, 1.0), y)
    present = b.slice(whole, [0, 0, x.shape[2]], [*x.shape[:2], size - 1], [1, 1, 1])
    return [y, present]


def _transposed_place(node: Node, natural: Sequence[int], same: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Where the results begin in the full transposed convolution, and their sizes.

    Args:
        node: the ConvTranspose.
        natural: sizes without any padding, output_padding included.
        same: sizes under auto_pad SAME_*.
    """
    rank, mode, sizes = len(natural), node.attr("auto_pad", "NOTSET"), node.attr("output_shape")
    if sizes is None and mode.startswith("SAME"):
        sizes = same
    if sizes is None:
        pads = (node.attr("pads") if mode == "NOTSET" else None) or [0] * (2 * rank)
        return pads[:rank], [n - a - c for n, a, c in zip(natural, pads[:rank], pads[rank:], strict=True)]
    sizes = sizes[-rank:]
    total = [n - size for n, size in zip(natural, sizes, strict=True)]
    if not mode.startswith("SAME"):
        total = [max(0, t) for t in total]
    return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total], sizes


def _spread(b: Builder, w: Tensor, axis: int, dilation: int, multiple: int) -> Tensor:
    """`w` with zeros between the taps along an axis, and behind them up to a multiple."""
    taps = w.shape[axis]
    span = (taps - 1) * dilation + 1
    if dilation > 1 and taps > 1:
        pieces = w.unsqueeze([axis + 1])
        pieces = b.pad(pieces, [0] * pieces.rank, [dilation - 1 if d == axis + 1 else 0 for d in range(pieces.rank)], 0)
        w = b.reshape(pieces, [taps * dilation if d == axis else n for d, n in enumerate(w.shape)])
        w = b.slice(w, [0] * w.rank, [span if d == axis else n for d, n in enumerate(w.shape)], [1] * w.rank)
    return b.pad(w, [0] * w.rank, [-span % multiple if d == axis else 0 for d in range(w.rank)], 0)


def _phase_filters(b: Builder, w: Tensor, groups: int, strides: Sequence[int], dilations: Sequence[int]) -> Tensor:
    """[c, o / groups, window...] as filters of a convolution [groups * strides... * o / groups, c / groups, taps...].

    The channels of one phase lie side by side, as they do where channels are the last dimension of the result.
    """
    rank = len(strides)
    w = b.reshape(w, (groups, w.shape[0] // groups, *w.shape[1:]))
    for i, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        w = _spread(b, w, 3 + i, dilation if stride > 1 else 1, stride)
    taps = [n // s for n, s in zip(w.shape[3:], strides, strict=True)]
    split = [n for pair in zip(taps, strides, strict=True) for n in pair]
    w = b.reshape(w, (*w.shape[:3], *split))
    w = w.transpose([0, *range(4, 4 + 2 * rank, 2), 2, 1, *range(3, 3 + 2 * rank, 2)])
    first = 3 + rank  # the window is walked backwards
    starts = [0] * first + [n - 1 for n in taps]
    w = b.slice(w, starts, w.shape, [1] * first + [-1] * rank)
    outputs = prod(w.shape[: 2 + rank])
    return b.reshape(w, (outputs, w.shape[2 + rank], *taps))


@op("ConvTranspose")
@widened
def conv_transpose(b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """The gradient of a convolution: any number of spatial dimensions, grouped, strided, dilated."""
    groups, rank = node.attr("group", 1), x.rank - 2
    _check_ranks(node, x, w)
    if x.shape[1] != w.shape[0] or w.shape[0] % groups:
        node.wrong(f"filters {list(w.shape)} in {groups} groups do not fit the input {list(x.shape)}")
    strides = node.attr("strides") or [1] * rank
    dilations = node.attr("dilations") or [1] * rank
    extra = node.attr("output_padding") or [0] * rank
    axes = list(zip(x.shape[2:], w.shape[2:], strides, dilations, extra, strict=True))
    natural = [s * (n - 1) + (k - 1) * d + 1 + e for n, k, s, d, e in axes]
    low, out = _transposed_place(node, natural, [n * s for n, _, s, _, _ in axes])
    if any(isinstance(n, int) and n < 0 for n in out):
        node.wrong(f"its padding leaves a result of {list(out)}; without padding it is {natural}")
    filters = _phase_filters(b, w, groups, strides, dilations)
    taps, steps = filters.shape[2:], [1 if s > 1 else d for s, d in zip(strides, dilations, strict=True)]
    reach = [(j - 1) * d for j, d in zip(taps, steps, strict=True)]
    places = [-(-(a + n) // s) for a, n, s in zip(low, out, strides, strict=True)]
    win = Window(taps, [1] * rank, steps, reach, [0] * rank, places)
    y = convolve(b, x, filters, win, groups)
    outputs = w.shape[1] * groups
    y = b.reshape(y, (x.shape[0], groups, *strides, w.shape[1], *places))
    y = y.transpose([0, 1, 2 + rank, *(d for i in range(rank) for d in (3 + rank + i, 2 + i))])
    y = b.reshape(y, (x.shape[0], outputs, *(q * s for q, s in zip(places, strides, strict=True))))
    before = [max(0, -a) for a in low]
    inner = [n - missing for n, missing in zip(out, before, strict=True)]
    y = b.slice(y, [0, 0, *(max(0, a) for a in low)], [x.shape[0], outputs, *inner], [1] * y.rank)
    y = b.pad(y, [0, 0, *before], [0] * y.rank, 0.0)
    return _with_bias(b, y, bias)
