# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that ONNX Runtime has under its own domain beside the standard's, with the standard's meaning."""

from __future__ import annotations

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, as_standard
from tilewright.frontend.onnx.ops.image.sampling import grid_sample
from tilewright.frontend.onnx.ops.tensor.constant import range_, trilu
from tilewright.frontend.onnx.ops.tensor.gathering import gather_nd
from tilewright.frontend.onnx.ops.tensor.padding import pad as pad_standard
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("Trilu", domain=DOMAIN)
def old_trilu(b: Builder, node: Node, x: Tensor, k: Tensor | None = None) -> Tensor:
    """A triangle of matrices."""
    return trilu(b, as_standard(node), x, k)


@op("Range", domain=DOMAIN)
def old_range(b: Builder, node: Node, start: Tensor, limit: Tensor, delta: Tensor | None = None) -> Tensor:
    """start, start + delta, ... below limit; delta is 1 where it is absent."""
    return range_(b, as_standard(node), start, limit, Tensor.known([1], start.dtype) if delta is None else delta)


@op("GatherND", domain=DOMAIN)
def old_gather_nd(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """Slices at positions."""
    return gather_nd(b, as_standard(node), x, indices)


@op("Pad", domain=DOMAIN)
def old_pad(b: Builder, node: Node, x: Tensor, pads: Tensor, value: Tensor | None = None) -> Tensor:
    """Padding by a constant, the edge or reflection; pads may be a row [1, 2 * dimensions]."""
    flat = pads.squeeze([0]) if pads.rank == 2 else pads
    return pad_standard(b, as_standard(node), x, flat, value)


@op("GridSample", domain=DOMAIN)
def old_grid_sample(b: Builder, node: Node, x: Tensor, grid: Tensor) -> Tensor:
    """Images sampled at the places of a grid."""
    return grid_sample(b, as_standard(node), x, grid)


@op("ExpandDims", domain=DOMAIN)
def expand_dims(b: Builder, node: Node, x: Tensor, axis: Tensor) -> Tensor:
    """A dimension of size 1 more."""
    (at,) = node.ints(axis, "the axis")
    return x.unsqueeze([node.axis(at, x.rank + 1)])
