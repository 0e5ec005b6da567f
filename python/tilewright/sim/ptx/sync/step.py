# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of lanes, the view that a run function gets, and how it says that lanes must wait."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.syntax.tree import Instruction


class Lanes:
    """A set of lanes in ascending order. `sel` indexes arrays over all lanes: a slice where they are neighbours."""

    __slots__ = ("__dict__", "ids", "n", "sel")

    def __init__(self, ids: np.ndarray) -> None:
        self.ids = ids
        self.n = len(ids)
        first = int(ids[0]) if self.n else 0
        near = self.n and int(ids[-1]) - first + 1 == self.n
        self.sel: slice | np.ndarray = slice(first, first + self.n) if near else ids

    def where(self, mask: np.ndarray) -> Lanes:
        """The lanes that a mask over this set names."""
        return Lanes(self.ids[mask])

    def join(self, other: Lanes) -> Lanes:
        """Both sets."""
        ids = np.concatenate([self.ids, other.ids])
        ids.sort()
        return Lanes(ids)

    @cached_property
    def warps(self) -> np.ndarray:
        """Number of the warp (in the batch) of each lane."""
        return self.ids >> 5

    @cached_property
    def distinct_warps(self) -> np.ndarray:
        """The same without repetitions."""
        warps = self.warps
        return warps[np.r_[True, warps[1:] != warps[:-1]]] if self.n else warps

    @cached_property
    def warpgroups(self) -> list[int]:
        """Numbers of the warpgroups (in the batch) that lanes belong to, each once."""
        return np.unique(self.ids >> 7).tolist()

    @cached_property
    def whole(self) -> dict[int, bool]:
        """Answers known so far: whether the set consists of whole groups of a size."""
        return {}

    def is_whole(self, size: int) -> bool:
        """Whether all lanes of each warp (32) or warpgroup (128) that occurs are in the set."""
        known = self.whole.get(size)
        if known is None:
            known = self.n % size == 0
            if known and not isinstance(self.sel, slice):
                rows = self.ids.reshape(-1, size)
                known = bool((rows[:, 0] % size == 0).all() and (rows[:, -1] - rows[:, 0] == size - 1).all())
            elif known:
                known = self.sel.start % size == 0
            self.whole[size] = known
        return known


@dataclass
class Wait:
    """What a run function returns when lanes cannot go on.

    Attributes:
        mask: which of the step's lanes (bool array), or None for all.
        keys: what they wait for: one hashable, or one per lane that the mask names.
        why: for the report of a dead-lock.
        retry: run the instruction again after `machine.wake(key)`; False: go on behind it.
    """

    mask: np.ndarray | None
    keys: Hashable | Sequence[Hashable]
    why: str
    retry: bool = True


class Step:
    """One instruction on one set of lanes, as run functions see it.

    Attributes:
        machine: the machine.
        ins: the instruction.
        lanes: the lanes that run it.
        n: how many.
        sel: index of these lanes in arrays over all lanes (a slice or an index array).
        registers: one array over all lanes per register.
    """

    __slots__ = ("ins", "lanes", "machine", "n", "registers", "sel")

    def __init__(self, machine: Machine, ins: Instruction, lanes: Lanes) -> None:
        self.machine = machine
        self.registers = machine.registers
        self.ins = ins
        self.lanes = lanes
        self.n = lanes.n
        self.sel = lanes.sel

    @property
    def ids(self) -> np.ndarray:
        """Number of each lane in the batch: slot of its CTA times threads (rounded up to warps) plus thread."""
        return self.lanes.ids

    @property
    def slots(self) -> np.ndarray:
        """Slot of each lane's CTA in the batch."""
        return self.machine.slot_of[self.sel]

    @property
    def tid(self) -> np.ndarray:
        """Number of each lane's thread in its CTA."""
        return self.machine.tid_of[self.sel]

    @property
    def warps(self) -> np.ndarray:
        """Number of each lane's warp in the batch."""
        return self.lanes.warps

    def full(self, value: np.ndarray | np.generic) -> np.ndarray:
        """An array over the lanes, of a value that may be a scalar (an immediate)."""
        return value if isinstance(value, np.ndarray) and value.ndim else np.full(self.n, value)

    def only(self, lane: int) -> np.ndarray:
        """Mask of one of the lanes, given by its place in the step."""
        return np.arange(self.n) == lane

    def narrowed(self, mask: np.ndarray) -> Step:
        """The same instruction for the lanes that a mask names."""
        return Step(self.machine, self.ins, self.lanes.where(mask))

    def fail(self, rule: str, message: str, where: np.ndarray | None = None) -> NoReturn:
        """Raise an EmulationError about the first lane (of those that `where` names)."""
        at = int(np.flatnonzero(where)[0]) if where is not None else 0
        raise self.machine.error(rule, message, self.ins, int(self.ids[at]) if self.n else None)

    def check(self, rule: str) -> bool:
        """Whether a rule is checked in this run."""
        return rule in self.machine.checks
