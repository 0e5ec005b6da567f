# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move elements: concat, split, slice, tile."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.builder.dims import Size, ceil_divide, is_static, maximum, minimum, same_shape
from tilewright.frontend.builder.limits import check_copies
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.runtime import (
    choose,
    optional_sizes,
    require_sizes,
    sizes,
    spread,
    wrap_negative,
)
from tilewright.frontend.onnx.registry import Builder, Node, op


def part(b: Builder, x: Tensor, axis: int, start: Size, size: Size) -> Tensor:
    """Elements start .. start + size - 1 along one axis."""
    if not 0 <= axis < x.rank:
        raise ValueError(f"a tensor of {x.rank} dimensions has no dimension {axis}")
    starts: list[Size] = [0] * x.rank
    extents = list(x.shape)
    starts[axis], extents[axis] = start, size
    return b.slice(x, starts, extents, [1] * x.rank)


@op("Concat")
def concat(b: Builder, node: Node, *xs: Tensor) -> Tensor:
    """Along `axis` (1 before opset 4)."""
    axis = node.axis(node.attr("axis", 1), xs[0].rank)
    if xs[0].rank == 0 or not _fit(xs, axis):
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in xs)
        node.wrong(f"inputs do not fit along axis {axis}: {shapes}")
    made = [x for x in xs if not x.is_known]
    if made and all(b.entries(x) for x in made):  # sizes stay sizes
        entries = [b.entries(x) for x in xs]
        if all(entries):
            return b.vector([s for some in entries for s in some or ()], xs[0].dtype)
    return b.concat(xs, axis)


def _fit(xs: Sequence[Tensor], axis: int) -> bool:
    """Whether types, ranks and the sizes known at compile time agree."""
    if len({(x.rank, x.dtype) for x in xs}) > 1:
        return False
    columns = zip(*(x.shape[:axis] + x.shape[axis + 1 :] for x in xs), strict=True)
    return all(len({n for n in column if isinstance(n, int)}) <= 1 for column in columns)


@op("Split")
def split(b: Builder, node: Node, x: Tensor, parts: Tensor | None = None) -> list[Tensor]:
    """Parts of given or equal sizes (the last may be smaller)."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    extent, count = x.shape[axis], len(node.proto.output)
    given = node.attr("split") if parts is None else sizes(b, node, parts, "split")
    if given is None:
        step = ceil_divide(extent, count)
        given = [maximum(minimum(step, extent - i * step), 0) for i in range(count)]
    if len(given) != count:
        node.wrong(f"{len(given)} sizes for {count} parts")
    given = [_declared(b, node, i, axis, n) for i, n in enumerate(given)]
    wrong = any(isinstance(n, int) and n < 0 for n in given)
    if wrong or (isinstance(extent, int) and is_static(given) and sum(given) != extent):
        node.wrong(f"split {given} does not make {count} parts of axis {axis} of {list(x.shape)}")
    b.require_same(sum(given), extent, "the sizes of the parts do not add up to the size of the input")
    results, start = [], 0
    for n in given:
        results.append(part(b, x, axis, start, n))
        start = start + n
    return results


def _declared(b: Builder, node: Node, output: int, axis: int, size: Size) -> Size:
    """A part's size: never negative, or as the model declares."""
    settled = b.settle([size], [node.declared_size(output, axis)], node)
    require_sizes(b, settled)
    return settled[0]


def _bounds(extent: int, start: int, end: int, step: int) -> tuple[int, int]:
    low, high = (-1, extent - 1) if step < 0 else (0, extent)
    first, last = (n + extent if n < 0 else n for n in (start, end))
    first, last = min(max(first, 0), high), min(max(last, low), high)
    return first, len(range(first, last, step))


