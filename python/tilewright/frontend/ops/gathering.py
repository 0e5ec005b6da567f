# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gather: embeddings, and picking known positions."""

from __future__ import annotations

import numpy as np

from ..registry import Builder, Node, op
from ..tensor import Tensor
from .movement import part


@op("Gather")
def gather(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """Rows of x along `axis`; known consecutive indices are a slice."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    if not indices.is_known:
        return b.gather(x, indices, axis)
    extent = x.shape[axis]
    wanted = indices.numpy().astype(np.int64)
    if wanted.size and (wanted.min() < -extent or wanted.max() >= extent):
        node.wrong(f"indices reach from {wanted.min()} to {wanted.max()}, but axis {axis} has {extent} elements")
    wanted = np.where(wanted < 0, wanted + extent, wanted)
    run = wanted.reshape(-1)
    if run.size and wanted.ndim <= 1 and np.array_equal(run, np.arange(run[0], run[0] + run.size)):
        piece = part(b, x, axis, int(run[0]), run.size)
        return piece if wanted.ndim else piece.squeeze([axis])
    return b.gather(x, Tensor.known(wanted), axis)
