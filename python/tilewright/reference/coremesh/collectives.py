# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move and reduce: what moves stays what it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.upstream.contraction import reduce_array


@handles(*(f"coremesh.{name}" for name in "distribute assemble relayout reshape_grid shift multicast".split()))
def move(_frame: Any, _node: Node, source: np.ndarray) -> np.ndarray:
    """The same values, elsewhere."""
    return source


@handles("coremesh.reduce", "coremesh.allreduce")
def reduce(_frame: Any, node: Node, source: np.ndarray) -> np.ndarray:
    """Sums or maxima along a dimension; low precision floats are combined in float32 and rounded once."""
    dim, combine = node.once("how", lambda: (node.op.attributes["dim"].value, node.op.attributes["combine"].value))
    return reduce_array("maximum" if combine else "add", source, [dim]).squeeze(dim)
