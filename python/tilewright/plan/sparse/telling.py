# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report and `tilewright check` tell of a pruned weight: the decision, and a small map of its pattern."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from tilewright.plan.sparse.candidates import name_of
from tilewright.plan.sparse.cover import Lattice, Piece, joined
from tilewright.plan.sparse.decision import Sparsity, text_of

#: Cells of a map along each of its sides, at most.
_CELLS = 64


def told(location: str, rows: int, lattice: Lattice, sparsity: Sparsity, pieces: Sequence[Piece]) -> dict[str, Any]:
    """What is told of a weight.

    Args:
        location: of the product, as the model calls it.
        rows: of the activations that it is multiplied by; 0: not known, or no product of matrices.
        lattice: which of its elements are not zero, [k, n].
        sparsity: the decision.
        pieces: regions of the cover; none where it is left dense.

    Returns:
        Plain values: texts, numbers, and `map` with a byte per cell, in base64: `density` (255: no zero in it) and
        `region` (the one that has the most of its elements).
    """
    return {
        "location": location,
        "rows": rows,
        "shape": [int(size) for size in lattice.live.shape],
        "pattern": name_of(lattice),
        "density": lattice.total / max(lattice.live.size, 1),
        "cover": [text_of([pattern]) for pattern in sparsity.cover],
        "kernels": list(sparsity.kernels),
        "kept": [piece.elements for piece in pieces],
        "ns": sparsity.ns,
        "dense_ns": sparsity.dense_ns,
        "runner_up": None if sparsity.runner_up is None else text_of(sparsity.runner_up),
        "runner_up_ns": sparsity.runner_up_ns,
        "reason": sparsity.reason,
        "map": _map(lattice.live, pieces),
    }


def _map(live: np.ndarray, pieces: Sequence[Piece]) -> dict[str, Any]:
    factor = (max(ceil(live.shape[0] / _CELLS), 1), max(ceil(live.shape[1] / _CELLS), 1))
    most = factor[0] * factor[1]
    counts = joined(live.view(np.uint8), factor, most)
    sizes = joined(np.ones(live.shape, np.uint8), factor, most)
    by_region = [joined(piece.live(live).view(np.uint8), factor, most) for piece in pieces]
    region = np.argmax(by_region, axis=0) if by_region else np.zeros(counts.shape)
    # Few elements among many zeros are to be seen, too: never rounded to none.
    density = np.ceil(counts.astype(np.float64) / np.maximum(sizes, 1) * 255)
    return {
        "rows": counts.shape[0],
        "columns": counts.shape[1],
        "density": base64.b64encode(density.astype(np.uint8).tobytes()).decode(),
        "region": base64.b64encode(region.astype(np.uint8).tobytes()).decode(),
    }
