# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PLMR report: parallelism, hops and stages, memory, paths; whole programs of the planner pass all checks."""

import pytest
from small_programs import all_gather, cannon, chain, mesh_gemm, summa, two_phase

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.multicast_product import all_gather_product
from tilewright.plan.mesh.multicast_product import summa as planned_summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.checks.report import check_program
from tilewright.sim.coremesh.machine import machine

WSE = machine("wse2")
KINDS = ("star", "chain", "tree", "two_phase", "k_tree", "ring")
PLANNED = [
    *(shifted_product(Product(7, 11, 5, h, w)) for h, w in ((3, 3), (2, 3), (4, 4), (1, 1), (1, 5))),
    shifted_product(Product(6, 6, 6, 4, 4, skew_a="run", skew_b="run")),
    shifted_product(Product(6, 6, 6, 4, 4), "cannon"),
    planned_summa(Product(7, 11, 5, 2, 3)),
    all_gather_product(Product(7, 11, 5, 3, 2)),
    transposed_product(Product(8, 8, 8, 4, 4)),
    matrix_vector(MatrixVector((12, 20, 6), 4, 5)),
    *(reduction(Reduce(2, 11, 7, schemes=(Scheme(kind),))) for kind in KINDS),
]


@pytest.mark.parametrize("program", PLANNED, ids=lambda p: f"{p.name} {p.height} x {p.width}")
def test_planned_programs_fit_the_machine(program):
    fitted, report = fit_program(program, WSE)
    assert all(buffer.address is not None for buffer in fitted.buffers)
    assert report.deadlock.kind == "accept"
    assert report.colors <= report.usable_colors == 21
    assert report.classes[0].peak <= report.capacity


@pytest.mark.parametrize("n", [4, 7, 12])
def test_paths_per_core_are_three_for_meshgemm_and_grow_for_summa_and_all_gather(n):
    """Reference test 13."""
    wide = machine("wse2", switch_positions=9)
    assert fit_program(mesh_gemm(n), wide)[1].paths == (3, 3)
    for make in (summa, all_gather):
        assert fit_program(make(n), wide)[1].paths == (n, n)


@pytest.mark.parametrize("n", [4, 7, 12])
def test_hops_are_two_for_meshgemm_and_a_whole_line_for_the_others(n):
    assert {one.hops for one in fit_program(mesh_gemm(n), WSE)[1].distances} == {2}
    for make in (cannon, summa):
        assert {one.hops for one in fit_program(make(n), WSE)[1].distances} == {n - 1}


@pytest.mark.parametrize(("n", "groups"), [(9, 3), (25, 5), (49, 7), (35, 7)])
def test_stages_of_two_phases_are_half_a_group_and_half_the_groups(n, groups):
    """Reference test 8: K / 2 * N^(1 / K) in all, where the groups are as many as their members."""
    report = fit_program(two_phase(n, groups), WSE)[1]
    stages = {one.route: one.stages for one in report.distances}
    assert stages == {
        "east": n // groups // 2,
        "west": n // groups // 2,
        "far east": groups // 2,
        "far west": groups // 2,
        "all": 1,
    }


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_chain_has_a_stage_per_core(n):
    (one,) = fit_program(chain(n), WSE)[1].distances
    assert (one.hops, one.stages) == (1, n - 1)


def test_the_text_says_all_four():
    text = str(fit_program(mesh_gemm(5), WSE)[1])
    assert text.splitlines()[:4] == [
        "meshgemm 5 on wse2",
        "P  25 of 25 cores compute; work per core: least 40, mean 40.0, most 40",
        "L  'x' along x: 2 hops, 1 stages",
        "     'y' along y: 2 hops, 1 stages",
    ]
    assert "R  paths per core: 3 along x, 3 along y; 6 of 21 colors, 1 switch positions" in text
    assert "'a': 32 bytes at" in text
    assert text.splitlines()[-1].startswith("deadlock: accept: all cores can go through it side by side")


def test_machines_without_colors():
    report = fit_program(mesh_gemm(5), machine("wormhole"))[1]
    assert (report.colors, report.paths) == (0, (3, 3))
    assert "no colors on this machine" in str(report)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_hops_are_those_of_the_topology(n):
    """Cannon's long link is one hop of a torus; an exchange knows no distance; a multicast goes half way round."""
    torus, exchange = machine("wormhole"), machine("ipu")
    for program, line, ring in ((cannon(n), n - 1, 1), (all_gather(n), n - 1, n // 2)):
        for which, hops in ((WSE, line), (torus, ring), (exchange, 1)):
            found = fit_program(program, which)[1].distances
            assert {one.hops for one in found if one.axis == "x"} >= {hops}, (program.name, which.name)
            assert max(one.hops for one in found) == hops, (program.name, which.name)


def test_a_program_for_more_cores_than_there_are():
    with pytest.raises(UserError, match=r"for 9 x 9 cores \(rows x columns\), and machine 'toy8x8' has 8 x 8"):
        check_program(mesh_gemm(9), machine("toy8x8"))
