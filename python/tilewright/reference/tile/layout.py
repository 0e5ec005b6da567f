# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`linalg` ops that are no loop nest over a body: pack, unpack, softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles


def _layout(node: Node, rank: int, dynamic: tuple[Any, ...]) -> tuple[list[int], list[int], list[int]]:
    """Return the order of outer dimensions, the tiled dimensions, and their tile sizes."""
    attributes = node.op.attributes
    order = types.integers(node.attribute("outer_dims_perm")) or list(range(rank))
    dims = types.integers(attributes["inner_dims_pos"])
    return order, dims, types.fill_dynamic(types.integers(attributes["static_inner_tiles"]), dynamic)


def _split_axes(rank: int, dims: Sequence[int], order: Sequence[int]) -> list[int]:
    """Axes of the packed form within the array where each tiled dimension d became (outer, inner)."""
    position, outer, inner = 0, {}, {}
    for d in range(rank):
        outer[d] = position
        inner[d] = position + 1
        position += 2 if d in dims else 1
    return [outer[d] for d in order] + [inner[d] for d in dims]


def pack_array(array: np.ndarray, order: Sequence[int], dims: Sequence[int], tiles: Sequence[int], pad: Any) -> Any:
    """Return ``array`` in blocks: outer dimensions in ``order``, then one inner dimension per entry of ``dims``.

    Args:
        array: any shape.
        order: permutation of the outer dimensions.
        dims: the tiled dimensions.
        tiles: their tile sizes.
        pad: the value of positions past the end, or None where there must be none.

    Raises:
        InterpreterError: a size is no multiple of its tile, and there is no ``pad``.
    """
    tile = dict(zip(dims, tiles, strict=True))
    extra = [(0, -n % tile.get(d, 1)) for d, n in enumerate(array.shape)]
    if any(high for _, high in extra):
        if pad is None:
            raise InterpreterError(f"shape {array.shape} is no multiple of the tiles {tile} and no padding is given")
        array = np.pad(array, extra, constant_values=pad)
    shape = [s for d, n in enumerate(array.shape) for s in ((n // tile[d], tile[d]) if d in tile else (n,))]
    return array.reshape(shape).transpose(_split_axes(array.ndim, dims, order))


@handles("linalg.pack")
def pack(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """Blocked form of the source, written over all of the destination."""
    (source,), (target,), padding, dynamic = node.groups(operands)
    order, dims, tiles = _layout(node, source.ndim, dynamic)
    packed = pack_array(source, order, dims, tiles, padding[0] if padding else None)
    if packed.shape != target.shape:
        raise InterpreterError(f"packing gives shape {packed.shape}, the destination has {target.shape}")
    return packed


@handles("linalg.unpack")
def unpack(_frame: Any, node: Node, source: np.ndarray, target: np.ndarray, *dynamic: Any) -> np.ndarray:
    """Inverse of pack; positions past the destination's end are dropped."""
    order, dims, tiles = _layout(node, target.ndim, dynamic)
    axes = _split_axes(target.ndim, dims, order)
    split = source.transpose(np.argsort(axes))
    tile = dict(zip(dims, tiles, strict=True))
    outer = dict(zip(order, source.shape, strict=False))
    whole = split.reshape([outer[d] * tile.get(d, 1) for d in range(target.ndim)])
    return whole[tuple(slice(0, n) for n in target.shape)]


@handles("linalg.softmax")
def softmax(_frame: Any, node: Node, source: np.ndarray, target: np.ndarray) -> Any:
    """exp(x - max) / sum along one dimension."""
    axis = node.op.attributes["dimension"].value
    wide = source.astype(np.float64)
    exponent = np.exp(wide - wide.max(axis, keepdims=True))
    result = (exponent / exponent.sum(axis, keepdims=True)).astype(target.dtype)
    if node.results:
        return result
    target[...] = result
    return None
