# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the algorithms take on WSE-2, simulated (tier T1, preset ideal): closed forms, and what grows with the grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.plan.mesh.allreduce import Reduce, broadcast, reduction
from tilewright.plan.mesh.multicast_product import summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.reduction_cost import allreduce_cycles, broadcast_cycles, reduce_cycles
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program

IDEAL = machine("wse2")
LINES = [(2, 1), (2, 64), (9, 3), (16, 16), (64, 1), (64, 500)]


def cycles(scheme: Scheme, length: int, wavelets: int, everywhere: bool = False) -> float:
    what = Reduce(1, length, wavelets, np.float32, schemes=(scheme,), everywhere=everywhere, order="linear")
    return time_program(reduction(what), IDEAL).cycles


@pytest.mark.parametrize(("length", "wavelets"), LINES)
def test_chains_take_what_the_closed_forms_say(length: int, wavelets: int):
    """To the cycle: chain, two phases and broadcasts of lengths that cut evenly."""
    for scheme in [Scheme("chain")] + [Scheme("two_phase")] * (length in (9, 16, 64)):
        assert cycles(scheme, length, wavelets) == reduce_cycles(scheme, length, wavelets), scheme
        assert cycles(scheme, length, wavelets, True) == allreduce_cycles(scheme, length, wavelets), scheme
    sent = broadcast(1, length, wavelets, ("x",), (0,), np.float32)
    assert time_program(sent, IDEAL).cycles == broadcast_cycles(length, wavelets, length - 1)


def meeting(left: int, right: int, spacing: int, wavelets: int) -> int:
    """Cycles until a root has what comes from two sides: they share its ramp, which the first to come has before."""
    late, early = (side * (5 + spacing) for side in (max(left, right), min(left, right)))
    return late + wavelets + (max(0, wavelets - (late - early)) if early else 0)


@pytest.mark.parametrize(("length", "wavelets"), [(5, 1), (9, 3), (16, 16), (64, 1), (64, 500)])
def test_two_way_chains_share_the_ramp_of_their_root(length: int, wavelets: int):
    """To the cycle; the model of HPDC 2024 leaves out that most of a chain is on its way when the other is taken."""
    cut = round(length**0.5)
    one = meeting(length // 2, length - 1 - length // 2, 1, wavelets)
    assert cycles(Scheme("k_tree", 1), length, wavelets) == one
    assert one == pytest.approx(reduce_cycles(Scheme("k_tree", 1), length, wavelets), rel=0.12)
    if cut * cut == length:
        two = sum(meeting(cut // 2, cut - 1 - cut // 2, spacing, wavelets) for spacing in (1, cut))
        assert cycles(Scheme("k_tree", 2), length, wavelets) == two


@pytest.mark.parametrize(("length", "wavelets"), [(16, 64), (64, 64), (32, 1000)])
def test_others_are_close(length: int, wavelets: int):
    """Star, tree and ring: the model leaves out some of the hops between messages."""
    for scheme, error in ((Scheme("star"), 0.01), (Scheme("tree"), 0.16)):
        model = reduce_cycles(scheme, length, wavelets)
        assert abs(cycles(scheme, length, wavelets) - model) <= error * model, scheme
    model = allreduce_cycles(Scheme("ring"), length, wavelets)
    assert abs(cycles(Scheme("ring"), length, wavelets, True) - model) <= 0.13 * model


def per_round(algorithm: Callable[[Product], Program], side: int, sync: str) -> float:
    """Cycles per round of a product with one number per core and operand."""
    program = algorithm(Product(side, side, side, side, side))
    return time_program(program, IDEAL, sync=sync).cycles / side  # type: ignore[arg-type]


def cannon(product: Product) -> Program:
    return shifted_product(product, "cannon")


def test_who_pays_for_distance():
    """In lock-step Cannon's rounds take a hop more for each core of a line, MeshGEMM's do not; rendezvous twice that.

    Where data flow, one long link per ring costs almost nothing (each line's time hides it in N rounds).
    """
    mesh, far = (
        {sync: [per_round(algorithm, side, sync) for side in (16, 32, 64)] for sync in ("dataflow", "lockstep")}
        for algorithm in (shifted_product, cannon)
    )
    assert max(mesh["lockstep"]) - min(mesh["lockstep"]) < 1
    for less, more, cores in ((0, 1, 16), (1, 2, 32)):
        assert far["lockstep"][more] - far["lockstep"][less] == pytest.approx(cores, abs=1)
    assert max(far["dataflow"]) < 1.2 * max(mesh["dataflow"])
    rounds = [per_round(cannon, side, "rendezvous") for side in (16, 32)]
    assert rounds[1] - rounds[0] == pytest.approx(2 * 16, abs=1)
    assert per_round(shifted_product, 32, "rendezvous") == pytest.approx(
        per_round(shifted_product, 16, "rendezvous"), abs=1
    )


def test_chains_of_successive_rounds_overlap():
    """A transposed product's round holds a chain of N - 1 stages; as rounds overlap, it does not take N stages long."""
    flowing = [per_round(transposed_product, side, "dataflow") for side in (8, 16, 32)]
    assert flowing[2] < 1.2 * flowing[0]
    waiting = [per_round(transposed_product, side, "lockstep") for side in (8, 16, 32)]
    assert waiting[2] > 1.8 * waiting[1] > 3 * waiting[0]


def test_small_matrices_on_larger_grids():
    """On 16 times as many cores MeshGEMM takes three fifths of the time, others longer (WaferLLM, figure 9: 2K)."""
    times = {
        algorithm.__name__: [
            time_program(algorithm(Product(64, 64, 64, side, side)), IDEAL, sync="lockstep").cycles
            for side in (16, 32, 64)
        ]
        for algorithm in (shifted_product, cannon, summa)
    }
    mesh = times["shifted_product"]
    assert mesh[2] < 0.6 * mesh[0]
    for name in ("cannon", "summa"):
        assert times[name][2] > 1.5 * times[name][1]
        assert times[name][2] > times[name][0]
        assert all(ours <= theirs for ours, theirs in zip(mesh, times[name], strict=True))
