# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Routers, links, ramps and banks of the wavelet simulator: microbenchmarks with exact answers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import python.sim.coremesh.mesh_programs as programs
from python.sim.coremesh.mesh_programs import P, X, add, column, line, mod, times
from tilewright.sim.coremesh.machine import Machine, machine
from tilewright.sim.coremesh.program import Buffer, Compute, Cores, Cost, Program, Recv, Route, Send, Slot, Wait
from tilewright.sim.coremesh.wavelets import simulate

#: An engine reads a cycle before it sends, and what has come is there a cycle later.
ENDS = 2


def toy(**fields: object) -> Machine:
    return machine("toy8x8", **{"width": 64, "height": 64, **fields})


@pytest.mark.parametrize("wavelets", [1, 2, 17])
@pytest.mark.parametrize("hops", [1, 2, 7, 63])
def test_latency(hops: int, wavelets: int):
    """Test 1 of the reference: two ramps and the hops, and the rest one per cycle; besides, the ends."""
    assert simulate(programs.pass_on(64, hops, wavelets), toy()).cycles == ENDS + 4 + hops + wavelets - 1


@pytest.mark.parametrize(("alpha", "ramp"), [(1, 1), (2, 2), (9, 5)])
def test_latency_of_other_machines(alpha: int, ramp: int):
    """Longer wires hold more: they stay as fast."""
    found = simulate(programs.pass_on(12, 11, 50), toy(alpha_cycles=alpha, ramp_cycles=ramp))
    assert found.cycles == ENDS + 2 * ramp + 11 * alpha + 49


def test_halves_of_wavelets_count_as_whole_ones():
    program = programs.chain(2, 7, "float16")
    assert simulate(program, toy()).links[0, 0, 2] == 4


def test_base_cost_of_a_message():
    found = simulate(programs.pass_on(4, 3, 5), toy(base_cycles=40))
    assert found.cycles == ENDS + 40 + 4 + 3 + 4


def test_shorter_way_around_a_torus():
    program = line(
        8,
        [
            Send(Cores(zero=column(0)), "r", Slot("v"), "t"),
            Recv(Cores(zero=column(6)), "r", Slot("w"), "t"),
            Wait(("t",)),
        ],
        [Route("r", "x", add(P, -6))],
    )
    assert simulate(program, machine("toy8x8", topology="torus")).cycles == ENDS + 4 + 2
    assert simulate(program, machine("toy8x8")).cycles == ENDS + 4 + 6


def crossing(flows: int, size: int) -> Program:
    """Each of the first cores sends ``flows`` columns to the right: all cross one link."""
    routes = [Route(f"r{at}", "x", add(P, -flows)) for at in range(flows)]
    sends = [Send(Cores(zero=column(at)), f"r{at}", Slot("v"), "t") for at in range(flows)]
    takes = [Recv(Cores(zero=column(flows + at)), f"r{at}", Slot("w"), "t") for at in range(flows)]
    return line(2 * flows, [*sends, *takes, Wait(("t",))], routes, size=size)


@pytest.mark.parametrize("flows", [1, 2, 3, 5])
def test_flows_share_a_link(flows: int):
    """Test 2: each has its part, and no cycle of the link is lost."""
    size = 100
    found = simulate(crossing(flows, size), toy())
    assert found.links[0, flows - 1, 2] == flows * size
    assert flows * size <= found.cycles <= flows * size + ENDS + 4 + 2 * flows
    receivers = found.finish[0, flows:]
    assert receivers.min() > (flows - 1) * size  # none is served before the others
    assert found.links[..., :4].sum() == flows * flows * size


@pytest.mark.parametrize("root", [0, 3, 9])
def test_multicast_crosses_each_link_once(root: int):
    """Test 3."""
    found = simulate(programs.broadcast(10, root, 20), toy())
    east, west = found.links[0, :, 2], found.links[0, :, 3]
    assert east.tolist() == [20 if root <= at < 9 else 0 for at in range(10)]
    assert west.tolist() == [20 if 0 < at <= root else 0 for at in range(10)]
    assert found.links[0, :, 4].tolist() == [0 if at == root else 20 for at in range(10)]


