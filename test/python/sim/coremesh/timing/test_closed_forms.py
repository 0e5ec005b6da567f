# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives take what Luczynski et al., "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) write, to the cycle."""

from __future__ import annotations

import pytest
from timed_programs import (
    alternating_chain,
    broadcast,
    broadcast_2d,
    chain,
    message,
    ring_allreduce,
    star,
    tree,
    two_phase,
)

from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program

IDEAL = machine("wse2")
AXES = pytest.mark.parametrize("axis", ["x", "y"])
#: Cycles of a software stage: two ramps and an instruction.
STAGE = 2 * IDEAL.mesh.ramp_cycles + 1


def cycles(program: Program) -> float:
    return time_program(program, IDEAL).cycles


@AXES
@pytest.mark.parametrize(("wavelets", "hops"), [(1, 1), (1, 8), (5, 3), (144, 7)])
def test_message(axis: str, wavelets: int, hops: int) -> None:
    """On its way 2 ramps and its hops, wavelets one a cycle; an instruction's cycle at each end."""
    on_the_way = 2 * IDEAL.mesh.ramp_cycles + hops + wavelets - 1
    for source, target in ((0, hops), (hops, 0)):
        assert cycles(message(axis, 9, wavelets, source, target)) == on_the_way + 2


@AXES
@pytest.mark.parametrize(("length", "wavelets"), [(2, 1), (3, 4), (17, 5), (64, 1)])
def test_chain(axis: str, length: int, wavelets: int) -> None:
    assert cycles(chain(axis, length, wavelets)) == wavelets + (STAGE + 1) * (length - 1)
    assert cycles(chain(axis, length, wavelets, others=3)) == wavelets + (STAGE + 1) * (length - 1)


@AXES
@pytest.mark.parametrize(("length", "wavelets"), [(3, 1), (4, 4), (17, 5), (64, 1)])
def test_chain_of_relays_that_feed_each_other(axis: str, length: int, wavelets: int) -> None:
    """Routes in turn, and each started before what it waits for."""
    assert cycles(alternating_chain(axis, length, wavelets)) == wavelets + (STAGE + 1) * (length - 1)


@AXES
@pytest.mark.parametrize(("length", "wavelets"), [(2, 1), (3, 4), (17, 5), (64, 1)])
def test_star(axis: str, length: int, wavelets: int) -> None:
    """One cycle more than B (P - 1) + 2 T_R + 1, the first hop: of two cores, a star and a chain are one program."""
    assert cycles(star(axis, length, wavelets)) == wavelets * (length - 1) + STAGE + 1


@AXES
@pytest.mark.parametrize(("levels", "wavelets"), [(1, 1), (3, 4), (5, 7)])
def test_tree(axis: str, levels: int, wavelets: int) -> None:
    """Depth and contention are logarithmic; the messages' hops add up to the length of the line."""
    assert cycles(tree(axis, levels, wavelets)) == levels * (wavelets + STAGE) + 2**levels - 1


@AXES
@pytest.mark.parametrize(("groups", "size", "wavelets"), [(2, 3, 1), (3, 2, 4), (5, 5, 7), (8, 9, 3)])
def test_two_phase(axis: str, groups: int, size: int, wavelets: int) -> None:
    depth = groups + size - 2
    assert cycles(two_phase(axis, groups, size, wavelets)) == 2 * wavelets + groups * size - 1 + STAGE * depth


@AXES
@pytest.mark.parametrize(("length", "wavelets"), [(2, 1), (3, 4), (17, 5), (64, 1)])
def test_broadcast(axis: str, length: int, wavelets: int) -> None:
    assert cycles(broadcast(axis, length, wavelets)) == wavelets + length + 2 * IDEAL.mesh.ramp_cycles


@AXES
@pytest.mark.parametrize(("length", "part"), [(2, 1), (3, 4), (17, 5), (64, 1)])
def test_ring_allreduce(axis: str, length: int, part: int) -> None:
    """2 (P - 1) B / P + 4 P - 6 + 2 (P - 1) (2 T_R + 1), of parts of B / P."""
    steps = 2 * (length - 1)
    assert cycles(ring_allreduce(axis, length, part)) == steps * part + 4 * length - 6 + steps * STAGE


@pytest.mark.parametrize(("height", "width", "wavelets"), [(2, 2, 1), (5, 7, 4), (16, 3, 9)])
def test_broadcast_2d(height: int, width: int, wavelets: int) -> None:
    """Above the bound B + M + N - 2 + 2 T_R + 1 by the second stage: columns start once the row's core has all."""
    bound = wavelets + height + width - 2 + STAGE
    assert cycles(broadcast_2d(height, width, wavelets)) == bound + wavelets + STAGE


@pytest.mark.parametrize("axis", ["x", "y"])
def test_split_of_a_chain(axis: str) -> None:
    """All of it is communication, and each link carries the vector once."""
    timing = time_program(chain(axis, 17, 5, others=2), IDEAL)
    assert timing.split.communication == timing.cycles
    assert timing.byte_hops == 16 * 5 * 4 * 2
    assert timing.loads[1 if axis == "x" else 3].max() == timing.loads.max() == 20
