# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Events of the wavelet simulator: when threads and engines of traced cores were at work, to the cycle."""

from __future__ import annotations

from collections import Counter

import pytest

import python.sim.coremesh.mesh_programs as programs
from tilewright.core.errors import UserError
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.wavelets import simulate


@pytest.mark.parametrize(("hops", "wavelets"), [(1, 1), (3, 1), (7, 5)])
def test_a_message_to_the_cycle(hops: int, wavelets: int):
    """A send reads for a cycle; a wavelet comes two ramps and the hops later; a wait ends with what it waits for."""
    outcome = simulate(programs.pass_on(8, hops, wavelets), machine("toy8x8"), trace=[(0, 0), (0, hops)])
    found = {(event.core[1], event.engine, event.what): (event.begin, event.end) for event in outcome.events}
    came = 1 + 4 + hops
    assert found == {
        (0, "out", "send"): (1, 1 + wavelets),
        (0, "thread", "wait"): (0, wavelets),
        (hops, "in", "recv"): (came, came + wavelets),
        (hops, "thread", "wait"): (0, came + wavelets),
    }
    assert outcome.cycles == came + wavelets
    assert all(event.started == 0 for event in outcome.events)


def test_a_relay_takes_and_sends():
    outcome = simulate(programs.chain(3, 10), machine("toy8x8"), trace=[(0, 1)])
    relayed = {event.engine: event for event in outcome.events if event.what == "relay"}
    assert set(relayed) == {"in", "out"}
    assert relayed["out"].begin == relayed["in"].begin + 1  # a stage
    assert relayed["out"].end - relayed["out"].begin == 10


def test_kernels_and_overheads_are_those_of_the_outcome():
    product = shifted_product(Product(24, 17, 9, 3, 4, skew_a="run"))
    calibrated = machine("toy8x8", "calibrated")
    cores = [(y, x) for y in range(3) for x in range(4)]
    outcome = simulate(product, calibrated, trace=cores)
    assert outcome.digest() == simulate(product, calibrated).digest()  # to be watched changes nothing
    spent = Counter()
    for event in outcome.events:
        spent[event.core, event.what] += event.end - event.begin
        assert event.started <= event.begin <= event.end <= outcome.cycles
    assert [spent[core, "compute"] for core in cores] == outcome.compute.reshape(-1).tolist()
    rounds = sum(event.what == "overhead" for event in outcome.events)
    assert rounds > 0 and sum(spent[core, "overhead"] for core in cores) == 416 * rounds
    for core in cores:  # a thread does one thing at a time
        busy = sorted((e.begin, e.end) for e in outcome.events if e.core == core and e.engine == "thread")
        assert all(one[1] <= other[0] for one, other in zip(busy, busy[1:], strict=False))


def test_only_the_cores_that_were_asked_for():
    outcome = simulate(programs.chain(5, 4), machine("toy8x8"), trace=[(0, 3)])
    assert {event.core for event in outcome.events} == {(0, 3)}
    assert simulate(programs.chain(5, 4), machine("toy8x8")).events == ()
    with pytest.raises(UserError, match=r"no core \(y=1, x=0\) to trace: the program has 1 x 5"):
        simulate(programs.chain(5, 4), machine("toy8x8"), trace=[(1, 0)])
