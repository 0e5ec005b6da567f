# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which block of which input a tile is a copy of, wherever it has been sent since.

A kernel that sums over a dimension of two operands needs the same part of it from both. Where both are still blocks of
inputs, cut alike, that can be seen without their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Meeting, Place
from tilewright.sim.coremesh.steps import Step

#: Of a tile that is no copy: a result, a sum, or padding behind an input.
UNKNOWN = -1


@dataclass(frozen=True)
class _Tensor:
    """An input: its blocks have the numbers from ``first`` on."""

    name: str
    shape: tuple[int, ...]
    tile: tuple[int, ...]
    blocks: tuple[int, ...]
    first: int


class Origins:
    """Numbers of all blocks of all inputs."""

    def __init__(self) -> None:
        self._tensors: dict[tuple[str, tuple[int, ...]], _Tensor] = {}
        self._next = 0

    def numbers(
        self,
        place: Place,
        tile: tuple[int, ...],
        blocks: tuple[int, ...],
        index: tuple[np.ndarray, ...],
        inside: np.ndarray,
    ) -> np.ndarray:
        """Of the block that each core holds at a place, int32 [cores]; UNKNOWN outside the tensor."""
        tensor = self._tensors.get((place.name, tile))
        if tensor is None:
            tensor = _Tensor(place.name, place.shape, tile, blocks, self._next)
            self._tensors[place.name, tile] = tensor
            self._next += int(np.prod(blocks, dtype=np.int64))
        if not blocks or not inside.any():
            return np.where(inside, tensor.first, UNKNOWN).astype(np.int32)
        held = np.ravel_multi_index(tuple(np.where(inside, at, 0) for at in index), blocks)
        return np.where(inside, tensor.first + held, UNKNOWN).astype(np.int32)

    def check_meeting(
        self, step: Step, meeting: Sequence[Meeting], cores: np.ndarray, origins: Sequence[np.ndarray], grid: Grid
    ) -> None:
        """Check that operands of a kernel are the same parts of the dimensions that it sums over.

        Args:
            origins: numbers [n] of the blocks of each operand.

        Raises:
            UserError: they are not; names the core, both blocks and the dimension.
        """
        for (one, axis), (other, across) in meeting:
            known = np.flatnonzero((origins[one] >= 0) & (origins[other] >= 0))
            for left, right, at in self._pairs(origins[one][known], origins[other][known]):
                if (left.shape[axis], left.tile[axis]) != (right.shape[across], right.tile[across]):
                    continue
                here = known[at]
                parts = [
                    np.array(np.unravel_index(origins[operand][here] - tensor.first, tensor.blocks))
                    for operand, tensor in ((one, left), (other, right))
                ]
                if (bad := np.flatnonzero(parts[0][axis] != parts[1][across])).size:
                    blocks = [tuple(int(number) for number in part[:, bad[0]]) for part in parts]
                    raise UserError(
                        f"{step} on {grid.name(int(cores[here[bad[0]]]))} takes block {blocks[0]} of input "
                        f"'{left.name}' and block {blocks[1]} of input '{right.name}', and sums over dimension {axis} "
                        f"of the one and {across} of the other: parts {blocks[0][axis]} and {blocks[1][across]} do "
                        "not belong together. Read the slots that hold the same part."
                    )

    def _pairs(self, left: np.ndarray, right: np.ndarray) -> list[tuple[_Tensor, _Tensor, np.ndarray]]:
        """Pairs of inputs that meet, each with where."""
        tensors = list(self._tensors.values())
        firsts = np.array([one.first for one in tensors])
        which = np.searchsorted(firsts, left, "right") - 1, np.searchsorted(firsts, right, "right") - 1
        pairs = np.unique(np.stack(which), axis=1).T
        return [(tensors[a], tensors[b], np.flatnonzero((which[0] == a) & (which[1] == b))) for a, b in pairs.tolist()]
