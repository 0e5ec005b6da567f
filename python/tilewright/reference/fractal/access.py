# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of `fractal` that read elsewhere; what that means is `dialects/fractal/access.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.dialects.fractal import ArrayType, access
from tilewright.dialects.fractal.values import Lists, join
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.affine import evaluate, read_map
from tilewright.reference.fractal.registry import op
from tilewright.reference.program import Node


@op("at")
def at(_frame: Any, _node: Node, xs: Lists, place: Any) -> Any:
    """One element."""
    return access.at(xs, int(place))


@op("slice")
def slice_(_frame: Any, node: Node, xs: Lists, *dynamic: Any) -> Lists:
    """Elements by a stride."""
    static = node.once("static", lambda: _static(node, "offsets") + _static(node, "sizes"))
    offset, size = types.fill_dynamic(static, dynamic)
    return access.slice(xs, offset, size, _number(node, "stride"))


@op("reverse")
def reverse(_frame: Any, _node: Node, xs: Lists) -> Lists:
    """The last element first."""
    return access.reverse(xs)


@op("shift")
def shift(_frame: Any, node: Node, xs: Lists, fill: Any = None) -> Lists:
    """Each element some places on."""
    return access.shift(xs, _number(node, "by"), fill)


@op("window")
def window(_frame: Any, node: Node, xs: Lists, fill: Any = None) -> Lists:
    """Neighbours of every element, as a list."""
    low, high = types.integers(node.attribute("padding"))
    size, stride, dilation = (_number(node, name) for name in ("size", "stride", "dilation"))
    return access.window(xs, size, stride, dilation, (low, high), fill, node.attribute("wrap") is not None)


@op("read")
def read(_frame: Any, node: Node, xs: Lists) -> Lists:
    """Elements where an affine map says, or the nearest ones."""
    levels, indices = node.once("read", lambda: _places(node))
    below, array = xs.depth - len(indices), xs.array()
    clipped = tuple(np.clip(index, 0, size - 1) for index, size in zip(indices, array.shape, strict=False))
    return Lists.from_array(array[clipped], levels + below)


def _places(node: Node) -> tuple[int, list[np.ndarray]]:
    """Levels of the result that the map stands for, and for each level of the source where these read."""
    map_ = ir.AffineMapAttr(node.op.attributes["map"]).value
    lengths = ArrayType(node.op.results[0].type).lengths[: map_.n_dims]
    at = np.indices(lengths)
    return map_.n_dims, [np.broadcast_to(evaluate(term, at), lengths) for term in read_map(map_)]


@op("interleave")
def interleave(_frame: Any, node: Node, xs: Lists) -> Lists:
    """Elements dealt to groups."""
    return access.interleave(xs, _number(node, "by"))


@op("deinterleave")
def deinterleave(_frame: Any, _node: Node, xss: Lists) -> Lists:
    """Elements of groups in the order in which they were dealt."""
    return access.deinterleave(xss)


@op("product")
def product(_frame: Any, _node: Node, xs: Lists, ys: Lists) -> tuple[Lists, Lists]:
    """All pairs."""
    return access.product(xs, ys)


@op("repeat")
def repeat(_frame: Any, node: Node, x: Any, *times: Any) -> Lists:
    """One element many times."""
    return access.repeat(x, int(times[0]) if times else _number(node, "times"))


@op("join")
def join_(_frame: Any, _node: Node, *parts: Lists) -> Lists:
    """One list after the other."""
    return join(parts)


@op("gather")
def gather(_frame: Any, _node: Node, xs: Lists, places: np.ndarray) -> Lists:
    """Elements at places that a tensor holds."""
    return access.gather(xs, places)


@op("scatter")
def scatter(_frame: Any, _node: Node, xs: Lists, into: Lists, places: np.ndarray) -> Lists:
    """Elements written at places that a tensor holds."""
    return access.scatter(xs, into, places)


@op("flatten")
def flatten(_frame: Any, _node: Node, xss: Lists) -> Lists:
    """The elements of all lists."""
    return xss.flatten()


@op("split")
def split(_frame: Any, node: Node, xs: Lists) -> Lists:
    """Parts of equal length."""
    return access.split(xs, _number(node, "into"))


@op("cast")
def cast(_frame: Any, _node: Node, xs: Lists) -> Lists:
    """The same lists; registry.py looks whether they are what the result's type says."""
    return xs


@op("length")
def length(_frame: Any, _node: Node, xs: Lists) -> np.int64:
    """The number of elements."""
    return np.int64(len(xs))


def _number(node: Node, name: str) -> int:
    return node.once(name, lambda: node.op.attributes[name].value)


def _static(node: Node, what: str) -> list[int]:
    return types.integers(node.op.attributes[f"static_{what}"])
