# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a program on a grid that is too large to simulate, from smaller grids.

Compute-shift rounds with tiles of one size take a time that is affine in the side of the grid once the grid is larger
than what the rounds' messages cross: so many rounds more, of the same time each. Where three grids confirm that to the
tick, a fourth follows. Programs in which cores also do something in some of a ring's rounds alone are near such a line:
they say how much of a bend is allowed. Nothing says that it ends: `Grown.bend` tells how far the line is to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing.run import Sync, time_program


@dataclass(frozen=True)
class Grown:
    """A time that was extrapolated, or simulated where the grid is no larger than the samples would be.

    Attributes:
        cycles: on the grid that was asked for.
        samples: (side, cycles) pairs that were simulated.
        bend: by which part cycles per side differ between the two halves of the samples; 0 on a line.
    """

    cycles: float
    samples: tuple[tuple[int, float], ...]
    bend: float = 0.0


def time_grown(
    make: Callable[[int], Program],
    side: int,
    machine: Machine,
    *,
    sync: Sync = "dataflow",
    least: int = 16,
    most: int = 96,
    step: int = 8,
    bend: float = 0.0,
) -> Grown:
    """Return the time of ``make(side)``.

    Args:
        make: the program on a square grid of a side, with tiles that do not depend on it.
        least: the first sample's side at least; doubled until three samples, ``step`` apart, are on a line.
        most: the last sample's side at most.
        bend: by which part the samples' two slopes may differ; the second one is then taken.

    Raises:
        UserError: no three samples are.
    """
    samples: dict[int, float] = {}

    def sampled(one: int) -> float:
        if one not in samples:
            samples[one] = time_program(make(one), machine, sync=sync, loads=False).cycles
        return samples[one]

    while least + 2 * step <= most:
        first = least + (side - least) % step
        if side <= first + 2 * step:
            return Grown(sampled(side), tuple(sorted(samples.items())))
        low, middle, high = (sampled(first + step * number) for number in range(3))
        slope, bent = (high - low) / (2 * step), abs(low + high - 2 * middle)
        found = tuple(sorted(samples.items()))
        if bent < 1.5e-3:
            return Grown(low + slope * (side - first), found)
        if bent < bend * (high - middle):
            return Grown(high + (high - middle) / step * (side - first - 2 * step), found, bent / (high - middle))
        least *= 2
    raise UserError(
        f"times on grids of {sorted(samples)} rows are not on a line: {[samples[one] for one in sorted(samples)]} "
        f"cycles; simulate the {side} x {side} grid itself, or allow larger samples than {most}"
    )
