# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions: channels last, filters as [window..., inputs, outputs], BatchNormalization folded into the weights."""

from __future__ import annotations

from ..emit import Space
from ..registry import Builder, Node, op
from ..tensor import Tensor
from .normalization import inference_scale
from .window import Window, window


def per_channel(v: Tensor, rank: int) -> Tensor:
    """A vector of channels, shaped to broadcast with [n, c, spatial...]."""
    return v.unsqueeze(range(1, rank - 1))


def _fold_norm(b: Builder, node: Node, w: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Scale the filters and move the bias by a BatchNormalization that follows."""
    following = node.fuse_next("BatchNormalization")
    if following is None:
        return w, bias
    norm, parameters = following
    factor, shift = inference_scale(b, norm, *parameters)
    order = [*range(2, w.rank), 1, 0]
    scaled = b.elementwise(lambda m, w, f: w * f, w, factor.unsqueeze(range(1, w.rank)), order=order)
    if bias is None:
        return scaled, shift
    return scaled, b.elementwise(lambda m, v, f, s: v * f + s, bias, factor, shift)


def convolve(b: Builder, x: Tensor, w: Tensor, win: Window, groups: int) -> Tensor:
    """[n, c, spatial...] with [o, c / groups, window...] to [n, o, outputs...], zero padded."""
    rank, outputs, inputs = x.rank - 2, w.shape[0], w.shape[1]
    x = win.padded(b, x, 0.0, [0, *range(2, x.rank), 1])
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
    y = b.contract(space, left, right, [n, group, channel, *spatial], [n, *spatial, group, channel])
    return b.reshape(y, (x.shape[0], outputs, *win.out))


@op("Conv")
def conv(b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """1-, 2- or 3-dimensional, grouped, strided, dilated."""
    groups = node.attr("group", 1)
    if x.rank < 3 or w.rank != x.rank:
        node.wrong(f"input {list(x.shape)} and filters {list(w.shape)} need the same number of dimensions, at least 3")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        node.wrong(f"filters {list(w.shape)} in {groups} groups do not fit the input {list(x.shape)}")
    w, bias = _fold_norm(b, node, w, bias)
    y = convolve(b, x, w, window(node, x, w.shape[2:]), groups)
    return y if bias is None else b.elementwise(lambda m, y, v: y + v, y, per_channel(bias, y.rank))
