# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that change shapes only: reshape, flatten, squeeze, transpose, expand; those that tell a shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.core.errors import SIZES_OF_THEIR_OWN
from tilewright.frontend.builder.dims import Dim, Size, divides, is_static
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.runtime import (
    Truth,
    axis_masks,
    choose,
    is_equal,
    require_sizes,
    sizes,
    with_ones,
    without,
)
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("Reshape")
def reshape(b: Builder, node: Node, x: Tensor, shape: Tensor | None = None) -> Tensor:
    """Row-major; 0 copies a dimension (unless allowzero), -1 is what is left."""
    wanted = node.attr("shape") if shape is None else sizes(b, node, shape, "the shape")
    if wanted is None:
        node.wrong("there is no shape, neither as an input nor as an attribute")
    copies = not node.attr("allowzero", 0)
    if not is_static(wanted):
        return _reshape_at_run_time(b, node, x, wanted, copies)
    if copies:
        if any(n == 0 and d >= x.rank for d, n in enumerate(wanted)):
            node.wrong(f"shape {wanted} copies a dimension that the input {list(x.shape)} does not have")
        wanted = [x.shape[d] if n == 0 else n for d, n in enumerate(wanted)]
    rest = prod(n for n in wanted if n != -1)
    if isinstance(rest, int) and rest == 0 and any(isinstance(n, int) and n == -1 for n in wanted):
        node.wrong(f"shape {wanted} of {list(x.shape)}: beside a size of 0, -1 may be any size; state it")
    target = [x.size // rest if n == -1 else n for n in wanted]
    if sum(isinstance(n, int) and n == -1 for n in wanted) > 1 or _differ(prod(target), x.size):
        node.wrong(f"cannot reshape {list(x.shape)} ({x.size} elements) to {wanted}")
    return b.reshape(x, b.settle(target, node.declared(), node))


def _differ(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _reshape_at_run_time(b: Builder, node: Node, x: Tensor, wanted: list[Size], copies: bool) -> Tensor:
    """Sizes from the model's inputs, among them 0 and -1."""
    if copies:
        padded = [*x.shape, *[0] * len(wanted)]
        _check_zeros(b, wanted, x)
        wanted = [choose(b, _is_copied(b, n, x), padded[d], n) for d, n in enumerate(wanted)]
    unknown = [is_equal(b, n, -1) for n in wanted]
    rest = x.size // prod(choose(b, skip, 1, n) for skip, n in zip(unknown, wanted, strict=True))
    target = [choose(b, skip, rest, n) for skip, n in zip(unknown, wanted, strict=True)]
    target = b.settle(target, node.declared(), node)
    require_sizes(b, target)
    return b.reshape(x, target)


def _is_copied(b: Builder, n: Size, x: Tensor) -> Truth:
    """Whether an entry is 0, which copies a dimension.

    One that is a factor of the input's elements and turns out to be 0 means no elements, and stays: the sizes of all
    other tensors then follow from it, as they do where there are some.
    """
    return False if _stays(n, x) else is_equal(b, n, 0)


def _stays(n: Size, x: Tensor) -> bool:
    return isinstance(n, Dim) and divides(n, x.size)


def _check_zeros(b: Builder, wanted: Sequence[Size], x: Tensor) -> None:
    """A 0 that stays where ONNX would copy another size stops the run: beside a -1 both are shapes of no elements."""
    if not any(is_equal(b, n, -1) is not False for n in wanted):
        return
    for d, n in enumerate(wanted):
        old = x.shape[d] if d < x.rank else 1
        if _stays(n, x) and is_equal(b, n, 0) is not False and not divides(n, old):
            m = b.math
            kept = m.logical_or(b.idx(n) > b.idx(0), m.eq(b.idx(old), b.idx(0)))
            b.require(kept, f"entry {d} of the shape is 0, which copies the input's size {SIZES_OF_THEIR_OWN}")


@op("Flatten")
def flatten(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Two dimensions: before `axis` and from it on."""
    axis = node.attr("axis", 1)
    axis = axis if axis == x.rank else node.axis(axis, x.rank)
    return b.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@op("Squeeze")
def squeeze(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Drop dimensions of size 1 (all by default)."""
    given = node.attr("axes") if axes is None else sizes(b, node, axes, "axes")
    if given is None:
        return _squeeze_all(b, node, x)
    if not is_static(given):
        return _drop(b, node, x, axis_masks(b, given, x.rank), x.rank - len(given))
    chosen = node.axes(given, x.rank)
    message = f"axes {given} of {list(x.shape)} are not all of size 1"
    shape = [n if d not in chosen or isinstance(n, int) else b.require_same(n, 1, message) for d, n in _axes(x)]
    if any(shape[d] != 1 for d in chosen):
        node.wrong(message)
    return (x if x.is_static else b.resize(x, shape)).squeeze(chosen)


def _axes(x: Tensor) -> list[tuple[int, Size]]:
    return list(enumerate(x.shape))


def _squeeze_all(b: Builder, node: Node, x: Tensor) -> Tensor:
    chosen = [d for d, n in _axes(x) if n == 1]
    rank = node.declared_rank()
    if x.is_static or rank == x.rank - len(chosen):
        return x.squeeze(chosen)
    if rank is None:
        for n in (n for n in x.shape if isinstance(n, Dim)):
            one = b.math.eq(b.idx(n), b.idx(1))
            b.require(b.math.logical_not(one), "a size that turns out to be 1 changes the result's rank; name the axes")
        return x.squeeze(chosen)
    return _drop(b, node, x, [is_equal(b, n, 1) for n in x.shape], rank)


def _drop(b: Builder, node: Node, x: Tensor, dropped: Sequence, rank: int) -> Tensor:
    return b.reshape(x, b.settle(without(b, x.shape, dropped, rank), node.declared(), node))


@op("Unsqueeze")
def unsqueeze(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Insert dimensions of size 1."""
    given = node.attr("axes") if axes is None else sizes(b, node, axes, "axes")
    rank = x.rank + len(given)
    if is_static(given):
        if len(node.axes(given, rank)) < len(given):
            node.wrong(f"axes {list(given)} name a dimension twice")
        return x.unsqueeze(node.axes(given, rank))
    shape = with_ones(b, x.shape, axis_masks(b, given, rank))
    return b.reshape(x, b.settle(shape, node.declared(), node))


@op("Transpose")
def transpose(b: Builder, node: Node, x: Tensor) -> Tensor:
    """A view: consumers read through their indexing maps."""
    perm = list(node.attr("perm", range(x.rank - 1, -1, -1)))
    if sorted(perm) != list(range(x.rank)):
        node.wrong(f"perm {perm} is no permutation of {x.rank} dimensions")
    return x.transpose(perm)


@op("Expand", since=8)
def expand(b: Builder, node: Node, x: Tensor, shape: Tensor) -> Tensor:
    """Broadcast with a shape."""
    wanted = b.settle(b.common_shape(x.shape, sizes(b, node, shape, "the shape")), node.declared(), node)
    require_sizes(b, wanted)
    return b.broadcast(x, wanted)


@op("Shape")
def shape(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The shape, or a part of it: known where it is static."""
    return b.shape_tensor(x.shape[node.attr("start", 0) : node.attr("end", x.rank)])


@op("Size")
def size(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Number of elements."""
    return b.size_tensor(x.size)


def _blocks(node: Node, x: Tensor) -> int:
    if x.rank != 4:
        node.wrong(f"the input has {x.rank} dimensions; batch, channels, height and width are needed")
    size = node.attr("blocksize")
    return size if size > 0 else node.wrong(f"blocks of {size} pixels")


@op("SpaceToDepth")
def space_to_depth(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Blocks of pixels to channels; mode DCR (places within blocks first) or CRD."""
    s = _blocks(node, x)
    n, c, h, w = x.shape
    split = b.reshape(x, (n, c, h // s, s, w // s, s))
    perm = [0, 3, 5, 1, 2, 4] if node.attr("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return b.reshape(split.transpose(perm), (n, c * s * s, h // s, w // s))


@op("DepthToSpace")
def depth_to_space(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Channels to blocks of pixels; mode DCR (depth first) or CRD."""
    s = _blocks(node, x)
    n, c, h, w = x.shape
    if node.attr("mode", "DCR") == "DCR":
        split = b.reshape(x, (n, s, s, c // (s * s), h, w)).transpose([0, 3, 4, 1, 5, 2])
    else:
        split = b.reshape(x, (n, c // (s * s), s, s, h, w)).transpose([0, 1, 4, 2, 5, 3])
    return b.reshape(split, (n, c // (s * s), h * s, w * s))
