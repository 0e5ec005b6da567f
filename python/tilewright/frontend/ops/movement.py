# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move elements: concat, split, slice, pad, tile."""

from __future__ import annotations

import numpy as np

from ..registry import Builder, Node, op
from ..tensor import Tensor


def part(b: Builder, x: Tensor, axis: int, start: int, size: int) -> Tensor:
    """Elements start .. start + size - 1 along one axis."""
    starts, sizes = [0] * x.rank, list(x.shape)
    starts[axis], sizes[axis] = start, size
    return b.slice(x, starts, sizes, [1] * x.rank)


@op("Concat")
def concat(b: Builder, node: Node, *xs: Tensor) -> Tensor:
    """Along `axis` (1 before opset 4)."""
    axis = node.axis(node.attr("axis", 1), xs[0].rank)
    outlines = {x.shape[:axis] + x.shape[axis + 1 :] for x in xs}
    if len(outlines) > 1 or len({x.dtype for x in xs}) > 1:
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in xs)
        node.wrong(f"inputs do not fit along axis {axis}: {shapes}")
    return b.concat(xs, axis)


@op("Split")
def split(b: Builder, node: Node, x: Tensor, sizes: Tensor | None = None) -> list[Tensor]:
    """Parts of given or equal sizes (the last may be smaller)."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    given = node.attr("split") if sizes is None else node.ints(sizes, "split")
    count = len(node.proto.output)
    if given is None:
        step = -(-x.shape[axis] // count)
        given = [max(0, min(step, x.shape[axis] - i * step)) for i in range(count)]
    if sum(given) != x.shape[axis] or len(given) != count:
        node.wrong(f"split {given} does not make {count} parts of axis {axis} of {list(x.shape)}")
    starts = np.cumsum([0, *given[:-1]])
    return [part(b, x, axis, int(start), n) for start, n in zip(starts, given, strict=True)]


def _bounds(extent: int, start: int, end: int, step: int) -> tuple[int, int]:
    first, last, _ = slice(start, None if step < 0 and end < -extent else end, step).indices(extent)
    return first, len(range(first, last, step))


@op("Slice")
def slice_(
    b: Builder,
    node: Node,
    x: Tensor,
    starts: Tensor | None = None,
    ends: Tensor | None = None,
    axes: Tensor | None = None,
    steps: Tensor | None = None,
) -> Tensor:
    """NumPy's slices with known bounds."""
    if node.version < 10:
        first, last, along = (node.attr(name) for name in ("starts", "ends", "axes"))
    else:
        first, last = node.ints(starts, "starts"), node.ints(ends, "ends")
        along = node.optional_ints(axes, "axes")
    along = list(range(len(first))) if along is None else [node.axis(a, x.rank) for a in along]
    stride = node.optional_ints(steps, "steps") or [1] * len(along)
    origin, sizes, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    for axis, start, end, step in zip(along, first, last, stride, strict=True):
        if step == 0:
            node.wrong("a step is 0")
        origin[axis], sizes[axis] = _bounds(x.shape[axis], start, end, step)
        strides[axis] = step
    return b.slice(x, origin, sizes, strides)


def _pads(node: Node, x: Tensor, pads: Tensor | None, axes: Tensor | None) -> tuple[list[int], list[int]]:
    if node.version < 11:
        flat = list(node.attr("pads") or node.attr("paddings"))
    else:
        flat = node.ints(pads, "pads")
    along = list(range(x.rank)) if axes is None else [node.axis(a, x.rank) for a in node.ints(axes, "axes")]
    if len(flat) != 2 * len(along):
        node.wrong(f"pads has {len(flat)} entries for {len(along)} axes")
    low, high = [0] * x.rank, [0] * x.rank
    for i, axis in enumerate(along):
        low[axis], high[axis] = flat[i], flat[i + len(along)]
    return low, high


def _crop(b: Builder, x: Tensor, low: list[int], high: list[int]) -> Tensor:
    starts = [max(0, -n) for n in low]
    sizes = [n + min(0, a) + min(0, c) for n, a, c in zip(x.shape, low, high, strict=True)]
    return b.slice(x, starts, sizes, [1] * x.rank)


def _mirrored(node: Node, mode: str, extent: int, low: int, high: int) -> np.ndarray:
    if mode not in ("reflect", "edge", "wrap"):
        node.wrong(f"mode {mode} is not one of constant, reflect, edge, wrap")
    return np.pad(np.arange(extent, dtype=np.int64), (low, high), mode=mode)  # pyright: ignore[reportCallIssue]


@op("Pad")
def pad(
    b: Builder,
    node: Node,
    x: Tensor,
    pads: Tensor | None = None,
    value: Tensor | None = None,
    axes: Tensor | None = None,
) -> Tensor:
    """Constant, reflect, edge or wrap; negative amounts crop."""
    low, high = _pads(node, x, pads, axes)
    x = _crop(b, x, low, high)
    low, high = [max(0, n) for n in low], [max(0, n) for n in high]
    mode = node.attr("mode", "constant")
    if mode == "constant":
        given = node.attr("value", 0.0) if value is None else node.array(value, "the constant").reshape(-1)[0].item()
        return b.pad(x, low, high, given)
    for axis in range(x.rank):
        if low[axis] or high[axis]:
            positions = _mirrored(node, mode, x.shape[axis], low[axis], high[axis])
            x = b.gather(x, Tensor.known(positions), axis)
    return x


@op("Tile", since=6)
def tile(b: Builder, node: Node, x: Tensor, repeats: Tensor) -> Tensor:
    """Repeat along each dimension: unsqueeze, broadcast, reshape."""
    times = node.ints(repeats, "repeats")
    if len(times) != x.rank:
        node.wrong(f"repeats has {len(times)} entries for {x.rank} dimensions")
    spread = b.broadcast(
        x.unsqueeze(range(0, 2 * x.rank, 2)), [v for pair in zip(times, x.shape, strict=True) for v in pair]
    )
    return b.reshape(spread, [t * n for t, n in zip(times, x.shape, strict=True)])
