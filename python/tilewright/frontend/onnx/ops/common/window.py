# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that slide over spatial dimensions: what convolutions and poolings share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import Size, ceil_divide, maximum, minimum
from tilewright.frontend.builder.emit import At
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node


@dataclass(frozen=True)
class Window:
    """Geometry per spatial dimension: `low` and `high` are the padding that the node names, `out` the output sizes."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    low: Sequence[Size]
    high: Sequence[Size]
    out: Sequence[Size]

    def padded(self, b: Builder, x: Tensor, fill: float, order: Sequence[int]) -> Tensor:
        """[n, c, spatial...] padded as far as windows reach, stored in this order of its dimensions."""
        high, sizes = [0, 0], list(x.shape)
        for i, (out, stride, kernel, dilation) in enumerate(
            zip(self.out, self.strides, self.kernel, self.dilations, strict=True)
        ):
            missing = (out - 1) * stride + (kernel - 1) * dilation + 1 - self.low[i] - x.shape[i + 2]
            high.append(maximum(0, missing))
            if out == 1 or kernel == stride == 1:  # read by one loop or none: the extents must agree
                sizes[i + 2] += minimum(0, missing)
        x = b.slice(x, [0] * x.rank, sizes, [1] * x.rank)
        return b.pad(x, [0, 0, *self.low], high, fill, order)

    def reads(self, outputs: Sequence[int], taps: Sequence[int]) -> list[At]:
        """Index expressions into the padded input: output loop * stride + window loop * dilation."""
        steps = zip(outputs, self.strides, taps, self.dilations, strict=True)
        return [At(((o, s), (t, d))) for o, s, t, d in steps]


def loop_extents(b: Builder, loops: Sequence[tuple[int, int]]) -> list[tuple[Tensor, list[int]]]:
    """The operand, never read, whose shape tells linalg the extents of window loops: (loop, extent) each."""
    kept = [(loop, n) for loop, n in loops if n != 1]
    if not kept:
        return []
    shape, dtype = tuple(n for _, n in kept), np.dtype(np.float32)
    return [(Tensor(dtype, shape, b.empty(shape, dtype), tuple(range(len(shape)))), [loop for loop, _ in kept])]


def _automatic(mode: str, extents: Sequence[Size], spans: Sequence[int], strides: Sequence[int]):
    totals = [
        maximum(0, (ceil_divide(n, stride) - 1) * stride + span - n)
        for n, span, stride in zip(extents, spans, strides, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def window(node: Node, x: Tensor, kernel: Sequence[int]) -> Window:
    """The geometry that a node's attributes describe for input [n, c, spatial...]."""
    extents, rank = x.shape[2:], x.rank - 2
    if len(kernel) != rank:
        node.wrong(f"kernel_shape {list(kernel)} does not fit the input {list(x.shape)}")
    strides = node.attr("strides") or [1] * rank
    dilations = node.attr("dilations") or [1] * rank
    if min(*kernel, *strides, *dilations, 1) < 1:
        node.wrong(f"kernel {list(kernel)}, strides {strides} and dilations {dilations} must be positive")
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode = node.attr("auto_pad", "NOTSET")
    if mode.startswith("SAME"):
        low, high = _automatic(mode, extents, spans, strides)
    else:
        pads = (node.attr("pads") if mode == "NOTSET" else None) or [0] * (2 * rank)
        low, high = pads[:rank], pads[rank:]
    out = []
    for n, span, stride, a, c in zip(extents, spans, strides, low, high, strict=True):
        size = _output(n + a + c - span, n + a, stride, bool(node.attr("ceil_mode", 0)))
        if isinstance(size, int) and size < 1:
            node.wrong(f"the window is larger than the padded input {list(x.shape)}")
        out.append(size)
    return Window(kernel, strides, dilations, low, high, out)


def _output(room: Size, inside: Size, stride: int, ceil: bool) -> Size:
    if not ceil:
        return room // stride + 1
    return minimum(ceil_divide(room, stride) + 1, ceil_divide(inside, stride))  # windows start on the input
