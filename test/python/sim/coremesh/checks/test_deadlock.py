# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verdicts on deadlocks, with the cycle (reference test 29); orphans; both ways to decide agree on small grids."""

from dataclasses import replace

import numpy as np
import pytest
from small_programs import (
    ALL,
    F32,
    E,
    X,
    all_gather,
    at_least,
    cannon,
    chain,
    mesh_gemm,
    only,
    slot,
    summa,
    two_phase,
)

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.multicast_product import all_gather_product
from tilewright.plan.mesh.multicast_product import summa as planned_summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.checks.deadlock import deadlock_verdict
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.kahn import Network
from tilewright.sim.coremesh.checks.soundness import check_soundness
from tilewright.sim.coremesh.expressions import Dim
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Buffer, Loop, Place, Program, Recv, Relay, Route, Send, Wait
from tilewright.sim.coremesh.steps import unroll

WSE = machine("wse2")
HAND = [mesh_gemm(1), mesh_gemm(5), cannon(4), summa(5), all_gather(4), chain(7, 2), two_phase(15, 3), two_phase(25, 5)]
KINDS = ("star", "chain", "tree", "two_phase", "k_tree", "ring")
PLANNED = [
    *(shifted_product(Product(7, 11, 5, h, w, skew_a="run")) for h, w in ((3, 3), (2, 3), (4, 4))),
    shifted_product(Product(6, 6, 6, 4, 4), "cannon"),
    planned_summa(Product(7, 11, 5, 2, 3)),
    all_gather_product(Product(7, 11, 5, 3, 2)),
    transposed_product(Product(8, 8, 8, 4, 4)),
    matrix_vector(MatrixVector((12, 20, 6), 4, 5)),
    *(reduction(Reduce(2, 11, 7, schemes=(Scheme(kind),))) for kind in KINDS),
]


def network(program, depth=0):
    return Network(program, Field(program), unroll(program), depth, 4)


@pytest.mark.parametrize("program", [*HAND, *PLANNED], ids=lambda p: f"{p.name} {p.height} x {p.width}")
def test_right_programs_end_by_both_ways_without_any_buffer(program):
    verdict = deadlock_verdict(program, WSE)
    assert verdict.kind == "accept"
    assert "side by side" in verdict.why
    assert network(program).run()


def pair(body, routes=None, width=2, elements=4):
    routes = routes or (Route("east", "x", (E(Dim(0)) - 1).expr), Route("west", "x", (E(Dim(0)) + 1).expr))
    buffers = tuple(Buffer(name, (elements,), F32) for name in "uvw")
    held = tuple(Place(name, (1, width * elements), slot(name), (Dim(0), Dim(1))) for name in "uvw")
    return Program("pair", 1, width, buffers, routes, held, (), tuple(body))


LEFT, RIGHT = only(X), only(X - 1)


def exchange(*body):
    return pair(body)


def test_both_receive_before_they_send():
    """The cycle names cores, instructions and routes, alternating."""
    program = exchange(
        Recv(RIGHT, "east", slot("v"), "r"),
        Recv(LEFT, "west", slot("v"), "r"),
        Wait(("r",)),
        Send(LEFT, "east", slot("u"), "s"),
        Send(RIGHT, "west", slot("u"), "s"),
        Wait(("s",)),
    )
    verdict = deadlock_verdict(program, WSE)
    assert verdict.kind == "deadlock"
    assert verdict.cycle == (
        "core (y=0, x=0): Recv on 'west' (body[1]) needs message 1 on 'west' of core (y=0, x=1), which waits at "
        "Wait for 'r' (body[2])",
        "core (y=0, x=1): Recv on 'east' (body[0]) needs message 1 on 'east' of core (y=0, x=0), which waits at "
        "Wait for 'r' (body[2])",
    )
    with pytest.raises(UserError, match=r"Deadlock: 2 cores wait for ever.*\n  core \(y=0, x=0\): Recv on 'west'"):
        verdict.check()


def sends_first(elements):
    """Both wait for their sends before they receive: what the fabric holds decides."""
    return pair(
        (
            Send(LEFT, "east", slot("u"), "s"),
            Send(RIGHT, "west", slot("u"), "s"),
            Wait(("s",)),
            Recv(RIGHT, "east", slot("v"), "r"),
            Recv(LEFT, "west", slot("v"), "r"),
            Wait(("r",)),
        ),
        elements=elements,
    )


def test_what_routers_hold_decides_between_accept_and_deadlock():
    assert deadlock_verdict(sends_first(2), WSE).kind == "accept"
    verdict = deadlock_verdict(sends_first(3), WSE)
    assert verdict.kind == "deadlock"
    assert "needs core (y=0, x=1) to receive on 'east', which waits at Wait for 's'" in verdict.cycle[0]
    assert deadlock_verdict(sends_first(3), machine("wse2", queue_depth=3)).kind == "accept"


