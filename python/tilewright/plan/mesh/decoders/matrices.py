# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrices of a decoder's layer, as they lie for a prompt, and as they lie on another grid for the tokens after it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.moves.line_move import Line


@dataclass(frozen=True)
class Matrix:
    """A matrix on both grids; along folded rings before, as cores stand afterwards.

    Attributes:
        shape: of the matrix.
        before, after: shapes of its blocks.
        sides: of the grids.
        skewed: before, its rows lie along y as aligned operands of MeshGEMM.
        turned: its columns lie along y, and its rows along x.
    """

    shape: tuple[int, int]
    before: tuple[int, int]
    after: tuple[int, int]
    sides: tuple[int, int]
    skewed: bool = False
    turned: bool = False

    @property
    def along_y(self) -> Line:
        """From grid to grid along y, on all columns of the first."""
        dim = int(self.turned)
        blocks = self.before[dim], self.after[dim]
        signs = 1, int(self.skewed)
        return Line("y", dim, self.shape[dim], self.sides, blocks, self.sides[0], ("ring", "ring"), signs)

    @property
    def along_x(self) -> Line:
        """Then along x, on the rows of the second."""
        dim = int(not self.turned)
        blocks = self.before[dim], self.after[dim]
        return Line("x", dim, self.shape[dim], self.sides, blocks, self.sides[1], ("ring", "linear"))

    @property
    def between(self) -> tuple[int, int]:
        """Shape of a block after the first step."""
        rows, columns = (self.before[0], self.after[1]) if self.turned else (self.after[0], self.before[1])
        return rows, columns

    def held(self, itemsize: int) -> tuple[int, int]:
        """Bytes of a core that a block takes, on either grid; blocks begin at multiples of 4."""
        before, after = (-(-rows * columns * itemsize // 4) * 4 for rows, columns in (self.before, self.after))
        return before, after


def matrices(decoder: Decoder, tokens: int, sides: tuple[int, int]) -> dict[str, Matrix]:
    """Weights of a layer, and what it has cached of so many tokens.

    Products of several weights by one operand are MeshGEMM, whose weights lie skewed. ``o`` and ``down`` are turned, as
    layers of a token have them: for a prompt these products are dist-GEMM-T, of operands in blocks as they are.
    """
    width, hidden = decoder.width, decoder.hidden
    wide, inner, rows = ([-(-size // side) for side in sides] for size in (width, hidden, tokens))
    heads = [decoder.slice(side) for side in sides]

    def made(shape: tuple[int, int], down: list[int], right: list[int], **how: bool) -> Matrix:
        return Matrix(shape, (down[0], right[0]), (down[1], right[1]), sides, **how)

    found = {name: made((width, width), wide, heads, skewed=True) for name in ("q", "k", "v")}
    found |= {name: made((width, hidden), wide, inner, skewed=True) for name in ("up", "gate")}
    found["o"] = made((width, width), heads, wide, turned=True)
    found["down"] = made((hidden, width), inner, wide, turned=True)
    # Copies of keys and values go round: keys as they lie, values aligned.
    found["cached k"] = made((tokens, width), rows, heads)
    found["cached v"] = made((tokens, width), rows, heads, skewed=True)
    return found