def add_tiles(elements: int, banks: tuple[int, int, int], bank_bytes: int) -> Program:
    """c = a + b in f16, each tile in a bank."""
    half = np.dtype("float16")
    taken = dict.fromkeys(banks, 0)
    buffers = []
    for name, bank in zip("abc", banks, strict=True):
        buffers.append(Buffer(name, (elements,), half, address=bank * bank_bytes + taken[bank]))
        taken[bank] += 2 * elements
    kernel = Compute(Cores(), "add", (Slot("a"), Slot("b")), (Slot("c"),), Cost(elements=elements, dtype_bits=16), _add)
    return Program("add", 1, 1, tuple(buffers), (), (), (), (kernel,))


def _add(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
    return (a + b,)


@pytest.mark.parametrize(("banks", "slower"), [((0, 1, 2), 1), ((0, 0, 1), 2), ((0, 1, 1), 2), ((5, 5, 5), 3)])
def test_banks_serve_one_access_per_cycle(banks: tuple[int, int, int], slower: int):
    """Test 4: 4 sums per cycle take 16 bytes in and 8 out; operands in one bank take turns."""
    core = toy()
    assert simulate(add_tiles(256, banks, core.sram_bytes // 8), core).cycles == 64 * slower


def test_streams_of_one_bank_take_turns():
    """A combination uses its bank in every cycle; a send of the same bank has to wait for it."""
    core = toy()
    bank = core.sram_bytes // 8

    def cycles(*banks: int) -> int:
        base = programs.line(
            3,
            [
                Send(Cores(zero=column(0)), "r", Slot("v"), "t"),
                Send(Cores(zero=column(1)), "r", Slot("w"), "t"),
                Recv(Cores(zero=column(1)), "r", Slot("v"), "t", combine="add"),
                Recv(Cores(zero=column(2)), "r", Slot("v"), "t"),
                Wait(("t",)),
            ],
            [Route("r", "x", add(P, -1))],
            size=200,
        )
        buffers = tuple(
            dataclasses.replace(buffer, address=at * bank + number * 1000)
            for number, (buffer, at) in enumerate(zip(base.buffers, banks, strict=True))
        )
        return simulate(dataclasses.replace(base, buffers=buffers), core).cycles

    assert cycles(0, 1) == 200 + ENDS + 4
    assert cycles(0, 0) > 1.4 * cycles(0, 1)


def test_a_kernel_loses_what_engines_take():
    """It uses its bank and both ports in every cycle; what a send reads comes on top."""
    core = toy()
    bank = core.sram_bytes // 8
    half = np.dtype("float16")

    def cycles(at: int) -> int:
        buffers = (
            Buffer("a", (256,), half, address=0),
            Buffer("b", (256,), half, address=bank),
            Buffer("c", (256,), half, address=2 * bank),
            Buffer("d", (64,), half, address=at),
            Buffer("e", (64,), half, address=at + 128),
        )
        kernel = Compute(
            Cores(zero=(X,)), "add", (Slot("a"), Slot("b")), (Slot("c"),), Cost(elements=256, dtype_bits=16), _add
        )
        body = (
            Send(Cores(zero=(X,)), "r", Slot("d"), "t"),
            Recv(Cores(zero=column(1)), "r", Slot("e"), "t"),
            kernel,
            Wait(("t",)),
        )
        return simulate(Program("add", 1, 2, buffers, (Route("r", "x", add(P, -1)),), (), (), body), core).finish[0, 0]

    assert cycles(3 * bank) == 64 + 8  # 128 bytes through a port of 16, which the kernel fills
    assert cycles(1024) == 64 + 16  # 128 bytes in accesses of 8


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("hops", [1, 3, 10])
def test_back_pressure(hops: int, depth: int):
    """Test 5: a receiver that does not take stops the sender once the queues are full: 2 * hops + 6 on WSE."""
    core = toy(queue_depth=depth)
    room = depth * hops + 2 * (depth + core.mesh.ramp_cycles - 1)

    def sender_done(size: int) -> int:
        wait = Compute(Cores(zero=column(hops)), "busy", (), (), Cost(elements=1000), lambda: ())
        base = programs.pass_on(hops + 1, hops, size)
        return int(simulate(dataclasses.replace(base, body=(wait, *base.body)), core).finish[0, 0])

    assert sender_done(room) < 150
    assert sender_done(room + 1) >= 1000


def test_channels_do_not_block_each_other():
    """A flow that nobody takes leaves the link to others; on one color it does not."""

    def last(colors: tuple[int, ...]) -> int:
        slow, fast = Cores(zero=column(2)), Cores(zero=column(3))
        body = [
            Compute(slow, "busy", (), (), Cost(elements=1000), lambda: ()),
            Send(Cores(zero=column(0)), "a", Slot("v"), "t"),
            Send(Cores(zero=column(1)), "b", Slot("v"), "t"),
            Recv(slow, "a", Slot("w"), "t"),
            Recv(fast, "b", Slot("w"), "t"),
            Wait(("t",)),
        ]
        routes = [
            Route("a", "x", add(P, -2), colors=colors[:1]),
            Route("b", "x", add(P, -2), colors=colors[1:]),
        ]
        return int(simulate(line(4, body, routes, size=40), toy()).finish[0, 3])

    assert last(()) < 100
    assert last((4, 5)) < 100


def test_what_shares_a_queue_waits_for_what_is_before_it():
    """Two flows of one color through one link: the one behind waits for a receiver that is not its own."""

    def last(colors: tuple[int, ...]) -> int:
        slow, fast = Cores(zero=column(1)), Cores(zero=column(2))
        body = [
            Compute(slow, "busy", (), (), Cost(elements=1000), lambda: ()),
            Send(Cores(zero=column(0)), "a", Slot("v"), "t"),
            Send(Cores(zero=column(0)), "b", Slot("v"), "t"),
            Recv(slow, "a", Slot("w"), "t"),
            Recv(fast, "b", Slot("w"), "t"),
            Wait(("t",)),
        ]
        routes = [
            Route("a", "x", add(P, -1), colors=colors[:1]),
            Route("b", "x", add(P, -2), colors=colors[1:]),
        ]
        return int(simulate(line(3, body, routes, size=40), toy()).finish[0, 2])

    assert last((4, 5)) < 200
    assert last((4, 4)) > 1000


def test_every_core_its_own_neighbours():
    """All shift around at once: 64 wavelets on each link, and on none of them a conflict."""
    every = Cores(order="ring")
    body = [Send(every, "r", Slot("v"), "t"), Recv(every, "r", Slot("w"), "t"), Wait(("t",))]
    program = line(9, body, [Route("r", "x", mod(add(P, 8), 9), order="ring")], size=64, height=5)
    found = simulate(program, toy())
    assert found.cycles == ENDS + 4 + 2 + 63
    assert found.links[:, :-1, 2].tolist() == found.links[:, 1:, 3].tolist() == [[64] * 8] * 5


def test_sender_and_receiver_in_one():
    """A core that is its own source: through its router and back."""
    body = [Send(Cores(), "r", Slot("v"), "t"), Recv(Cores(), "r", Slot("w"), "t"), Wait(("t",))]
    assert simulate(line(3, body, [Route("r", "x", P)], size=5), toy()).cycles == ENDS + 4 + 4


def test_rows_and_columns_are_not_mixed_up():
    body = [
        Send(Cores(at_least_zero=(add(times(programs.Y, -1), 1),)), "r", Slot("v"), "t"),
        Recv(Cores(at_least_zero=(add(programs.Y, -3),)), "r", Slot("w"), "t"),
        Wait(("t",)),
    ]
    found = simulate(line(4, body, [Route("r", "y", add(P, -3))], height=5), toy())
    assert found.cycles == ENDS + 4 + 3
    assert found.links[..., 1].sum(axis=1).tolist() == [4, 8, 8, 4, 0]
