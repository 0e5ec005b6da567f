# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Into how many blocks each loop of a computation is cut: what an attribute says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.core.errors import UserError
from tilewright.mlir import ir

#: On a generic: numbers of blocks, one for each loop.
BLOCKS = "coremesh.blocks"


@dataclass(frozen=True)
class Blocks:
    """Numbers of blocks, and sizes of loops."""

    counts: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def has(op: ir.Operation) -> bool:
        """Whether an op says into how many blocks it is cut."""
        return BLOCKS in op.attributes

    @staticmethod
    def whole(sizes: list[int]) -> Blocks:
        """One block."""
        return Blocks((1,) * len(sizes), tuple(sizes))

    @staticmethod
    def of(op: ir.Operation, sizes: list[int] | None = None) -> Blocks:
        """What an op says.

        Args:
            sizes: of its loops, to check it by.

        Raises:
            UserError: it does not say one number for each loop, from 1 to its size.
        """
        given = op.attributes[BLOCKS]
        counts = tuple(given) if isinstance(given, ir.DenseI64ArrayAttr) else ()
        if sizes is not None and not _are_right(counts, sizes):
            told = ", ".join(map(str, sizes))
            raise UserError(
                f"{BLOCKS} is {given}: write array<i64: ...>, for each loop a number from 1 to its size ({told})"
            )
        return Blocks(counts, tuple(sizes or counts))

    def write(self, op: ir.Operation) -> None:
        """Say it; nothing of one block."""
        if max(self.counts) > 1:
            op.attributes[BLOCKS] = ir.DenseI64ArrayAttr.get(list(self.counts))
        elif BLOCKS in op.attributes:
            del op.attributes[BLOCKS]

    def first(self) -> int | None:
        """The first loop that is cut."""
        return next((loop for loop, count in enumerate(self.counts) if count > 1), None)

    def block(self, loop: int) -> int:
        """Iterations of a loop in one block; the last one begins earlier where they do not come out even."""
        return -(-self.sizes[loop] // self.counts[loop])

    @property
    def cut(self) -> list[int]:
        """Iterations of each loop in one block."""
        return [self.block(loop) for loop in range(len(self.sizes))]

    def with_count(self, loop: int, count: int) -> Blocks:
        """Another number of blocks of a loop."""
        return replace(self, counts=(*self.counts[:loop], count, *self.counts[loop + 1 :]))

    def doubled(self, loop: int, least: int) -> Blocks:
        """Twice the blocks of a loop, or so many that each has the least size."""
        return self.with_count(loop, min(2 * self.counts[loop], -(-self.sizes[loop] // least)))

    def __str__(self) -> str:
        """For a remark."""
        parts = [f"{count} blocks of {self.block(at)} along d{at}" for at, count in enumerate(self.counts) if count > 1]
        return " x ".join(parts)


def _are_right(counts: tuple[int, ...], sizes: list[int]) -> bool:
    return len(counts) == len(sizes) and all(1 <= count <= size for count, size in zip(counts, sizes, strict=True))
