# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A nest of a task as tiles see it: the loops that each operand dimension depends on, all in terms of its root."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.ir.structure import Access, LinalgOp


@dataclass(eq=False)
class Nest:
    """A root and the operations that are evaluated at its points.

    Attributes:
        root: the operation whose loops the nest has.
        members: all operations, the root among them.
        gathers: loops along which a member gathers by an index computed anew; no tile extends along them.
    """

    root: LinalgOp
    members: Sequence[LinalgOp]
    gathers: frozenset[int] = frozenset()

    @cached_property
    def uses(self) -> list[tuple[frozenset[int], ...]]:
        """Per operand of any member, the loops of the root that each of its dimensions depends on."""
        found = []
        for op, loops in self.bindings.items():
            for access in (*op.inputs, op.output):
                found.append(tuple(frozenset(loops[d] for d in uses if d in loops) for uses in access.uses))
        return found

    @cached_property
    def bindings(self) -> dict[LinalgOp, dict[int, int]]:
        """Loops of each member as loops of the root, as far as plain dimensions say."""
        known = {self.root: {d: d for d in range(self.root.rank)}}
        for _ in self.members:
            for reader in self.members:
                for access in reader.inputs:
                    maker = next((m for m in self.members if m.result == access.value), None)
                    if maker is None or (maker in known) == (reader in known):
                        continue
                    pairs = _pairs(maker, access)
                    if reader in known:
                        known[maker] = {a: known[reader][b] for a, b in pairs if b in known[reader]}
                    else:
                        known[reader] = {b: known[maker][a] for a, b in pairs if a in known[maker]}
        return known

    def fits(self, tiled: Collection[int], loop: int) -> bool:
        """Whether a tile may extend along `loop` besides `tiled`: no operand has both in one of its dimensions."""
        if loop in self.gathers or loop in tiled:
            return False
        others = set(tiled)
        return not any(loop in uses and uses & others for operand in self.uses for uses in operand)

    def widen(self, tile: dict[int, int], loops: Iterable[int], room: int, most: int | None = None) -> None:
        """Extends a tile along `loops`, the first ones first, until it has `room` elements.

        Args:
            tile: sizes of the loops that it extends along; changed.
            loops: which ones may be added.
            room: elements of the tile.
            most: loops that it may extend along in all.
        """
        for loop in loops:
            left = room
            for size in tile.values():
                left //= size
            if left < 2 or (most is not None and len(tile) >= most):
                return
            if self.root.extents[loop] > 1 and self.fits(tile, loop):
                tile[loop] = min(power_of_two(self.root.extents[loop]), left)


def read_only_by(op: LinalgOp, members: Iterable[LinalgOp]) -> bool:
    """Whether no one but some operations reads a result.

    Operations are compared, not hashed: what an operation hashes to changes with its attributes.
    """
    others = [member.op for member in members]
    return all(use.owner.operation in others for use in op.result.uses)


def _pairs(maker: LinalgOp, access: Access) -> list[tuple[int, int]]:
    """Loops of a maker and of a reader of its result that index the same dimension."""
    dims = zip(maker.output.dims, access.dims, strict=True)
    return [(made, read) for made, read in dims if made is not None and read is not None]


def power_of_two(size: int) -> int:
    """The least power of two that is at least `size`."""
    return 1 << max(size - 1, 0).bit_length()


def lane_of(op: LinalgOp, access: Access) -> int:
    """The loop along which neighbours lie side by side in an operand: a parallel one where a window moves."""
    for dim, uses in zip(reversed(access.dims), reversed(access.uses), strict=True):
        loops = [dim] if dim is not None else [d for d in uses if d not in op.reductions]
        for loop in loops:
            if op.extents[loop] > 1:
                return loop
    return op.rank - 1


def roots_of(members: Sequence[LinalgOp]) -> tuple[list[LinalgOp], list[list[int]]]:
    """The roots of a task's nests, which have `tile.rows`, and of each the loops that all nests share, in one order.

    Raises:
        UserError: a nest has no root, or roots do not share as many loops as the last one.
    """
    roots = [m for m in members if decisions.ROWS.on(m.op)]
    if not roots:
        raise located(UserError("is in a task of which no operation has `tile.rows`"), members[0].op)
    nests = {decisions.NEST.read(root.op) for root in roots}
    for member in members:
        if decisions.NEST.read(member.op) not in nests:
            raise located(UserError("is in a nest of which no operation has `tile.rows`"), member.op)
    rows = [decisions.ROWS.read_loops(root.op, len(root.extents)) for root in roots]
    for root, own in zip(roots, rows, strict=True):
        if len(own) != len(rows[-1]):
            other = f"the last nest of its task, which shares them, {len(rows[-1])}"
            raise located(UserError(f"has {len(own)} loops in `tile.rows`, and {other}"), root.op)
    return roots, rows
