# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the wavelet simulator found out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tilewright.sim.coremesh.wavelets.events import Event

#: What leaves a router, in the order of `Outcome.links`.
OUTPUTS = ("north", "south", "east", "west", "ramp")


@dataclass(frozen=True)
class Outcome:
    """A simulated run.

    Attributes:
        program, machine, preset: what ran where.
        cycles: until the last core was done.
        finish: cycle at which each core was done, int64 [height, width].
        compute: cycles that each core spent in kernels, int64 [height, width].
        links: wavelets that left each router by each of `OUTPUTS`, int64 [height, width, 5].
        events: what the traced cores did, in the order of the ends.
    """

    program: str
    machine: str
    preset: str
    cycles: int
    finish: np.ndarray
    compute: np.ndarray
    links: np.ndarray
    events: tuple[Event, ...] = ()

    def digest(self) -> str:
        """A hash of all numbers: two runs of one program must agree."""
        parts = (np.int64(self.cycles).tobytes(), self.finish.tobytes(), self.compute.tobytes(), self.links.tobytes())
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def __str__(self) -> str:
        """One line, with what the numbers stand for."""
        return (
            f"{self.program}: {self.cycles} cycles, simulated wavelet by wavelet on {self.machine} ({self.preset}), "
            f"{self.links[..., :4].sum()} wavelet-hops, at most {self.links[..., :4].max(initial=0)} on one link"
        )
