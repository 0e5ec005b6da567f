# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of one product as grids grow: T1 of the real program at each size, up to a thousand cores a side."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest

from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.studies.scale import PARTS, SIDES, scale, scale_section
from tilewright.plan.mesh.studies.workload import Part
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program


def test_each_row_is_a_timing():
    toy = machine("toy8x8", "calibrated")
    rows = scale(toy, (Part("v", "gemv", 1, 31, 17),), (1, 5, 12), dtype="float32", sync="lockstep")
    for row, side in zip(rows, (1, 5, 12), strict=True):
        program = matrix_vector(MatrixVector((31, 17), side, side, accumulator="float32"))
        alone = time_program(program, toy.replace(height=12, width=12), sync="lockstep")
        assert (row["side"], row["cycles"]) == (side, alone.cycles)
        assert sum(row["split"].values()) == pytest.approx(row["cycles"])
        assert row["mac_rate"] == pytest.approx(31 * 17 / row["cycles"] / side**2)
        said = [row[name] for name in ("machine", "preset", "sync", "tier", "simulated")]
        assert said == ["toy8x8", "calibrated", "lockstep", "T1", True]


def test_a_million_cores():
    """A product gets faster with each grid; a vector's gets slower again, as its sums must cross the grid."""
    rows = scale(machine("wse2"), sides=(8, 64, 1000))
    gemm, gemv = ([row["cycles"] for row in rows if row["part"] == part.name] for part in PARTS)
    assert gemm == sorted(gemm, reverse=True)
    assert gemm[0] / gemm[2] > 5000
    assert gemv[2] < gemv[0] and gemv[2] > 1000  # it takes hops to cross a thousand cores
    assert SIDES[0] == 8 and SIDES[-1] == 1000


def test_the_plot_has_each_size():
    rows = scale(machine("toy8x8"), (Part("a <b>", "gemm", 9, 9, 9), Part("c", "gemv", 1, 9, 9)), (1, 2, 4))
    root = xml.etree.ElementTree.fromstring(scale_section(rows).text)
    assert len(root.findall(".//tbody/tr")) == 6
    names = ["".join(span.itertext()) for span in root.findall(".//div[@class='plot']/span")]
    assert {"a <b>", "c", "c, all but compute"} <= set(names)
    assert "Simulated on toy8x8, preset ideal" in "".join(root.itertext())
