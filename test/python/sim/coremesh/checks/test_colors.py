# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Colors by class of lines against every router by itself; limits of both (reference tests 8, 13, 27)."""

from dataclasses import replace

import numpy as np
import pytest
from small_programs import ALL, F32, E, all_gather, at_least, cannon, chain, mesh_gemm, only, slot, summa, two_phase
from undone import mixtures, random_receivers

from tilewright.core.errors import UserError
from tilewright.plan.mesh.assign_colors import assign_colors
from tilewright.sim.coremesh.checks.colors import check_colors
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.flows import flows_of
from tilewright.sim.coremesh.expressions import Const, Dim, depth
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Buffer, Program, Recv, Route
from tilewright.sim.coremesh.steps import unroll

WSE = machine("wse2")
PLENTY = machine("wse2", colors=200, reserved_colors=0, switch_positions=100)
PROGRAMS = [
    mesh_gemm(2),
    mesh_gemm(5),
    mesh_gemm(12),
    cannon(7),
    summa(6),
    all_gather(3),
    chain(5, 2),
    two_phase(25, 5),
]


def check(program, limits=WSE):
    field, steps = Field(program), unroll(program)
    return check_colors(program, limits, field, flows_of(program, field, steps), steps)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_assigned_colors_mix_no_flows_at_any_router(program):
    program = assign_colors(program, WSE)
    assert mixtures(program) == {}
    check(program)


@pytest.mark.parametrize("seed", range(40))
def test_random_routes_get_colors_that_the_check_accepts(seed):
    program = random_receivers(seed)
    bare = {route.name for route in program.routes}
    program = assign_colors(program, PLENTY)
    try:
        check(program, PLENTY)
    except UserError as error:  # two sources that move into each other: no colors help
        assert "in one round" in str(error)
    static = {route.name for route in program.routes if depth(route.source) <= 2}
    assert mixtures(program, static) == {}
    assert {route.name for route in program.routes} == bare


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 12, 15, 31])
def test_a_two_hop_shift_takes_three_colors_per_axis(n):
    program = assign_colors(mesh_gemm(n), WSE)
    assert [len(route.colors) for route in program.routes] == [3, 3]
    assert check(program).per_core().max() == 6


@pytest.mark.parametrize(("n", "groups"), [(9, 3), (15, 5), (15, 3), (25, 5), (49, 7), (35, 7)])
def test_a_two_phase_reduction_takes_five_colors_per_axis_as_waferllm_does(n, groups):
    """Reference test 8: two per phase, alternating, and one for the broadcast; 10 for both axes."""
    occupancy = check(assign_colors(two_phase(n, groups), WSE))
    assert occupancy.colors == occupancy.per_core().max() == 5


def test_routes_that_never_meet_share_colors():
    routes = tuple(Route(f"row {row}", "x", Const(0)) for row in range(40))
    body = tuple(Recv(only(E(Dim(0)) - row), f"row {row}", slot("v"), "t") for row in range(40))
    program = assign_colors(Program("rows", 40, 5, (Buffer("v", (1,), F32),), routes, (), (), body), WSE)
    assert {route.colors for route in program.routes} == {(0,)}
    check(program)


def star(sources):
    """Core x = 0 receives from each of the others, on a route each."""
    routes = tuple(Route(f"from {x}", "x", Const(x)) for x in range(1, sources + 1))
    body = tuple(Recv(only(E(Dim(1))), route.name, slot("v"), "t") for route in routes)
    return Program("star", 1, sources + 1, (Buffer("v", (1,), F32),), routes, (), (), body)


def test_25_routes_into_a_core_are_too_many():
    """Reference test 27."""
    with pytest.raises(UserError) as error:
        assign_colors(star(25), WSE)
    text = str(error.value)
    assert "needs 25 colors at core (y=0, x=0), and a core of machine 'wse2' has 21 (24, of which it keeps 3)" in text
    assert "'from 1' from x=1 to 0" in text
    assert "fewer routes" in text
    assert check(assign_colors(star(21), WSE)).per_core().max() == 21


def test_a_demand_beyond_what_is_counted_says_at_least():
    with pytest.raises(UserError, match="needs at least 86 colors"):
        assign_colors(star(200), WSE)