def test_one_order_per_parity_is_no_deadlock():
    """Even cores send first and odd ones receive first: stuck side by side, and decided core by core."""
    program = exchange(
        Send(LEFT, "east", slot("u"), "s"),
        Recv(RIGHT, "east", slot("v"), "r"),
        Wait(("s", "r")),
        Send(RIGHT, "west", slot("u"), "s"),
        Wait(("s",)),
        Recv(LEFT, "west", slot("v"), "r"),
        Wait(("r",)),
    )
    program = replace(program, buffers=tuple(replace(one, shape=(40,)) for one in program.buffers))
    verdict = deadlock_verdict(program, WSE)
    assert verdict.kind == "deadlock" or "each core by itself" in verdict.why
    early = replace(
        program,
        body=(
            Send(LEFT, "east", slot("u"), "s"),
            Wait(("s",)),
            Recv(RIGHT, "east", slot("v"), "r"),
            Wait(("r",)),
            Send(RIGHT, "west", slot("u"), "s"),
            Recv(LEFT, "west", slot("v"), "r"),
            Wait(("s", "r")),
        ),
    )
    verdict = deadlock_verdict(early, WSE)
    assert (verdict.kind, verdict.why) == ("accept", "each core by itself comes to its end (14 steps)")


def test_relays_in_a_circle():
    ring = (Route("ring", "x", ((E(Dim(0)) + 2) % 3).expr),)
    program = pair((Relay(ALL, "ring", "ring", slot("u"), "t"), Wait(("t",))), ring, 3)
    verdict = deadlock_verdict(program, WSE)
    assert verdict.kind == "deadlock"
    assert len(verdict.cycle) == 3
    assert all("Relay 'ring' -> 'ring'" in line for line in verdict.cycle)


def test_relays_without_a_wait():
    ring = (Route("ring", "x", ((E(Dim(0)) + 2) % 3).expr),)
    assert deadlock_verdict(pair((Relay(ALL, "ring", "ring", slot("u"), "t"),), ring, 3), WSE).kind == "deadlock"


@pytest.mark.parametrize("drop", range(3))
def test_a_chain_without_one_of_its_links(drop):
    program = chain(5)
    body = tuple(one for number, one in enumerate(program.body) if number != drop)
    with pytest.raises(UserError, match="on route 'east'.*a (send|receive) without a (receiver|sender)"):
        deadlock_verdict(replace(program, body=body), WSE)


def test_counts_of_sends_and_receives_differ():
    program = exchange(
        Loop(3, (Send(LEFT, "east", slot("u"), "s"),)),
        Loop(2, (Recv(RIGHT, "east", slot("v"), "r"), Wait(("r",)))),
    )
    with pytest.raises(
        UserError, match=r"core \(y=0, x=0\) sends 3 messages on route 'east' to core \(y=0, x=1\), which receives 2"
    ):
        deadlock_verdict(program, WSE)


def test_a_broadcast_root_that_sends_in_another_round():
    program = summa(4)
    *before, loop = program.body
    send = replace(loop.body[0], cores=only((X - E(Dim(2)) + 1) % 4))
    with pytest.raises(UserError, match="sends on route 'x', and no core receives from it there"):
        deadlock_verdict(replace(program, body=(*before, Loop(4, (send, *loop.body[1:])))), WSE)


def test_a_stuck_program_that_is_too_large_is_undecided_with_the_reason():
    large = replace(sends_first(2), width=2, height=200_000)
    verdict = deadlock_verdict(large, WSE)
    assert verdict.kind == "undecided"
    assert "not all of its receivers on route 'east' have started to receive" in verdict.why
    verdict.check()


def test_what_is_not_decided_is_not_sound():
    """Who asks whether a program is sound gets no silent yes."""
    large = replace(sends_first(2), width=2, height=200_000)
    places = {
        ends: tuple(replace(one, shape=one.shape[-1:], block=one.block[-1:]) for one in getattr(large, ends))
        for ends in ("inputs", "outputs")
    }
    with pytest.raises(UserError, match="have started to receive"):
        check_soundness(replace(large, **places), WSE)


def random_exchange(seed):
    """Cores of a line send to both sides and wait in random order; each message has a sender and a receiver."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 6))
    one = []
    for route, first, last in (("east", 1, width - 1), ("west", 0, width - 2)):
        shift = 1 if route == "east" else -1
        inside = at_least(X - first, (X * -1) + last)
        one.append(Recv(inside, route, slot("v" if route == "east" else "w"), "r" + route))
        one.append(Send(at_least(X - first + shift, (X * -1) + last - shift), route, slot("u"), "s" + route))
    body = [one[index] for index in rng.permutation(4)]
    for token in ("reast", "seast", "rwest", "swest"):
        after = next(n for n, i in enumerate(body) if getattr(i, "token", "") == token)
        body.insert(int(rng.integers(after + 1, len(body) + 1)), Wait((token,)))
    return pair(body, width=width, elements=int(rng.integers(1, 4)))


def test_side_by_side_never_accepts_what_core_by_core_is_a_deadlock():
    kinds = []
    for seed in range(150):
        program = random_exchange(seed)
        verdict = deadlock_verdict(program, WSE)
        ends = network(program, WSE.mesh.queue_depth).run()
        assert (verdict.kind == "accept") == ends
        if "side by side" in verdict.why:
            assert network(program, 0).run()
        kinds.append((verdict.kind, "side by side" in verdict.why))
    assert set(kinds) == {("accept", True), ("accept", False), ("deadlock", False)}
