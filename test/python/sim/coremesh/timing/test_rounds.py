# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounds of compute-shift: synchronisation, fabric, periods, rows alike, scale."""

from __future__ import annotations

import numpy as np
import pytest
from timed_programs import (
    K,
    P,
    V,
    X,
    chain,
    is_,
    k_tree,
    k_tree_routes,
    minus,
    plus,
    program,
    ring_allreduce,
    shifts,
    star,
    tree,
    two_phase,
)

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Const
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Compute, Cores, Cost, Loop, Program, Recv, Route, Send, Wait
from tilewright.sim.coremesh.timing import time_program

IDEAL = machine("wse2")
#: Latency of hops alone, as in the reference's max-plus script.
HOPS_ONLY = machine("wse2", ramp_cycles=0, stage_cycles=0)
#: Reference, section 2.11: N, compute, wavelets, then thousands of cycles: MeshGEMM, Cannon, in lockstep, rendezvous.
TABLE = [
    (360, 20, 9, 7.2, 7.5, 133, 262),
    (720, 20, 9, 14.4, 15.1, 525, 1042),
    (720, 100, 36, 72.0, 72.7, 544, 1061),
    (720, 1000, 144, 720, 720, 720, 1139),
]


def max_plus(length: int, folded: bool, compute: int, wavelets: int, meet: bool) -> int:
    """Clocks of N cores on a ring, written down once more."""
    place = np.arange(length)
    if folded:
        source = np.where(place % 2 == 0, place - 2, place + 2)
        source[0], source[-1] = 1, length - 3 if length % 2 else length - 2
        source[-2] = length - 1 if length % 2 else length - 4
    else:
        source = (place - 1) % length
    hops, clock = abs(source - place), np.zeros(length, dtype=np.int64)
    for _ in range(length):
        arrived = clock[source] + hops + wavelets
        done = clock + max(compute, wavelets)
        if meet:
            arrived = np.maximum(clock[source], clock + hops) + hops + wavelets
            done[source] = np.maximum(done[source], arrived)
        clock = np.maximum(done, arrived)
    return int(clock.max())


@pytest.mark.parametrize("row", TABLE)
def test_cannon_and_meshgemm_under_three_semantics(row: tuple) -> None:
    """All numbers of the table; Cannon in lockstep pays N - 1 hops a round, of which the table counts N."""
    length, compute, wavelets, mesh, cannon, lockstep, rendezvous = row
    programs = {folded: shifts(1, length, wavelets, compute, folded) for folded in (True, False)}
    for folded, thousands in ((True, mesh), (False, cannon)):
        cycles = time_program(programs[folded], HOPS_ONLY).cycles
        assert cycles == max_plus(length, folded, compute, wavelets, meet=False)
        assert cycles / 1000 == pytest.approx(thousands, abs=0.051 if thousands < 100 else 0.51)
    for folded, hops in ((True, 2), (False, length - 1)):
        cycles = time_program(programs[folded], HOPS_ONLY, sync="lockstep").cycles
        assert cycles == length * max(compute, wavelets + hops)
        if not folded:
            assert cycles / 1000 == pytest.approx(lockstep, rel=0.005)
    cycles = time_program(programs[False], HOPS_ONLY, sync="rendezvous").cycles
    assert cycles == max_plus(length, False, compute, wavelets, meet=True)
    assert cycles / 1000 == pytest.approx(rendezvous, abs=0.51)


def test_cost_per_round_grows_with_the_line_in_lockstep_only() -> None:
    """Slope of Cannon's round: alpha per core; of MeshGEMM's: 0; in dataflow both are flat."""

    def per_round(length: int, folded: bool, sync: str) -> float:
        return time_program(shifts(1, length, 9, 20, folded), IDEAL, sync=sync).cycles / length

    assert per_round(200, False, "lockstep") - per_round(100, False, "lockstep") == 100
    assert per_round(200, True, "lockstep") == per_round(100, True, "lockstep") == 20
    assert per_round(200, True, "rendezvous") == per_round(100, True, "rendezvous")
    assert abs(per_round(200, False, "dataflow") - per_round(100, False, "dataflow")) < 0.1


