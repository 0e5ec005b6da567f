# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flows and router configurations of whole lines against every core by itself, and the way back."""

import numpy as np
import pytest
from small_programs import F32, E, all_gather, at_least, cannon, chain, mesh_gemm, slot, summa, two_phase
from undone import flows, random_receivers, ring_walk

from tilewright.core.errors import UserError
from tilewright.plan.mesh.assign_colors import assign_colors
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.flows import flows_of
from tilewright.sim.coremesh.checks.lanes import lanes_of, positions
from tilewright.sim.coremesh.checks.routers import Configuration, Entry, Found, configure, find_routes
from tilewright.sim.coremesh.expressions import Dim
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Buffer, Program, Recv, Route
from tilewright.sim.coremesh.ring import ring_positions
from tilewright.sim.coremesh.steps import unroll

PROGRAMS = [mesh_gemm(5), mesh_gemm(12), cannon(7), summa(6), all_gather(3), chain(5, 2), two_phase(25, 5, 2)]
PLENTY = machine("wse2", colors=200, reserved_colors=0, switch_positions=100)


def classes(program):
    return flows_of(program, Field(program), unroll(program))


def by_line(program):
    return {
        (lines.axis, int(line), flow.route, flow.source): set(flow.destinations)
        for lines in classes(program)
        for line in lines.members
        for flow in lines.flows
    }


@pytest.mark.parametrize("n", range(1, 40))
def test_the_ring_is_the_walk_of_the_reference(n):
    assert np.argsort(ring_positions(n)).tolist() == ring_walk(n)


@pytest.mark.parametrize("program", [*PROGRAMS, *(random_receivers(seed) for seed in range(30))], ids=lambda p: p.name)
def test_flows_of_classes_are_those_of_every_core(program):
    assert by_line(program) == flows(program)


def test_lines_with_the_same_flows_are_looked_at_once():
    assert [len(lines.members) for lines in classes(mesh_gemm(12))] == [12, 12]
    ragged = two_phase(25, 5, 3)
    (route,) = [route for route in ragged.routes if route.name == "east"]
    only_row_1 = Recv(at_least(E(Dim(0)) - 1, E(Dim(0)) * -1 + 1), route.name, slot("v"), "t")
    program = Program(
        "p", 3, 25, ragged.buffers, (Route("east", "x", E(Dim(0)).__mod__(25).expr),), (), (), (only_row_1,)
    )
    assert [lines.members.tolist() for lines in classes(program)] == [[1]]


@pytest.mark.parametrize("n", [3, 4, 5, 6, 11, 12, 31])
def test_every_link_of_a_two_hop_shift_carries_one_flow(n):
    """Reference test 9: links are balanced, no path is longer than two hops, each router has three roles."""
    for lines in classes(mesh_gemm(n)):
        up, down = np.zeros(n, int), np.zeros(n, int)
        roles = np.zeros(n, int)
        for flow in lines.flows:
            (destination,) = flow.destinations
            assert flow.hops() <= 2
            roles[flow.first : flow.last + 1] += 1
            if destination > flow.source:
                up[flow.source : destination] += 1
            else:
                down[destination : flow.source] += 1
        assert up[:-1].tolist() == down[:-1].tolist() == [1] * (n - 1)
        assert roles.tolist() == ([2, *[3] * (n - 2), 2])


@pytest.mark.parametrize("program", [*PROGRAMS, *(random_receivers(seed) for seed in range(30))], ids=lambda p: p.name)
def test_routes_read_back_are_those_put_in(program):
    program = assign_colors(program, PLENTY)
    for lines in classes(program):
        lanes = {lane.color: lane for lane in lanes_of(lines) if positions(lane).max() > 1}
        put = {Found(lines.axis, f.color, f.source, f.destinations) for f in lines.flows if f.color not in lanes}
        found = find_routes(configure(lines))
        assert {flow for flow in found if flow.color not in lanes} == put
        for flow in lines.flows:  # switched ones: of any state of the routers, so at least these
            assert any(
                (f.color, f.source) == (flow.color, flow.source) and set(f.destinations) >= set(flow.destinations)
                for f in found
            )


def test_a_broadcast_from_a_root_that_moves_reads_back_exactly():
    for lines in classes(assign_colors(summa(6), machine("wse2"))):
        everyone = [tuple(place for place in range(6) if place != root) for root in range(6)]
        assert find_routes(configure(lines)) == {
            Found(lines.axis, lines.flows[0].color, root, everyone[root]) for root in range(6)
        }


def test_a_configuration_that_leads_nowhere_is_an_error():
    bad = Configuration("x", np.arange(1), 3, (Entry(0, 4, "ramp", ("east",)), Entry(2, 4, "west", ("ramp",))))
    with pytest.raises(UserError, match="sends on color 4 arrives at x=1 from the west, where no router takes it"):
        find_routes(bad)


def test_states_in_a_circle_end():
    back = (Entry(0, 1, "ramp", ("east",)), Entry(1, 1, "west", ("west", "ramp")), Entry(0, 1, "east", ("east",)))
    assert find_routes(Configuration("x", np.arange(1), 2, back)) == {Found("x", 1, 0, (1,))}


def test_a_source_outside_the_grid_is_an_error():
    program = chain(4)
    body = (Recv(at_least(0), "east", slot("v"), "t"),)
    with pytest.raises(UserError, match=r"core \(y=0, x=0\) receives on route 'east' from outside the grid of 1 x 4"):
        classes(Program("p", 1, 4, (Buffer("v", (3,), F32),), program.routes, (), (), body))


def test_unassigned_routes_configure_no_router():
    with pytest.raises(UserError, match="Route 'east' has no colors"):
        configure(classes(chain(4))[0])
