# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of mesh programs: its numbers are those of the timing and the checks, its maps those of all cores."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.checks.memory import core_classes, memory_map
from tilewright.sim.coremesh.machine import Machine, machine
from tilewright.sim.coremesh.profile import mesh_report, profile
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program


@pytest.fixture(scope="module")
def toy() -> Machine:
    return machine("toy8x8", "calibrated")


@pytest.fixture(scope="module")
def programs(toy: Machine) -> list[Program]:
    made = [
        shifted_product(Product(13, 29, 7, 3, 5, "float16", skew_a="run")),
        matrix_vector(MatrixVector((37, 11), 5, 7, schemes=(Scheme("chain"), Scheme()))),
        matrix_vector(MatrixVector((5, 3), 1, 1)),
    ]
    return [fit_program(program, toy)[0] for program in made]


def test_the_whole_is_the_sum_of_programs(toy: Machine, programs: list[Program]):
    report = mesh_report(programs, toy, times=(2, 1, 3), sync="lockstep")
    values = json.loads(report.json())
    alone = [time_program(program, toy, sync="lockstep") for program in programs]
    assert values["cycles"] == pytest.approx(2 * alone[0].cycles + alone[1].cycles + 3 * alone[2].cycles)
    assert sum(values["split"].values()) == pytest.approx(values["cycles"])
    assert values["seconds"] == pytest.approx(values["cycles"] / 1e9)
    assert values["joules"] == pytest.approx(1.3 * values["seconds"])
    assert [one["cycles"] for one in values["programs"]] == [timing.cycles for timing in alone]


def test_numbers_say_what_they_hold_for(toy: Machine, programs: list[Program]):
    report = mesh_report(programs[:1], toy, sync="rendezvous", fabric_entries=2)
    for values in (report.to_dict(), report.to_dict()["programs"][0]):
        said = [values[name] for name in ("simulated", "machine", "preset", "clock", "sync", "fabric_entries", "tier")]
        assert said == [True, "toy8x8", "calibrated", 1e9, "rendezvous", 2, "T1"]
    assert values["extrapolated"] == time_program(programs[0], toy, sync="rendezvous", fabric_entries=2).extrapolated
    told = "Simulated on toy8x8, preset calibrated, 1 GHz, rendezvous, 2 wavelets in the fabric per hop, tier T1"
    assert told in report.html()


def test_the_busiest_link_and_the_use_of_links(toy: Machine, programs: list[Program]):
    one = profile(programs[1], toy)
    load, (y, x), direction = one.busiest
    place = ("east", "west", "south", "north").index(direction)
    assert load == one.timing.loads.max() == one.timing.loads[place, y, x]
    assert one.link_use == pytest.approx(load / (4 * one.timing.cycles))
    assert one.to_dict()["links"]["byte_hops"] == one.timing.loads.sum()


def test_the_memory_map_has_each_core_in_its_class(programs: list[Program]):
    for program in programs:
        peaks, classes = memory_map(program), core_classes(program)
        assert peaks.shape == (program.height, program.width)
        assert peaks.max() == classes[0].peak
        counts = {peak: sum(one.cores for one in classes if one.peak == peak) for peak in {one.peak for one in classes}}
        assert dict(zip(*np.unique(peaks, return_counts=True), strict=True)) == counts
        for one in classes:
            assert peaks[one.core] == one.peak


def test_routes_of_a_folded_ring(toy: Machine, programs: list[Program]):
    values = mesh_report(programs, toy).to_dict()["programs"]
    assert (values[0]["longest_hop"], values[0]["stages"]) == (2, 1)
    assert (values[1]["longest_hop"], values[1]["stages"]) == (4, 4)  # 5 cores: a chain, then a multicast
    assert (values[2]["longest_hop"], values[2]["stages"], values[2]["links"]["byte_hops"]) == (0, 0, 0)
    assert values[0]["memory"]["capacity"] == 49152 - 4096


def test_maps_are_those_of_all_cores(toy: Machine, programs: list[Program]):
    one = profile(programs[0], toy)
    maps = one.to_dict()["maps"]
    assert maps["cores_per_cell"] == 1
    assert np.array_equal(maps["east"], one.timing.loads[0]) and np.array_equal(maps["memory"], one.memory)


def test_large_maps_keep_their_largest():
    wide = machine("wse2")
    fitted, _ = fit_program(matrix_vector(MatrixVector((300, 300), 130, 70)), wide)
    one = profile(fitted, wide)
    maps = one.to_dict()["maps"]
    assert maps["cores_per_cell"] == 3
    assert (len(maps["north"]), len(maps["north"][0])) == (44, 24)
    assert max(map(max, maps["north"])) == one.timing.loads[3].max() > 0


def test_the_page_is_well_formed_and_shows_every_program(toy: Machine, programs: list[Program]):
    text = mesh_report(programs, toy, title="a <b> & c", where=("layer/up", "layer/down", "")).html()
    body = re.sub(r"<(img|meta)([^>]*)>", r"<\1\2/>", text.partition("\n")[2])
    root = xml.etree.ElementTree.fromstring(body)
    assert root.findtext(".//h1") == "a <b> & c"
    assert len(root.findall(".//img")) == 6 * len(programs)
    strips = root.findall(".//div[@class='split']")
    assert len(strips) == len(programs)
    for strip in strips:
        widths = [float(re.findall(r"width:([\d.]+)%", part.attrib["style"])[0]) for part in strip]
        assert sum(widths) == pytest.approx(100, abs=0.05)
    assert "http" not in text
    assert text.count("layer/up") == text.count("layer/down") == 4  # in two tables, above the maps and the routes


def test_what_is_not_given_is_an_error(toy: Machine, programs: list[Program]):
    with pytest.raises(UserError, match="at least one program"):
        mesh_report([], toy)
    with pytest.raises(UserError, match="3 programs and 1 numbers of times"):
        mesh_report(programs, toy, times=(1,))
    with pytest.raises(UserError, match="3 programs and 2 names of what they compute"):
        mesh_report(programs, toy, where=("a", "b"))
    with pytest.raises(UserError, match="8 x 8"):
        mesh_report([matrix_vector(MatrixVector((5, 3), 9, 2))], toy)
