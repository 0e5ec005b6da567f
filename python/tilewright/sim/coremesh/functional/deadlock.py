# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who waits for whom, when no core can go on: the cycle, as an error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.functional.traffic import Traffic, Transfer
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.steps import Step, incoming, outgoing

#: Cores of a cycle that a message names at most.
_NAMED = 12


def deadlock(grid: Grid, steps: list[Step], waiting: dict[int, np.ndarray], traffic: Traffic) -> UserError:
    """The error that says which cores wait for each other, found by following one unfinished transfer per core.

    Args:
        waiting: cores that stand at each step; those that stand at none have come to the end.
    """
    search = _Search(grid, steps, waiting, traffic)
    stands = search.first()
    seen: dict[tuple[int, int], str] = {}
    key = _key(*stands)
    while key not in seen:
        following, seen[key] = search.follow(*stands)
        stands, key = following, _key(*following)
    order = list(seen)
    cycle = [seen[member] for member in order[order.index(key) :]]
    shown = cycle if len(cycle) <= _NAMED else [*cycle[: _NAMED - 1], f"... ({len(cycle) - _NAMED} more)", cycle[-1]]
    total = sum(cores.size for cores in waiting.values())
    return UserError(
        f"Deadlock: {total} cores wait for ever; these for each other:\n  "
        + "\n  ".join(shown)
        + "\nStart one of these sends before the wait that it stands behind."
    )


def _key(core: int, transfer: Transfer | None) -> tuple[int, int]:
    return core, id(transfer)


class _Search:
    def __init__(self, grid: Grid, steps: list[Step], waiting: dict[int, np.ndarray], traffic: Traffic) -> None:
        self.grid, self.steps, self.traffic = grid, steps, traffic
        self.at = {int(core): number for number, cores in waiting.items() for core in cores}

    def first(self) -> tuple[int, Transfer | None]:
        """Where to begin: a core that waits, or something that is never done though nobody waits for it."""
        if self.at:
            return min(self.at), None
        transfer = next(iter(self.traffic.unfinished.values()))
        return int(transfer.cores[np.argmin(transfer.done)]), transfer

    def follow(self, core: int, transfer: Transfer | None) -> tuple[tuple[int, Transfer | None], str]:
        """For what a core, or a transfer of it, waits: the next such pair, and how to say so."""
        stands = ""
        if transfer is None:
            number = self.at[core]
            tokens = getattr(self.steps[number].instruction, "tokens", ())
            transfer = next(found for found, _ in self._unfinished(core) if found.instruction.token in tokens)
            stands = f"stands at {self.steps[number]} and "
        entry = int(np.searchsorted(transfer.cores, core))
        while (before := self._before(core, transfer, entry)) is not None:
            transfer, entry = before
        source = int(transfer.sources[entry])
        route = incoming(transfer.instruction)
        sending = next((other for other, _ in self._unfinished(source) if outgoing(other.instruction) == route), None)
        reason = f"has not done {sending.step}" if sending is not None else f"stands at {self._where(source)}"
        text = f"{self.grid.name(core)} {stands}waits for {transfer.step}: {self.grid.name(source)} {reason}"
        return (source, sending), text

    def _where(self, core: int) -> str:
        return str(self.steps[self.at[core]])

    def _unfinished(self, core: int) -> Iterator[tuple[Transfer, int]]:
        for transfer in self.traffic.unfinished.values():
            entry = int(np.searchsorted(transfer.cores, core))
            if entry < transfer.cores.size and transfer.cores[entry] == core and not transfer.done[entry]:
                yield transfer, entry

    def _before(self, core: int, transfer: Transfer, entry: int) -> tuple[Transfer, int] | None:
        """The earliest transfer whose turn on this core comes before this one's."""
        for other, place in self._unfinished(core):
            if other is transfer:
                break
            if _shares_turn(other, place, transfer, entry):
                return other, place
        return None


def _shares_turn(one: Transfer, place: int, other: Transfer, entry: int) -> bool:
    if one.out is not None and one.out is other.out:
        return True
    if one.into is not None and one.into is other.into:
        return True
    slots = one.turn_slot is not None and other.turn_slot is not None
    same = one.instruction.slot.buffer == other.instruction.slot.buffer
    return slots and same and bool(one.slots[place] == other.slots[entry])
