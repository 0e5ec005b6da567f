# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What reductions along a line cost, and which one to take.

The model is that of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024), with an error below 4 % on a CS-2:
``T = max(C, E / Nl + L) + (2 T_R + 1) D`` cycles, where C is the number of wavelets that the busiest core handles, E
that of wavelets times hops, Nl the number of links in use, L the longest distance, D the number of dependent software
stages, and T_R the latency between a core and its router.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.plan.mesh.reduction import Scheme, root_place

RAMP = 2


@dataclass(frozen=True)
class Estimate:
    """The terms of the model.

    Attributes:
        contention: C, wavelets; ``energy``: E, wavelets times hops; ``links``: Nl; ``distance``: L, hops;
            ``depth``: D, stages; ``channels``: virtual channels that the algorithm needs on its axis.
    """

    contention: float
    energy: float
    links: int
    distance: int
    depth: int
    channels: int

    def cycles(self, ramp: int = RAMP) -> float:
        """The modelled time."""
        return max(self.contention, self.energy / self.links + self.distance) + (2 * ramp + 1) * self.depth


def reduce_cycles(scheme: Scheme, length: int, wavelets: int, ramp: int = RAMP) -> float:
    """Cycles to reduce a vector of so many wavelets along a line into one core."""
    if length == 1:
        return 0.0
    if scheme.kind in ("star", "tree"):
        return _flat(scheme, length, wavelets).cycles(ramp)
    return sum(level.cycles(ramp) for level in levels(scheme, length, wavelets))


def broadcast_cycles(length: int, wavelets: int, distance: int, ramp: int = RAMP) -> float:
    """Cycles of a multicast whose furthest receiver is ``distance`` hops away."""
    if length == 1:
        return 0.0
    return Estimate(wavelets, wavelets * (length - 1), length - 1, distance, 1, 1).cycles(ramp)


def allreduce_cycles(scheme: Scheme, length: int, wavelets: int, ramp: int = RAMP) -> float:
    """Cycles to reduce along a line for all of its cores."""
    if length == 1:
        return 0.0
    if scheme.kind == "ring":
        return 2 * (length - 1) * wavelets / length + 4 * length - 6 + 2 * (length - 1) * (2 * ramp + 1)
    root = root_place(scheme, length)
    distance = max(root, length - 1 - root)
    return reduce_cycles(scheme, length, wavelets, ramp) + broadcast_cycles(length, wavelets, distance, ramp)


def levels(scheme: Scheme, length: int, wavelets: int) -> list[Estimate]:
    """One estimate per level of chains: a level ends before the next begins, as its roots wait.

    A core handles each wavelet once, a root those of two chains that meet in it: they share its ramp.
    """
    counts, spacing, found = scheme.counts(length), 1, []
    for members, groups in zip(counts, counts[1:], strict=False):
        size = -(-members // groups)
        depth = size // 2 if scheme.two_way else size - 1
        if not depth:
            continue
        hops = spacing * depth
        sides = 2 if scheme.two_way and size > 2 else 1
        found.append(Estimate(sides * wavelets, wavelets * hops, hops, hops, depth, 2))
        spacing *= size
    return found


def channels(scheme: Scheme, length: int) -> int:
    """Virtual channels that an allreduce needs on its axis: of a level of chains two, by which links alternate."""
    if length == 1:
        return 0
    if scheme.kind == "ring":
        return 1
    own = _flat(scheme, length, 1).channels if scheme.kind in ("star", "tree") else 2 * len(levels(scheme, length, 1))
    return own + 1


def choose(
    length: int, wavelets: int, ramp: int = RAMP, most_channels: int = 21, everywhere: bool = True, ring: bool = False
) -> Scheme:
    """The scheme that the model says is fastest, of those that need at most so many channels.

    Args:
        everywhere: whether the result is wanted by all cores of a line, or by one.
        ring: whether vectors may be cut in chunks, as a ring needs.

    Raises:
        UserError: no scheme needs as few.
    """
    candidates = [Scheme("star"), Scheme("chain"), Scheme("tree"), Scheme("two_phase")]
    candidates += [Scheme("k_tree", number) for number in (1, 2, 3)]
    candidates += [Scheme("ring")] if ring and everywhere else []
    fitting = [scheme for scheme in candidates if channels(scheme, length) <= most_channels]
    if not fitting:
        least = min(channels(scheme, length) for scheme in candidates)
        raise UserError(
            f"An allreduce along {length} cores needs at least {least} channels, and {most_channels} are free. "
            "Free some by sharing them between collectives that do not overlap."
        )
    cost = allreduce_cycles if everywhere else reduce_cycles
    return min(fitting, key=lambda scheme: (cost(scheme, length, wavelets, ramp), channels(scheme, length)))


def _flat(scheme: Scheme, length: int, wavelets: int) -> Estimate:
    if scheme.kind == "star":
        hops = wavelets * length * (length - 1) / 2
        return Estimate(wavelets * (length - 1), hops, length - 1, length - 1, 1, length - 1)
    steps = (length - 1).bit_length()
    hops = sum(
        wavelets * 2**step * sum(1 for at in range(0, length - 2**step, 2 ** (step + 1))) for step in range(steps)
    )
    return Estimate(wavelets * steps, hops, length - 1, length - 1, steps, steps)
