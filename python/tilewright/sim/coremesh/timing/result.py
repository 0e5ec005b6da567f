# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a timing says."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.sim.coremesh.machine import Machine


@dataclass(frozen=True)
class Split:
    """What the longest way to the end of the last core is made of, in cycles.

    Attributes:
        compute: kernels.
        communication: messages on the move.
        overhead: fixed costs of rounds and collectives.
        idle: waiting for links, receivers or a place in the fabric that others hold.
    """

    compute: float
    communication: float
    overhead: float
    idle: float


@dataclass(frozen=True)
class Timing:
    """The simulated time of a program, with all that it depends on.

    Attributes:
        cycles: from the start to the end of the last core.
        split: of the critical path.
        ends: when each core is done, in cycles, float64 [height, width].
        loads: bytes over the link that leaves each core to the east, west, south, north, int64 [4, height, width];
            empty where they were not asked for.
        machine: with its preset and clock.
        sync, fabric_entries: semantics of messages.
        tier: ``T1``: timing of the whole machine.
        extrapolated: whether loops were left early because the machine was in a state in which it had been before.
        computed, remembered: operations on rows of cores that were computed, and that were known from rows alike.
    """

    cycles: float
    split: Split
    ends: np.ndarray = field(repr=False)
    loads: np.ndarray = field(repr=False)
    machine: Machine = field(repr=False)
    sync: str
    fabric_entries: int | None
    tier: str
    extrapolated: bool
    computed: int = field(repr=False)
    remembered: int = field(repr=False)

    @property
    def seconds(self) -> float:
        """The time at the machine's clock."""
        return self.machine.seconds(self.cycles)

    @property
    def byte_hops(self) -> int:
        """Bytes times the links that they crossed."""
        return int(self.loads.sum())

    @property
    def joules(self) -> float:
        """Energy at the nominal power of the whole machine, as WaferLLM counts it."""
        return self.seconds * self.machine.mesh.watts

    def __str__(self) -> str:
        """One line that says what was simulated and how."""
        held = "any number" if self.fabric_entries is None else str(self.fabric_entries)
        return (
            f"{self.cycles:,.0f} cycles simulated ({self.tier}) on {self.machine.name}, preset {self.machine.preset}, "
            f"{self.machine.clock / 1e9:g} GHz, {self.sync}, {held} wavelets in the fabric per hop"
            f"{', extrapolated' if self.extrapolated else ''}"
        )
