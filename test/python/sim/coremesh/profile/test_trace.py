# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The trace of sampled cores: Chrome's format, times in microseconds of the clock, one row per engine."""

from __future__ import annotations

import json

import pytest

import python.sim.coremesh.mesh_programs as programs
from tilewright.core.errors import UserError
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.profile import sampled_cores, trace
from tilewright.sim.coremesh.wavelets import simulate


def test_times_are_those_of_the_clock():
    slow = machine("toy8x8", clock=0.5e9)
    made = trace([programs.pass_on(8, 3, 5)], slow, cores=[(0, 3)])
    (receive,) = [one for one in made["traceEvents"] if one.get("cat") == "in"]
    assert (receive["ts"], receive["dur"]) == (pytest.approx(8 * 2e-3), pytest.approx(5 * 2e-3))
    assert (receive["args"]["begin"], receive["args"]["cycles"], receive["ph"]) == (8, 5, "X")


def test_programs_follow_each_other():
    toy = machine("toy8x8", "calibrated")
    both = [shifted_product(Product(9, 5, 7, 3, 3)), matrix_vector(MatrixVector((9, 5), 2, 3))]
    made = json.loads(json.dumps(trace(both, toy)))
    first, second = (simulate(program, toy).cycles for program in both)
    assert [(one["begin"], one["cycles"]) for one in made["otherData"]["programs"]] == [(0, first), (first, second)]
    for event in made["traceEvents"]:
        if event["ph"] == "X":
            begin = event["args"]["begin"]
            assert (begin >= first) == (event["args"]["program"] == "meshgemv")
            assert begin + event["args"]["cycles"] <= first + second
    about = made["otherData"]
    assert [about[name] for name in ("machine", "preset", "tier", "sync")] == ["toy8x8", "calibrated", "T2", "dataflow"]


def test_every_row_has_one_name_and_no_overlap():
    made = trace([shifted_product(Product(16, 16, 16, 4, 4, skew_a="run", skew_b="run"))], machine("toy8x8"))
    events = made["traceEvents"]
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert len(set(names.items())) == len(names) == sum(one["name"] == "thread_name" for one in events)
    rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in events:
        if one["ph"] == "X":
            begin = one["args"]["begin"]
            rows.setdefault((one["pid"], one["tid"]), []).append((begin, begin + one["args"]["cycles"]))
    assert set(rows) == set(names)
    for spans in rows.values():
        spans.sort()
        assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize(("height", "width", "count"), [(1, 1, 1), (1, 8, 3), (2, 2, 4), (5, 7, 7)])
def test_sampled_cores_are_on_the_grid(height: int, width: int, count: int):
    cores = sampled_cores(programs.line(width, [], [], height=height))
    assert len(cores) == len(set(cores)) == count
    assert all(0 <= y < height and 0 <= x < width for y, x in cores)


def test_nothing_to_trace_is_an_error():
    with pytest.raises(UserError, match="at least one program"):
        trace([], machine("toy8x8"))
    with pytest.raises(UserError, match="exchange"):
        trace([programs.pass_on(8, 3, 5)], machine("ipu"))