def _bounds_at_run_time(b: Builder, extent: Size, start: Size, end: Size, step: Size) -> tuple[Size, Size]:
    """The first position and the number of positions."""
    if isinstance(step, int):
        back = step < 0
        low, high, stride = (-1, extent - 1, -step) if back else (0, extent, step)
    else:
        sign = b.idx(step) < b.idx(0)
        b.require(b.math.logical_not(b.math.eq(b.idx(step), b.idx(0))), "a step is 0")
        low, high, stride = choose(b, sign, -1, 0), choose(b, sign, extent - 1, extent), choose(b, sign, -step, step)
    first, last = (wrap_negative(b, n, extent) for n in (start, end))
    if isinstance(extent, int) and isinstance(step, int) and not back:
        b.symbols.limit(last, extent)  # a table that is as long as the model goes: positions, for example
    first, last = minimum(maximum(first, 0), high), minimum(maximum(last, low), high)
    if isinstance(step, int):
        span = first - last if back else last - first
    else:
        span = choose(b, sign, first - last, last - first)
    return first, maximum((span + stride - 1) // stride, 0)


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
    """NumPy's slices, except that a start before the first element is the first one for negative steps too."""
    if node.version < 10:
        first, last, along = (node.attr(name) for name in ("starts", "ends", "axes"))
    else:
        first, last = sizes(b, node, starts, "starts"), sizes(b, node, ends, "ends")
        along = optional_sizes(b, node, axes, "axes")
    stride = optional_sizes(b, node, steps, "steps") or [1] * len(first)
    if any(isinstance(n, int) and n == 0 for n in stride):
        node.wrong("a step is 0")
    ones, zeros = [1] * x.rank, [0] * x.rank
    begins, limits, strides = spread(b, node, along, x.rank, (first, zeros), (last, x.shape), (stride, ones))
    origin, extents = [], []
    for extent, start, end, step in zip(x.shape, begins, limits, strides, strict=True):
        static = is_static((extent, start, end, step))
        bounds = _bounds(extent, start, end, step) if static else _bounds_at_run_time(b, extent, start, end, step)
        origin.append(bounds[0])
        extents.append(bounds[1])
    return _sliced(b, x, origin, b.settle(extents, node.declared(), node), strides)


def _sliced(b: Builder, x: Tensor, origin: list[Size], extents: Sequence[Size], strides: list[Size]) -> Tensor:
    """Slices of vectors made from scalars stay such vectors: shape arithmetic."""
    entries = None if x.is_known else b.entries(x)
    if entries and x.rank == 1 and is_static((*origin, *extents, *strides)) and extents[0] > 0:
        check_copies(int(extents[0]), "elements of a vector of sizes")
        places = [origin[0] + i * strides[0] for i in range(int(extents[0]))]
        return b.vector([entries[i] for i in places], x.dtype)
    return b.slice(x, origin, extents, strides)


@op("Tile", since=6)
def tile(b: Builder, node: Node, x: Tensor, repeats: Tensor) -> Tensor:
    """Repeat along each dimension."""
    times = sizes(b, node, repeats, "repeats")
    if len(times) != x.rank:
        node.wrong(f"repeats has {len(times)} entries for {x.rank} dimensions")
    return _tiled(b, node, x, times)


@op("Tile")
def tile_axis(b: Builder, node: Node, x: Tensor, tiles: Tensor, axis: Tensor) -> Tensor:
    """Repeat along one dimension (before opset 6)."""
    (times,) = spread(b, node, [b.index_of(axis)], x.rank, ([b.index_of(tiles)], [1] * x.rank))
    return _tiled(b, node, x, times)


def _tiled(b: Builder, node: Node, x: Tensor, times: Sequence[Size]) -> Tensor:
    """Unsqueeze, broadcast, reshape where the sizes are known."""
    shape = [t * n for t, n in zip(times, x.shape, strict=True)]
    if not is_static((*times, *x.shape)):
        return _tile_at_run_time(b, x, b.settle(shape, node.declared(), node))
    spread_out = b.broadcast(
        x.unsqueeze(range(0, 2 * x.rank, 2)), [v for pair in zip(times, x.shape, strict=True) for v in pair]
    )
    return b.reshape(spread_out, shape)


def _tile_at_run_time(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    if same_shape(shape, x.shape):
        return x
    require_sizes(b, shape)
    x, periods = b.stored(x), [maximum(n, 1) for n in x.shape]

    def body(m, *place):
        return b.read(x, [m.rem(i, b.idx(n)) for i, n in zip(place, periods, strict=True)])

    return b.produce(shape, x.dtype, body)