@pytest.mark.parametrize("sync", ["dataflow", "rendezvous", "lockstep"])
@pytest.mark.parametrize(("wavelets", "compute"), [(9, 40), (36, 2)])
def test_meshgemm_is_never_behind_but_for_the_last_wrap(sync: str, wavelets: int, compute: int) -> None:
    for size in (8, 9, 31):
        mesh, cannon = (
            time_program(shifts(size, size, wavelets, compute, folded), IDEAL, sync=sync).cycles
            for folded in (True, False)
        )
        assert mesh <= cannon + (2 * size if sync == "dataflow" else 0)


def test_a_long_tile_stalls_its_sender_where_the_fabric_is_shallow() -> None:
    """Two wavelets per hop: what is longer leaves as its receiver takes it; elastic enough, nothing changes."""
    deep = shifts(1, 31, 50, 10, folded=False)
    free = time_program(deep, IDEAL).cycles
    held = [time_program(deep, IDEAL, fabric_entries=entries).cycles for entries in (0, 1, 2, 50)]
    assert held == sorted(held, reverse=True)
    assert held[0] > free
    assert held[-1] == free


def test_back_pressure_ends_where_the_receiver_begins() -> None:
    """A receiver busy with a kernel stops the sender after 2 wavelets a hop; the sender is done when the rest is in."""
    body = [
        Send(is_(X, 0), "r", V, "s"),
        Compute(is_(X, 3), "busy", (), (), Cost(macs=1000), tuple),
        Recv(is_(X, 3), "r", V, "t"),
        Wait(("s", "t")),
    ]
    one = program(1, 4, 100, [Route("r", "x", Const(0))], body)
    assert time_program(one, IDEAL).ends[0].tolist() == [100, 0, 0, 1100]
    assert time_program(one, IDEAL, fabric_entries=2).ends[0].tolist() == [1000 + 100 - 2 * 3 + 3, 0, 0, 1100]
    assert time_program(one, IDEAL, fabric_entries=40).ends[0].tolist() == [100, 0, 0, 1100]


def many() -> list[Program]:
    tall = two_phase("y", 3, 4, 6)
    allreduce = program(12, 15, 7, [*k_tree_routes("x", 15, 3), *k_tree_routes("y", 12, 4)], [])
    body = (*k_tree("x", 15, 3, "v"), *k_tree("y", 12, 4, "v"))
    allreduce = Program("allreduce", 12, 15, allreduce.buffers, allreduce.routes, (), (), body)
    return [
        shifts(13, 11, (9, 4), 7, rounds=40),
        shifts(7, 7, 30, 2, folded=False, rounds=50),
        shifts(16, 16, 5, 100),
        ring_allreduce("y", 17, 3),
        chain("x", 9, 4, others=5),
        chain("y", 9, 4, others=5),
        star("x", 9, 4),
        tree("y", 4, 5),
        tall,
        allreduce,
    ]


@pytest.mark.parametrize("one", many(), ids=lambda one: f"{one.name}{one.height}x{one.width}")
@pytest.mark.parametrize("sync", ["dataflow", "rendezvous", "lockstep"])
def test_rows_alike_and_periods_change_nothing(one: Program, sync: str) -> None:
    """Whether rows are shared and loops left early or not: each core's clock, each link's load, the split."""
    full = time_program(one, IDEAL, sync=sync, share=False, period=False)
    assert full.remembered == 0
    for period in (False, True):
        quick = time_program(one, IDEAL, sync=sync, period=period)
        assert (quick.ends == full.ends).all()
        assert (quick.loads == full.loads).all()
        assert quick.split == full.split
        again = time_program(one, IDEAL, sync=sync, period=period)
        assert (again.ends == quick.ends).all() and again.split == quick.split


