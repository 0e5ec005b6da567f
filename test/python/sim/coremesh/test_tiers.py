# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The timing of whole machines against the wavelet simulator, on programs that both can run."""

from __future__ import annotations

import pytest

import python.sim.coremesh.mesh_programs as programs
from python.sim.coremesh.mesh_programs import P, add, line, mod
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Cores, Order, Program, Recv, Route, Send, Slot, Wait
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh.wavelets import simulate
from tilewright.sim.coremesh.wavelets.outcome import OUTPUTS

WSE = machine("wse2")


def shift(width: int, by: int, size: int, order: Order = "linear", height: int = 1) -> Program:
    """All cores pass on around their row."""
    every = Cores(order=order)
    body = [Send(every, "r", Slot("v"), "t"), Recv(every, "r", Slot("w"), "t"), Wait(("t",))]
    return line(width, body, [Route("r", "x", mod(add(P, width - by), width), order=order)], size=size, height=height)


def off(program: Program) -> float:
    """How far the timing model is off, as a part of the wavelet simulator's cycles."""
    return time_program(program, WSE).cycles / simulate(program, WSE).cycles - 1


@pytest.mark.parametrize("size", [1, 16, 256])
@pytest.mark.parametrize("width", [8, 33, 64])
def test_primitives_agree_to_the_cycle(width: int, size: int):
    """Test 22 of the reference, and better than its 5 %: nothing here shares a link or a ramp."""
    for program in (
        programs.pass_on(width, width - 1, size),
        programs.chain(width, size),
        programs.broadcast(width, width // 3, size),
        shift(width, 1, size, "ring"),
        shift(width, 1, size),
    ):
        assert off(program) == 0


@pytest.mark.parametrize("program", [programs.tree(64, 256), programs.two_phase(64, 8, 100), programs.tree(8, 16)])
def test_reductions_agree_to_the_cycle(program: Program):
    assert off(program) == 0


def test_half_way_around_a_torus():
    """Both ways are as short: both tiers go east."""
    torus, program = machine("toy8x8", topology="torus"), shift(8, 4, 16)
    timing, outcome = time_program(program, torus), simulate(program, torus)
    east, west = timing.loads[:2].sum(axis=(1, 2))
    assert west == 0
    assert outcome.links[..., OUTPUTS.index("west")].sum() == 0
    assert outcome.links[..., OUTPUTS.index("east")].sum() * 4 == east
    assert abs(timing.cycles / outcome.cycles - 1) < 0.1


@pytest.mark.parametrize("cores", [2, 8, 16])
def test_ring_allreduce_agrees_to_the_cycle(cores: int):
    assert off(programs.ring_allreduce(cores, 16)) == 0


@pytest.mark.parametrize("side", [8, 13])
def test_machines_agree_to_the_cycle(side: int):
    """Rows at once, and products that hide their shifts."""
    assert off(shift(side, 1, 20, "ring", height=side)) == 0
    assert off(programs.gemm(side, (8, 8, 8))) == 0
    assert off(programs.gemm(side, (8, 8, 8), order="linear")) == 0


def test_64_x_64_cores_agree_to_the_cycle():
    assert off(programs.chain(64, 40, height=64)) == 0


@pytest.mark.parametrize("by", [2, 3, 5])
@pytest.mark.parametrize(("width", "size"), [(8, 64), (33, 100), (64, 256)])
def test_contention(width: int, by: int, size: int):
    """Flows that share a link, 10 %: the model lets all go on at an equal part of it."""
    assert abs(off(shift(width, by, size))) < 0.1


@pytest.mark.parametrize("side", [3, 8])
def test_operands_that_share_a_ramp_agree_to_the_cycle(side: int):
    """Two operands of a core leave by one ramp, and come by one."""
    for tile in ((1, 72, 1), (2, 2, 2)):
        assert off(programs.gemm(side, tile)) == 0


def test_calibrated_rounds_agree():
    calibrated, program = machine("wse2", "calibrated"), programs.gemm(8, (8, 8, 8), "float16")
    cycles = time_program(program, calibrated).cycles
    assert 0 <= simulate(program, calibrated).cycles - cycles <= 8  # whole cycles per kernel


@pytest.mark.parametrize("size", [8, 64])
@pytest.mark.parametrize("stages", [2, 7])
def test_software_sums_of_doubles(stages: int, size: int) -> None:
    """Each stage of a chain adds its own numbers in software, while others do: both tiers count it, relays too."""
    program = programs.chain(stages, size, "float64")
    toy = machine("toy8x8")
    timing, outcome = time_program(program, toy), simulate(program, toy)
    assert outcome.cycles == pytest.approx(timing.cycles, rel=0.1)
    assert timing.ends[0, 1:].min() >= 64 * size
    assert outcome.finish[0, 1:].min() >= 64 * size
