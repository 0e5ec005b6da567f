# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links: shared fairly and never idle, crossed once by a multicast, broken ones; machines with other networks."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from timed_programs import (
    ALL,
    K,
    P,
    V,
    X,
    Y,
    between,
    broadcast,
    is_,
    message,
    minus,
    mod,
    plus,
    program,
    shifts,
)

from tilewright.core.errors import UserError
from tilewright.sim.coremesh import library
from tilewright.sim.coremesh.expressions import Const
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Cores, Loop, Program, Recv, Relay, Route, Send, Wait
from tilewright.sim.coremesh.timing import time_program

IDEAL = machine("wse2")
AXES = pytest.mark.parametrize("axis", ["x", "y"])


def shared(length: int, flows: list[tuple[int, int, int]], ticks: int) -> list[int]:
    """Ends of flows (source, target, start)."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*flows, strict=True)]
    ends = np.zeros(len(flows), dtype=np.int64)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*columns, ends)]
    *rest, out = pointers
    share = library.libtwmesh().twmesh_share
    assert share(ctypes.c_int64(length), ctypes.c_int64(len(flows)), *rest, ctypes.c_int64(ticks), out) == 0
    return list(ends)


def distance(axis: str, length: int, hops: int) -> Program:
    """All cores send `hops` further at once: each link carries as many flows."""
    at, size = (X, (1, length)) if axis == "x" else (Y, (length, 1))
    body = [
        Send(between(at, 0, length - 1 - hops), "r", V, "s"),
        Recv(between(at, hops, length - 1), "r", V, "t"),
        Wait(("s", "t")),
    ]
    return program(*size, 60, [Route("r", axis, plus(P, -hops))], body)


@AXES
@pytest.mark.parametrize("hops", [1, 2, 3, 5])
def test_saturation(axis: str, hops: int) -> None:
    """k flows over one link get 1 / k each; the work of all is done as fast as the link allows."""
    timing = time_program(distance(axis, 24, hops), IDEAL)
    assert timing.cycles == 60 * hops + hops + 5
    assert timing.loads.max() == hops * 60 * 4
    assert timing.split.idle == 60 * (hops - 1)


def test_shares_are_max_min_fair_and_work_conserving() -> None:
    """A long flow that is held back leaves its links to short ones; who is alone has all."""
    assert shared(4, [(0, 3, 0)], 60) == [60]
    # Two meet on link 1 -> 2 and halve it; link 3 -> 4 is the third's alone.
    assert shared(6, [(0, 2, 0), (1, 3, 0), (3, 4, 0)], 60) == [120, 120, 60]
    # Three meet on one link, and each leaves two thirds of the others' links to others.
    assert shared(8, [(0, 4, 0), (1, 4, 0), (3, 4, 0), (5, 6, 0)], 60) == [180, 180, 180, 60]
    # What a flow held back elsewhere does not use, the others have: 1/3, 1/3, 1/3 on link 2 -> 3 and 2/3 on 0 -> 1.
    assert shared(6, [(0, 3, 0), (1, 3, 0), (2, 3, 0)], 90) == [270, 270, 270]
    # The first is alone for 30, then two halve the link: 30 left take 60; the other has all for its last 30.
    assert shared(3, [(0, 2, 0), (1, 2, 30)], 60) == [90, 120]


def test_total_work_is_conserved() -> None:
    """Flows that start at any time over one link end when its work is done: it is idle only while nothing is there."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        starts = rng.integers(0, 200, 6)
        ends = shared(8, [(source, 7, int(start)) for source, start in enumerate(starts)], 50)
        busy = 0
        for start in sorted(starts):
            busy = max(busy, start) + 50
        assert max(ends) == busy
        assert all(end >= start + 50 for start, end in zip(starts, ends, strict=True))


@AXES
def test_a_multicast_crosses_each_link_once(axis: str) -> None:
    """From the middle to all: as long as to the farthest alone, and no link carries more than once."""
    timing = time_program(broadcast(axis, 15, 9, root=6), IDEAL)
    assert timing.cycles == time_program(message(axis, 15, 9, 6, 14), IDEAL).cycles
    assert timing.loads.max() == 9 * 4
    assert timing.byte_hops == 14 * 9 * 4


