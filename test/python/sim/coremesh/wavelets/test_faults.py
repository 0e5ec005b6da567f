# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the wavelet simulator refuses, and that it never hangs: deadlocks with their cycle, a limit of cycles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import python.sim.coremesh.mesh_programs as programs
from python.sim.coremesh.mesh_programs import TURN, P, X, add, column, line, mod
from tilewright.core.errors import UserError
from tilewright.sim.coremesh import functional
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import (
    Compute,
    Cores,
    Cost,
    Instruction,
    Loop,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)
from tilewright.sim.coremesh.wavelets import simulate

TOY = machine("toy8x8")
ALL = Cores()
FIRST, SECOND, THIRD = (Cores(zero=column(at)) for at in range(3))
EAST = Route("east", "x", add(P, -1))
AROUND = Route("around", "x", mod(add(P, 2), 3))


def fails(program: Program, *parts: str, limit: int = 10_000) -> None:
    with pytest.raises(UserError) as found:
        simulate(program, TOY, limit)
    for part in parts:
        assert part in str(found.value), str(found.value)


def row(body: list[Instruction], *routes: Route, size: int = 1) -> Program:
    return line(3, body, list(routes or (EAST,)), size=size)


def test_cyclic_wait():
    """Test 29 of the reference."""
    body = [Recv(ALL, "around", Slot("w"), "t"), Wait(("t",)), Send(ALL, "around", Slot("v"), "s"), Wait(("s",))]
    cores = [f"core (y=0, x={at}): Wait for 't' (body[1])" for at in range(3)]
    fails(row(body, AROUND), "Deadlock: 3 cores", *cores, "Recv on 'around' (body[0]) waits for data")


def test_queues_that_are_too_short():
    """All send before they receive: it works as long as a message fits into the queues on its way; no longer."""
    body = [Send(ALL, "around", Slot("v"), "s"), Wait(("s",)), Recv(ALL, "around", Slot("w"), "t"), Wait(("t",))]
    room = 2 + 6  # one hop
    assert simulate(row(body, AROUND, size=room), TOY).cycles < 50
    long = row(body, AROUND, size=room + 3)
    fails(long, "Deadlock: 3 cores", "Send on 'around' (body[0]) waits for room", "Wait for 's' (body[1])")
    assert functional.run(long, {"v": functional_input(long)})["out"].shape == (1, 3 * (room + 3))


def functional_input(program: Program) -> np.ndarray:
    return np.zeros(program.inputs[0].shape, program.buffers[0].dtype)


def test_cyclic_relays():
    body = [Relay(ALL, "around", "around", Slot("v"), "t"), Wait(("t",))]
    fails(row(body, AROUND), "Deadlock: 3 cores", "Relay 'around' -> 'around' (body[0]) waits for data")


def test_cyclic_relays_that_nobody_waits_for():
    body = [Relay(ALL, "around", "around", Slot("v"), "t")]
    fails(row(body, AROUND), "Deadlock: 3 cores", "Relay 'around' -> 'around' (body[0]) waits for data")


def test_turns_of_a_combination():
    """Core 0 takes core 2's message first, which is sent once core 1's was taken, which does not fit the queues."""
    far, near, back = Route("far", "x", add(P, 2)), Route("near", "x", add(P, 1)), EAST
    body = [
        Recv(FIRST, "far", Slot("v"), "t", combine="add"),
        Recv(FIRST, "near", Slot("v"), "t", combine="add"),
        Send(SECOND, "near", Slot("v"), "s"),
        Wait(("s",)),
        Send(SECOND, "east", Slot("v"), "s"),
        Recv(THIRD, "east", Slot("w"), "u"),
        Wait(("u",)),
        Send(THIRD, "far", Slot("v"), "s"),
        Wait(("s", "t")),
    ]
    assert simulate(row(body, far, near, back, size=7), TOY).cycles < 80
    fails(row(body, far, near, back, size=20), "Deadlock", "Recv on 'near' (body[1]) waits for its turn", "x=2", "x=1")


