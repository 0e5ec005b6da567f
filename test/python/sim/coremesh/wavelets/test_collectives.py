# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives and products in the wavelet simulator: closed forms of Near-Optimal Wafer-Scale Reduce (HPDC 2024)."""

from __future__ import annotations

import numpy as np
import pytest

import python.sim.coremesh.mesh_programs as programs
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.wavelets import simulate

TOY = machine("toy8x8", width=64, height=64)
RAMP = 2


def within(program: Program, form: float, part: float = 0.05) -> None:
    """Test 6 of the reference: at most 5 % off."""
    found = simulate(program, TOY).cycles
    assert abs(found - form) <= part * form, (found, form)


@pytest.mark.parametrize(("cores", "size"), [(2, 1), (8, 1), (7, 64), (64, 1), (64, 256), (33, 40)])
def test_chain(cores: int, size: int):
    assert simulate(programs.chain(cores, size), TOY).cycles == size + (2 * RAMP + 2) * (cores - 1)


@pytest.mark.parametrize(("cores", "size"), [(2, 8), (5, 40), (16, 100), (64, 16)])
def test_star(cores: int, size: int):
    """The form counts no hop, which the nearest core's first wavelet takes all the same."""
    assert simulate(programs.star(cores, size), TOY).cycles == size * (cores - 1) + 2 * RAMP + 1 + 1


@pytest.mark.parametrize(("cores", "size"), [(2, 8), (8, 64), (16, 200), (64, 256)])
def test_tree(cores: int, size: int):
    """Each of log2(cores) levels takes all wavelets in, over a distance that doubles."""
    levels = cores.bit_length() - 1
    within(programs.tree(cores, size), levels * (size + 2 * RAMP + 1) + cores - 1)


@pytest.mark.parametrize(("cores", "groups", "size"), [(16, 4, 64), (64, 8, 16), (64, 4, 256), (36, 6, 100)])
def test_two_phase(cores: int, groups: int, size: int):
    """A chain within groups, then one of as many stages, each as many hops as a group has cores."""
    part = cores // groups
    first = size + (2 * RAMP + 2) * (part - 1)
    second = size + (2 * RAMP + 1 + part) * (groups - 1)
    assert simulate(programs.two_phase(cores, groups, size), TOY).cycles == first + second


@pytest.mark.parametrize(("cores", "size"), [(2, 1), (8, 64), (64, 1), (64, 256)])
def test_broadcast(cores: int, size: int):
    assert simulate(programs.broadcast(cores, 0, size), TOY).cycles == size + cores + 2 * RAMP


@pytest.mark.parametrize(("cores", "size"), [(4, 16), (8, 64), (16, 64)])
def test_ring_allreduce(cores: int, size: int):
    """2 (P - 1) rounds of one chunk over two hops, each from an empty network; then they are put together."""
    rounds = 2 * (cores - 1)
    within(programs.ring_allreduce(cores, size), rounds * (size + 2 * RAMP + 3))


@pytest.mark.parametrize("order", ["ring", "linear"])
@pytest.mark.parametrize("side", [1, 2, 3, 8])
def test_gemm_is_bound_by_its_products(side: int, order: programs.Order):
    """8 x 8 x 8 multiply-adds hide the shift of two hops; and, as queues give, even Cannon's long edge."""
    found = simulate(programs.gemm(side, (8, 8, 8), order=order), TOY)
    assert side * 512 + 64 <= found.cycles <= 1.02 * (side * 512 + 64)
    assert (found.compute == side * 512 + 64).all()


@pytest.mark.parametrize("side", [3, 8, 16])
def test_gemm_is_bound_by_its_shifts(side: int):
    """Two operands of 72 wavelets leave by one ramp in each round but the last."""
    found = simulate(programs.gemm(side, (1, 72, 1), "float32"), TOY)
    assert (side - 1) * 144 <= found.cycles <= 1.08 * (side - 1) * 144 + 80


def test_calibrated_rounds_cost_more():
    """So much per round, multiply-add and vector call."""
    calibrated = machine("wse2", "calibrated")
    over = calibrated.overheads
    found = simulate(programs.gemm(8, (8, 8, 8), "float16"), calibrated).cycles
    law = 8 * (over.per_mac * 512 + over.vector_call * 64) + 7 * over.round  # nothing is on its way in the last
    assert law <= found <= 1.02 * law + 64


def test_determinism():
    """Test 26 of the reference: the same numbers, whenever it runs."""
    program = programs.gemm(5, (3, 4, 5))
    assert len({simulate(program, TOY).digest() for _ in range(3)}) == 1
    assert simulate(programs.gemm(5, (3, 4, 6)), TOY).digest() != simulate(program, TOY).digest()


def test_64_x_64_cores_at_once():
    """4,096 routers and cores: all rows reduce."""
    found = simulate(programs.chain(64, 100, height=64), TOY)
    assert found.cycles == 100 + 6 * 63
    assert int(found.links[..., 2].sum()) == 64 * 63 * 100
    assert np.array_equal(found.links, found.links[:1].repeat(64, axis=0))


@pytest.mark.slow
def test_a_product_on_64_x_64_cores():
    """512 x 512 x 512: 33,000 cycles with most links in use. `tools/bench/run mesh` has the seconds."""
    found = simulate(programs.gemm(64, (8, 8, 8)), TOY)
    assert found.cycles == 64 * 512 + 64