def test_a_machine_without_colors_needs_none():
    program = assign_colors(star(25), machine("wse2", colors=0))
    assert all(route.colors == () for route in program.routes)
    check(program, machine("wse2", colors=0))


def recolored(program, **colors):
    change = {name: {"colors": palette, "color": Const(0)} for name, palette in colors.items()}
    return replace(program, routes=tuple(replace(route, **change.get(route.name, {})) for route in program.routes))


def test_one_color_for_all_cores_of_a_shift_mixes():
    with pytest.raises(
        UserError, match=r"Color 0 carries two flows at core \(y=0, x=0\): 'x' from x=0 to 1, and 'x' from"
    ):
        check(recolored(assign_colors(mesh_gemm(5), WSE), x=(0,)))


def test_rows_and_columns_cross_at_every_router():
    program = assign_colors(cannon(4), WSE)
    down = replace(program.routes[1], colors=program.routes[0].colors)
    with pytest.raises(UserError, match="Color 0 carries two flows at"):
        check(replace(program, routes=(program.routes[0], down)))


def test_reserved_and_missing_colors():
    with pytest.raises(
        UserError, match=r"runs on color 21; machine 'wse2' has colors 0 to 23, of which it keeps the last 3"
    ):
        check(recolored(assign_colors(summa(4), WSE), x=(21,)))
    with pytest.raises(UserError, match="Route 'x' has no colors, and machine 'wse2' routes by color"):
        check(summa(4))
    short = assign_colors(mesh_gemm(5), WSE)
    with pytest.raises(UserError, match="listens on a color of route 'x' that the route does not have: it has 2"):
        check(replace(short, routes=(replace(short.routes[0], colors=(0, 1)), short.routes[1])))


def test_a_multicast_on_two_colors():
    program = assign_colors(summa(4), WSE)
    two = replace(program.routes[0], colors=(0, 3), color=E(Dim(0)).__mod__(2).expr)
    with pytest.raises(UserError, match="A multicast runs on one color"):
        check(replace(program, routes=(two, program.routes[1])))


def test_broadcasts_from_moving_roots_switch_between_three_states():
    check(assign_colors(summa(7), machine("wse2", switch_positions=3)))
    with pytest.raises(UserError, match="between 3 pairs of input and outputs.* has 2 switch positions per color"):
        assign_colors(summa(7), machine("wse2", switch_positions=2))


def test_two_sources_of_one_round_that_meet():
    """Source p + k + 1 around a ring of 5 cores: in each round all paths cross."""
    from tilewright.sim.coremesh.program import Loop

    route = Route("far", "x", ((E(Dim(0)) + E(Dim(2)) + 1) % 5).expr)
    body = (Loop(3, (Recv(ALL, "far", slot("v"), "t"),)),)
    program = assign_colors(Program("far", 1, 5, (Buffer("v", (1,), F32),), (route,), (), (), body), PLENTY)
    with pytest.raises(UserError, match="carries two flows of route 'far' at .* in one round") as error:
        check(program, PLENTY)
    assert error.value.location == "Recv on 'far' (body[0][0] at loop indices (0,))"


def test_720_x_720_cores_are_colored_and_checked_by_lines():
    program = assign_colors(mesh_gemm(720), WSE)
    assert check(program).per_core().max() == 6
    assert len(str(program.routes)) < 3000


def test_receivers_of_both_classes_of_rows_get_an_expression_of_both_coordinates():
    """Rows below 3 shift by one, the others by two: one route each on the same columns, and one for all on columns."""
    routes = (
        Route("near", "x", (E(Dim(0)) - 1).expr),
        Route("far", "x", (E(Dim(0)) - 2).expr),
        Route("all", "y", Const(0)),
    )
    body = (
        Recv(at_least(E(Const(2)) - E(Dim(0)), E(Dim(1)) - 1), "near", slot("v"), "t"),
        Recv(at_least(E(Dim(1)) - 2), "far", slot("v"), "t"),
        Recv(at_least(E(Dim(0)) - 1), "all", slot("v"), "t"),
    )
    program = assign_colors(Program("two", 6, 7, (Buffer("v", (1,), F32),), routes, (), (), body), WSE)
    assert mixtures(program) == {}
    assert np.ptp([route.color((3, q)) for route in program.routes[1:2] for q in range(6)]) > 0
    check(program)