def test_unmatched_messages():
    fails(row([Send(THIRD, "east", Slot("v"), "s")]), "core (y=0, x=2)", "'east'", "without a receiver")
    fails(row([Recv(SECOND, "east", Slot("v"), "s")]), "core (y=0, x=1)", "'east'", "without a sender")
    fails(row([Recv(FIRST, "east", Slot("v"), "s")]), "core (y=0, x=0)", "'east'", "outside the grid")


def test_limit_of_cycles():
    busy = Compute(ALL, "busy", (), (), Cost(elements=1000), lambda: ())
    program = row([Loop(100, (busy, Wait(())))])
    assert simulate(program, TOY).cycles == 100_000
    fails(program, "more than the limit of 5000 cycles", "3 of 3 cores", "Compute 'busy'", limit=5000)


def test_errors_come_at_once():
    """Also on many cores, with a long cycle."""
    body = [Recv(ALL, "r", Slot("w"), "t"), Wait(("t",)), Send(ALL, "r", Slot("v"), "s"), Wait(("s",))]
    program = line(64, body, [Route("r", "x", mod(add(P, 63), 64))], height=64)
    with pytest.raises(UserError, match=r"Deadlock: 4096 cores.*more\)"):
        try:
            simulate(program, machine("wse2"))
        except UserError as error:
            raise UserError(str(error).replace("\n", " ")) from None


def test_multicast_on_two_colors():
    others = Recv(Cores(at_least_zero=(add(X, -1),)), "r", Slot("w"), "t")
    body = [Send(FIRST, "r", Slot("v"), "t"), others, Wait(("t",))]
    route = Route("r", "x", programs.Const(0), colors=(5, 6), color=mod(P, 2))
    fails(row(body, route), "core (y=0, x=0)", "color 6", "color 5", "a multicast has one")


def test_machines_that_it_cannot_be():
    program = row([])
    with pytest.raises(UserError, match="'exchange'"):
        simulate(program, machine("ipu"))
    with pytest.raises(UserError, match="defects"):
        simulate(program, machine("toy8x8", dead_cores=((1, 1),)))
    wide = line(9, [], [])
    with pytest.raises(UserError, match=r"takes 1 x 9 cores; machine 'toy8x8' has 8 x 8"):
        simulate(wide, TOY)


@pytest.mark.parametrize(("field", "value"), [("alpha_cycles", 0), ("queue_depth", 2**30), ("base_cycles", 2**31)])
def test_fields_that_are_too_large_or_small(field: str, value: int):
    with pytest.raises(UserError, match=f"'toy8x8' has {field} = {value}; wavelets are simulated with"):
        simulate(row([]), machine("toy8x8", **{field: value}))


@pytest.mark.parametrize("limit", [0, 2**31])
def test_limits_that_cannot_be(limit: int):
    fails(row([]), f"`limit` is {limit} cycles", limit=limit)


def test_full_queues_around_a_torus():
    """Flows of one color that close a ring of full queues: who waits there, and no hang of the search for it."""
    body = [Send(ALL, "r", Slot("v"), "s"), Recv(ALL, "r", Slot("w"), "t"), Wait(("s", "t"))]
    torus = machine("toy8x8", topology="torus")
    program = line(8, body, [Route("r", "x", mod(add(P, 5), 8), colors=(1,))], size=64)
    with pytest.raises(UserError, match="Deadlock: 8 cores") as found:
        simulate(program, torus)
    assert "colors of their own" in str(found.value)
    own = line(8, body, [Route("r", "x", mod(add(P, 5), 8))], size=64)
    assert simulate(own, torus).cycles > 0


def test_programs_of_nothing():
    assert simulate(row([]), TOY).cycles == 0
    assert simulate(row([Wait(("never started",))]), TOY).cycles == 0
    assert simulate(dataclasses.replace(row([Loop(0, (Send(ALL, "east", Slot("v", TURN), "s"),))])), TOY).cycles == 0
