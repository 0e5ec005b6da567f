# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of a ring of buffers when its mbarriers count or wait wrongly: rounds, stale data, what is left.

Source: PTX ISA, "Phase completion of the mbarrier object": a phase ends when neither arrivals nor transactions are
pending; a wait for a parity passes when the phase under way has the other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.gpu.far.ladder.diagnosis.tma import POISON, SHARED_BYTES, STEP
from bench.gpu.far.ladder.setup import MbarrierSetup

#: bytes from buffer to buffer, in memory and in shared memory; arrivals of the consumers of a round
PITCH, ARRIVING = 1024, 2


@dataclass(frozen=True)
class RingObserved:
    """What the probe of a ring shows.

    Attributes:
        result: bytes that the consumers saw, uint8 (rounds, `PITCH`).
        dump: shared memory at the end, uint8.
        produced, consumed: rounds that the producer began and the consumers ended.
        full: (excess in units of 16 bytes, arrivals missing) of the full barrier that the consumers are left at; (0, 0)
            if they are done.
        empty: the same of the producer and its empty barrier.
    """

    result: np.ndarray
    dump: np.ndarray
    produced: int
    consumed: int
    full: tuple[float | None, int]
    empty: tuple[float | None, int]

    def same(self, other: RingObserved) -> bool:
        """Whether two observations are one."""
        told = ("produced", "consumed", "full", "empty")
        if any(getattr(self, name) != getattr(other, name) for name in told):
            return False
        return bool((self.result == other.result).all() and (self.dump == other.dump).all())


def source(setup: MbarrierSetup) -> np.ndarray:
    """Bytes that the producer loads, uint8 (rounds, `PITCH`): all rounds differ everywhere; none is poison."""
    rng = np.random.default_rng(setup.rounds)
    rows = np.stack([rng.permutation(POISON - 1)[: setup.rounds] for _ in range(PITCH)], axis=1)
    return (rows + 1).astype(np.uint8)


@dataclass
class _Barrier:
    count: int
    pending: int
    tx: int = 0
    phase: int = 0

    def change(self, arrivals: int, tx: int) -> None:
        self.pending, self.tx = self.pending - arrivals, self.tx + tx
        if self.pending == 0 and self.tx == 0:
            self.pending, self.phase = self.count, self.phase ^ 1

    def passes(self, parity: int) -> bool:
        return self.phase != parity & 1

    def left(self) -> tuple[float | None, int]:
        """What the probe finds when it asks."""
        if self.pending:
            return None, self.pending
        return self.tx / STEP, 0


class _Ring:
    """Producer and consumers in turn; loads arrive at once (early) or when nobody can go on (late)."""

    def __init__(self, setup: MbarrierSetup, early: bool, waits: tuple[bool, bool]) -> None:
        self.setup, self.early, self.waits = setup, early, waits
        self.full = [_Barrier(setup.full_count, setup.full_count) for _ in range(setup.stages)]
        self.empty = [_Barrier(setup.empty_count, setup.empty_count) for _ in range(setup.stages)]
        self.memory = np.full(SHARED_BYTES, POISON, np.uint8)
        self.source, self.loads = source(setup), []
        self.result = np.full((setup.rounds, PITCH), POISON, np.uint8)
        self.produced = self.consumed = 0

    def _parity(self, number: int, first: int) -> int:
        return (number // self.setup.stages & 1) ^ first & 1

    def produce(self) -> bool:
        """One round of the producer, if it can."""
        number = self.produced
        if number == self.setup.rounds:
            return False
        at = number % self.setup.stages
        if self.waits[1] and not self.empty[at].passes(self._parity(number, self.setup.empty_parity)):
            return False
        if self.full[at].pending < 1:
            raise ValueError("more arrivals than a phase takes")
        self.full[at].change(1, self.setup.tx_bytes)
        self.loads.append(number)
        self.produced += 1
        if self.early:
            self.arrive()
        return True

    def arrive(self) -> bool:
        """The oldest load comes."""
        if not self.loads:
            return False
        number = self.loads.pop(0)
        at, size = number % self.setup.stages, self.setup.box_bytes
        data = self.source.ravel()[number * PITCH : number * PITCH + size]
        if len(data) < size:
            raise ValueError("a load from behind the source")
        self.memory[at * PITCH : at * PITCH + len(data)] = data
        self.full[at].change(0, -size)
        return True

    def consume(self) -> bool:
        """One round of the consumers, if they can."""
        number = self.consumed
        if number == self.setup.rounds:
            return False
        at = number % self.setup.stages
        if self.waits[0] and not self.full[at].passes(self._parity(number, self.setup.full_parity)):
            return False
        self.result[number] = self.memory[at * PITCH : (at + 1) * PITCH]
        for _ in range(ARRIVING):
            if self.empty[at].pending < 1:
                raise ValueError("more arrivals than a phase takes")
            self.empty[at].change(1, 0)
        self.consumed += 1
        return True

    def seen(self) -> RingObserved:
        """What is left when nobody can go on."""
        s, done = self.setup, (0.0, 0)
        full = done if self.consumed == s.rounds else self.full[self.consumed % s.stages].left()
        empty = done if self.produced == s.rounds else self.empty[self.produced % s.stages].left()
        return RingObserved(self.result, self.memory, self.produced, self.consumed, full, empty)


def outcomes(setup: MbarrierSetup, waits: tuple[bool, bool] = (True, True)) -> Iterator[RingObserved]:
    """What may be observed: some orders of many, each where loads come early or late and one side or the other first.

    Args:
        setup: of the ring.
        waits: whether the consumers wait for full, and the producer for empty buffers.
    """
    for early in (False, True):
        for first in (0, 1):
            ring = _Ring(setup, early, waits)
            sides = [ring.produce, ring.consume][:: 1 - 2 * first]
            try:
                while any(side() for side in sides) or ring.arrive():
                    pass
            except ValueError:
                continue  # undefined behaviour: nothing is known
            yield ring.seen()