@pytest.mark.parametrize("size", [3, 8, 31, 128])
@pytest.mark.parametrize(("wavelets", "compute"), [(9, 40), (36, 2)])
@pytest.mark.parametrize("entries", [None, 2])
def test_extrapolated_to_the_cycle(size: int, wavelets: int, compute: int, entries: int | None) -> None:
    """More rounds than the ring has cores: also where clocks repeat only once all have gone round."""
    one = shifts(size, size, wavelets, compute, rounds=3 * size + 5)
    whole = time_program(one, IDEAL, fabric_entries=entries, period=False)
    early = time_program(one, IDEAL, fabric_entries=entries)
    assert not whole.extrapolated
    assert early.extrapolated or compute < wavelets
    assert (whole.ends == early.ends).all() and (whole.loads == early.loads).all() and whole.split == early.split
    if early.extrapolated:
        assert "extrapolated" in str(early)


def test_a_result_says_what_it_is() -> None:
    text = str(time_program(shifts(4, 4, 9, 40), machine("toy8x8", "calibrated"), sync="rendezvous", fabric_entries=2))
    for part in ("simulated (T1)", "toy8x8", "preset calibrated", "1 GHz", "rendezvous", "2 wavelets in the fabric"):
        assert part in text


def test_energy_is_time_at_nominal_power() -> None:
    timing = time_program(shifts(4, 4, 9, 40), machine("wse2"))
    assert timing.joules == timing.cycles / 1.1e9 * 15000


@pytest.mark.parametrize("period", [False, True])
def test_a_whole_machine(period: bool) -> None:
    """720 rounds of 720 x 720 cores, in full and by its period: the same. `tools/bench/run mesh` has the seconds."""
    timing = time_program(shifts(720, 720, 18, 216), IDEAL, period=period, loads=False)
    assert timing.cycles == 720 * 216
    assert timing.extrapolated == period


@pytest.mark.parametrize("count", [10**6, 2**62])
def test_loops_without_end(count: int) -> None:
    """Turns that differ are not run for ever: the limit names where it stands; alike ones are left early."""
    hot = Compute(Cores(zero=(plus(K, -7),)), "k", (), (), Cost(macs=5), lambda: ())
    differ = program(2, 3, 1, [], [Loop(count, (hot,))])
    with pytest.raises(UserError, match=r"more than the limit of 1000 instructions.*instruction 1, in turn 999.*raise"):
        time_program(differ, IDEAL, limit=1000)
    alike = program(2, 3, 1, [], [Loop(count, (Compute(Cores(), "k", (), (), Cost(macs=5), lambda: ()),))])
    if count > 2**60:
        with pytest.raises(UserError, match="more than 2.60 ticks"):
            time_program(alike, IDEAL, limit=1000)
    else:
        assert time_program(alike, IDEAL, limit=1000).cycles == 5 * count
    with pytest.raises(UserError, match="give 1 or more"):
        time_program(alike, IDEAL, limit=0)


def test_what_the_functional_tier_refuses() -> None:
    """Sent and never received; read while on its way; asked for, the checks see both."""
    route = Route("r", "x", plus(P, -1))
    fill = Compute(Cores(), "k", (), (V,), Cost(), lambda: (np.float32(0),))
    send = Send(is_(X, 0), "r", V, "sent")
    lost = program(1, 2, 4, [route], [fill, send, Wait(("sent",))])
    early = program(1, 2, 4, [route], [fill, send, Recv(is_(X, 1), "r", V, "got"), fill, Wait(("sent", "got"))])
    for broken, why in ((lost, "receive"), (early, "'v'")):
        time_program(broken, IDEAL)
        with pytest.raises(UserError, match=why):
            time_program(broken, IDEAL, check=True)


def test_a_cycle_of_waits() -> None:
    """Each core waits for the other before it sends: an error, with and without checks."""
    routes = [Route("r", "x", minus(1, P))]
    recv = Recv(Cores(), "r", V, "got")
    stuck = program(1, 2, 4, routes, [recv, Wait(("got",)), Send(Cores(), "r", V, "sent"), Wait(("sent",))])
    for check in (False, True):
        with pytest.raises(UserError):
            time_program(stuck, IDEAL, check=check)