@AXES
def test_a_torus_takes_the_shorter_way(axis: str) -> None:
    """Cannon's ring is closed by one link of one hop."""
    torus = machine("wse2", topology="torus", routing="packets")
    assert time_program(message(axis, 9, 4, 0, 8), torus).cycles == 4 + 1 + 5
    assert time_program(message(axis, 9, 4, 0, 4), torus).cycles == 4 + 4 + 5
    size = (1, 9) if axis == "x" else (9, 1)
    timing = time_program(shifts(*size, 7, folded=False), torus)
    assert timing.cycles == 9 * (7 + 1 + 5)
    assert (timing.loads[0 if axis == "x" else 2] == 9 * 7 * 4).all()


def test_wormhole_writes_take_40_and_10_per_hop() -> None:
    """tt-npe: latency by hops; bandwidth by size of packet (128 bytes at 5.5 bytes a cycle)."""
    for hops in (1, 2, 4):
        one = time_program(message("x", 8, 32, 0, hops), machine("wormhole")).cycles
        assert one == pytest.approx(40 + 10 * hops + 128 / 5.5, rel=0.05)


def test_an_exchange_knows_no_distance() -> None:
    """Any core reaches any other in the same time; links are not shared."""
    ipu = machine("ipu")
    times = {time_program(message("x", 46, 83, 0, hops), ipu).cycles for hops in (1, 7, 45)}
    assert times == {81.0}  # 332 bytes at 4.15 a cycle, and one of the instruction
    assert time_program(distance("x", 24, 5), ipu).loads.sum() == 0


def test_broken_links_and_cores() -> None:
    """Fixed routes cannot avoid them, packets get around in two hops; a core that computes must be alive."""
    where = ((0, 3, "east"),)
    with pytest.raises(UserError, match=r"link from core \(0, 3\) to the east is broken.*another part of the grid"):
        time_program(message("x", 9, 4, 0, 8), machine("wse2", dead_links=where))
    packets = machine("wse2", dead_links=where, routing="packets")
    assert time_program(message("x", 9, 4, 0, 8), packets).cycles == 4 + 8 + 5 + 2
    assert time_program(message("x", 9, 4, 8, 0), packets).cycles == 4 + 8 + 5
    dead = machine("wse2", dead_cores=((0, 4),))
    assert time_program(message("x", 9, 4, 0, 3), dead).cycles == 4 + 3 + 5
    with pytest.raises(UserError, match=r"link from core \(0, 3\) to the east is broken"):
        time_program(message("x", 9, 4, 0, 8), dead)
    with pytest.raises(UserError, match=r"core \(0, 4\) is dead, and the program receives there: use a smaller grid"):
        time_program(message("x", 9, 4, 0, 4), dead)


def test_errors() -> None:
    """Whoever waits for what never comes is told so; unknown names and sizes are."""
    at = X
    routes = [Route("r", "x", plus(P, -1))]
    lonely = program(1, 4, 1, routes, [Recv(is_(at, 2), "r", V, "t"), Wait(("t",))])
    with pytest.raises(UserError, match=r"core \(0, 2\) or one behind waits for a message that is not sent before"):
        time_program(lonely, IDEAL)
    circle = program(1, 4, 1, [Route("r", "x", mod(plus(P, -1), 4))], [Relay(ALL, "r", "r", V, "s"), Wait(("s",))])
    with pytest.raises(UserError, match="deadlock: the relay in column . waits, around a circle of relays, for itself"):
        time_program(circle, IDEAL)
    alone = program(1, 4, 1, routes, [Loop(1, (Send(Cores(zero=(minus(at, Const(0)), K)), "q", V, "s"),))])
    with pytest.raises(UserError, match="has no route 'q': it has r"):
        time_program(alone, IDEAL)
    with pytest.raises(UserError, match="takes 1 x 900 cores, and machine 'wse2' has 994 x 750: use a smaller grid"):
        time_program(message("x", 900, 1, 0, 1), IDEAL)
    with pytest.raises(UserError, match="no synchronisation 'bsp': use one of dataflow, rendezvous, lockstep"):
        time_program(message("x", 9, 1, 0, 1), IDEAL, sync="bsp")  # pyright: ignore
    with pytest.raises(UserError, match="divides by 0: as in MLIR"):
        time_program(program(1, 4, 1, [Route("r", "x", mod(P, 0))], [Send(ALL, "r", V, "s")]), IDEAL)
    with pytest.raises(UserError, match="asks for the index of loop 1, and there are 0 around it"):
        time_program(program(1, 4, 1, routes, [Send(Cores(zero=(K,)), "r", V, "s")]), IDEAL)
