# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move and reduce: what moves stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.upstream.contraction import reduce_array

#: Per `combine`, in the dialect's order: the reduction of integers, and that of floats.
_KINDS = (
    ("add", "add"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("maxu", "maximum"),
    ("minu", "minimum"),
    ("mul", "mul"),
)


@handles(*(f"coremesh.{name}" for name in "distribute assemble relayout reshape_grid shift multicast".split()))
def move(_frame: Any, _node: Node, source: np.ndarray) -> np.ndarray:
    """The same values, elsewhere."""
    return source


@handles("coremesh.reduce", "coremesh.allreduce")
def reduce(_frame: Any, node: Node, source: np.ndarray) -> np.ndarray:
    """Sums, maxima and the like along a dimension; low precision floats are combined in float32 and rounded once."""
    dim, combine = node.once("how", lambda: (node.op.attributes["dim"].value, node.op.attributes["combine"].value))
    kind = _KINDS[combine][types.is_float(source.dtype)]
    return reduce_array(kind, source, [dim]).squeeze(dim)


@handles("coremesh.halo")
def halo(_frame: Any, node: Node, source: np.ndarray) -> np.ndarray:
    """Parts of the same size along a dimension, one behind the other; what lies outside of the source is filled."""
    return node.once("parts", lambda: _parts(node))(source)


def _parts(node: Node) -> Callable[[np.ndarray], np.ndarray]:
    attributes = node.op.attributes
    dim, first, step, size = (attributes[name].value for name in ("dim", "from", "step", "size"))
    kind = node.result_type()
    fill = types.constant(attributes["fill"])
    parts = np.arange(types.shape_of(kind)[dim] // size) * step + first

    def gather(source: np.ndarray) -> np.ndarray:
        places = (parts[:, None] + np.arange(size)).ravel()
        inside = (places >= 0) & (places < source.shape[dim])
        found = np.take(source, np.where(inside, places, 0), axis=dim)
        along = tuple(slice(None) if at == dim else None for at in range(source.ndim))
        return np.where(inside[along], found, fill).astype(source.dtype)

    return gather
