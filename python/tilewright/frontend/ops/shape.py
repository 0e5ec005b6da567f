# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that change shapes only: reshape, flatten, squeeze, transpose, expand."""

from __future__ import annotations

from math import prod

from ..registry import Builder, Node, op
from ..tensor import Tensor


@op("Reshape")
def reshape(b: Builder, node: Node, x: Tensor, shape: Tensor | None = None) -> Tensor:
    """Row-major; 0 copies a dimension (unless allowzero), -1 is what is left."""
    wanted = list(node.attr("shape")) if shape is None else node.ints(shape, "the shape")
    if not node.attr("allowzero", 0):
        if any(n == 0 and d >= x.rank for d, n in enumerate(wanted)):
            node.wrong(f"shape {wanted} copies a dimension that the input {list(x.shape)} does not have")
        wanted = [x.shape[d] if n == 0 else n for d, n in enumerate(wanted)]
    rest = prod(n for n in wanted if n != -1)
    sizes = [x.size // rest if n == -1 and rest else n for n in wanted]
    if wanted.count(-1) > 1 or prod(sizes) != x.size:
        node.wrong(f"cannot reshape {list(x.shape)} ({x.size} elements) to {wanted}")
    return b.reshape(x, sizes)


@op("Flatten")
def flatten(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Two dimensions: before `axis` and from it on."""
    axis = node.attr("axis", 1)
    axis = axis if axis == x.rank else node.axis(axis, x.rank)
    return b.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@op("Squeeze")
def squeeze(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Drop dimensions of size 1 (all by default)."""
    given = node.attr("axes") if axes is None else node.ints(axes, "axes")
    chosen = [d for d, n in enumerate(x.shape) if n == 1] if given is None else node.axes(given, x.rank)
    if any(x.shape[d] != 1 for d in chosen):
        node.wrong(f"axes {given} of {list(x.shape)} are not all of size 1")
    return x.squeeze(chosen)


@op("Unsqueeze")
def unsqueeze(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Insert dimensions of size 1."""
    given = node.attr("axes") if axes is None else node.ints(axes, "axes")
    return x.unsqueeze(node.axes(given, x.rank + len(given)))


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
    return b.broadcast(x, node.ints(shape, "the shape"))
