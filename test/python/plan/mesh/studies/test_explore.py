# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sweeps over machines: fronts by hand and by all pairs, what streams, what does not run, what stands in files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from tilewright.cli import main
from tilewright.core.errors import UserError
from tilewright.plan.mesh.studies.explore import AXES, Exploration, Prices, explore, plain, working_bytes
from tilewright.plan.mesh.studies.pareto import dominates, front
from tilewright.plan.mesh.studies.show import as_text
from tilewright.plan.mesh.studies.workload import DECODERS, Decoder, Part, Workload, read_workload
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

#: One matrix of 40 x 24 that must lie somewhere, one that comes and goes.
SMALL = Workload("small", (Part("a", "gemv", 1, 40, 24, 3, 2), Part("b", "gemm", 7, 9, 5)), dtype="float32")


def test_a_front_by_hand():
    costs = [(1, 9), (2, 5), (2, 7), (3, 5), (4, 1), (4, 1), (9, 9)]
    assert front(costs) == [0, 1, 4, 5]
    assert front([]) == [] and front([(3,)]) == [0]


@pytest.mark.parametrize("axes", [2, 3, 5])
def test_a_front_is_what_no_other_dominates(axes: int):
    random = np.random.default_rng(axes)
    costs = [tuple(row) for row in random.integers(0, 6, (200, axes)).tolist()]
    expected = [at for at, one in enumerate(costs) if not any(dominates(other, one) for other in costs)]
    assert front(costs) == expected and 0 < len(expected) < 200


def sweep(**more: object) -> Exploration:
    named = {"grids": [(1, 1), (2, 3), (4, 4)], "links": [2, 4], "srams": [5000, 9000, 16384], "offchips": [0, 16]}
    return explore(SMALL, machine("toy8x8"), **{**named, "axes": ("time", "area"), **more})  # type: ignore[arg-type]


def test_cycles_are_those_of_the_programs():
    toy = machine("toy8x8")
    for point in sweep(srams=[1 << 20]).points:
        variant = point.variant
        one = toy.replace(height=variant.height, width=variant.width, link_bytes_per_cycle=variant.link)
        alone = [
            part.times * time_program(part.program(variant.height, variant.width, "float32"), one).cycles
            for part in SMALL.parts
        ]
        assert point.cycles == sum(alone)
        assert point.costs["time"] * toy.clock == pytest.approx(sum(alone), rel=1e-12)
        assert point.streamed == 0


def test_the_front_is_dominated_by_nothing_that_runs():
    found = sweep()
    running = [point for point in found.points if not point.problem]
    assert 0 < len(running) < len(found.points) == 3 * 2 * 3 * 2
    values = {id(point): tuple(point.costs[axis] for axis in found.axes) for point in running}
    for point in running:
        beaten = any(dominates(values[id(other)], values[id(point)]) for other in running)
        shown = any(point is one for one in found.front)
        alike = [one for one in found.front if values[id(one)] == values[id(point)]]
        if beaten or shown:
            assert beaten != shown
        else:  # another costs the same, and less of what was not weighed
            assert any(dominates(tuple(one.costs.values()), tuple(point.costs.values())) for one in alike)
    times = [point.costs["time"] for point in found.front]
    assert times == sorted(times)


def test_what_does_not_fit_streams_or_does_not_run():
    """A core of 1 x 1 holds 2 x 40 x 24 numbers, and the program of the larger part besides."""
    kept, working = 2 * 40 * 24 * 4, max(working_bytes(part.program(1, 1, "float32")) for part in SMALL.parts)
    room = kept + working + 4096  # code
    by_sram = {
        sram: sweep(grids=[(1, 1)], links=[4], srams=[sram], offchips=[0.5]).points[0]
        for sram in (working + 4095, working + 4096, room - 1, room)
    }
    problems = [point.problem for point in by_sram.values()]
    assert problems[0].startswith(f"a program needs {working} bytes") and problems[1:] == ["", "", ""]
    assert [point.streamed for point in by_sram.values()] == [0, kept, 1, 0]
    whole = by_sram[room].cycles
    assert by_sram[working + 4096].cycles == max(whole, kept / 0.5) == kept / 0.5 > whole
    assert by_sram[room - 1].cycles == whole
    nothing = sweep(grids=[(1, 1)], links=[4], srams=[room - 1], offchips=[0]).points[0]
    assert f"need {kept + working} bytes" in nothing.problem and "nothing lies behind the edge" in nothing.problem


def test_costs_of_axes():
    found = sweep(prices=Prices(core=100, kb=10, link=7), grids=[(2, 3)], srams=[16384], links=[4], offchips=[16])
    (point,) = found.points
    costs = point.costs
    assert set(costs) == set(AXES)
    assert (costs["cores"], costs["sram"], costs["offchip"]) == (6, 6 * 16384, 16)
    assert costs["links"] == 2 * (2 * 2 + 3 * 1) * 4
    assert costs["area"] == pytest.approx(6 * (100 + 160 + 28) / 1e6)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("name", sorted(DECODERS))
def test_a_decoder_has_its_weights_and_multiply_adds(name: str, phase: str):
    decoder = DECODERS[name]
    work = decoder.workload(phase)
    narrow = decoder.hidden // decoder.heads * decoder.kv_heads
    matrices = 2 * decoder.hidden**2 + 2 * decoder.hidden * narrow + 3 * decoder.hidden * decoder.ffn
    assert sum(part.weights * part.k * part.n for part in work.parts) == decoder.layers * matrices
    products = [part for part in work.parts if part.kind != "allreduce"]
    rows, seen = (decoder.tokens, decoder.tokens) if phase == "prefill" else (1, decoder.context)
    macs = rows * (matrices + 2 * seen * decoder.hidden) * decoder.layers
    assert sum(part.m * part.k * part.n * part.times for part in products) == macs
    assert work.cache_bytes == 2 * narrow * seen * decoder.layers * 2
    if phase == "decode":  # as many allreduces a layer as WaferLLM's decode has
        assert sum(part.times for part in work.parts) == 10 * decoder.layers


@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (5, 4)])
@pytest.mark.parametrize("kind", ["gemv", "gemm", "gemm_t"])
def test_weights_of_a_core_are_the_tiles_of_its_program(kind: str, grid: tuple[int, int]):
    part = Part("p", kind, 1 if kind == "gemv" else 7, 11, 13, weights=1)  # type: ignore[arg-type]
    program = part.program(*grid, "float16")
    name = {"gemv": "W1"}.get(kind, "B")
    places = [place for place in program.inputs if place.name == name]
    (buffer,) = [one for one in program.buffers if one.name == places[0].slot.buffer]
    held = len(places) * int(np.prod(buffer.shape)) * 2
    padded = part.weight_bytes(*grid, 2)
    assert padded >= 11 * 13 * 2 / (grid[0] * grid[1])
    assert kind == "gemm_t" or padded == held


def test_files_of_sizes(tmp_path: Path):
    file = tmp_path / "d.toml"
    file.write_text("hidden = 8\nffn = 12\nlayers = 1\nheads = 2\nkv_heads = 1\ncontext = 5\n")
    assert read_workload(str(file), "decode") == Decoder("d", 8, 12, 1, 2, 1, context=5).workload("decode")
    file.write_text('tokens = 3\n[[parts]]\nname = "x"\nkind = "gemv"\nk = 4\nn = 5\n')
    assert read_workload(str(file)) == Workload("d", (Part("x", "gemv", 1, 4, 5),), 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hiden = 8", "no field 'hiden': did you mean hidden"),
        ("hidden = 8", "ffn, layers, heads, kv_heads is missing"),
        ("hidden = 8\nffn = 0\nlayers = 1\nheads = 1\nkv_heads = 1", "ffn must be a whole number of at least 1, not 0"),
        ("hidden = 9\nffn = 1\nlayers = 1\nheads = 2\nkv_heads = 1", "2 heads must divide hidden = 9"),
        ("parts = 3", "'parts' must be a list of tables"),
        ("parts = []", "has no parts"),
        ('[[parts]]\nkind = "conv"', "part 'part 1' is of kind 'conv': use one of gemm, gemm_t, gemv, allreduce"),
        ("hidden = ", "Invalid value"),
    ],
)
def test_errors_of_files(tmp_path: Path, text: str, message: str):
    file = tmp_path / "d.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_workload(str(file))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "there is no model 'nothing': use one of llama3-8b"),
        (["tiny", "--phase", "train"], "there is no phase 'train'"),
        (["tiny", "--grid", "4"], "--grid 4: expected rows x columns"),
        (["tiny", "--grid", "0x4"], "a grid has size 0"),
        (["tiny", "--sram", "48Q"], "--sram 48Q: expected bytes"),
        (["tiny", "--link", "wide"], "--link wide: expected bytes per cycle"),
        (["tiny", "--link", "0"], "a link has size 0"),
        (["tiny", "--link", "nan", "4"], "--link nan 4: expected bytes per cycle"),
        (["tiny", "--offchip", "inf"], "--offchip inf: expected bytes per cycle"),
        (["tiny", "-o", "front.png"], "front.png: the report is an HTML page; end its name in .html"),
        (["tiny", "--offchip", "-1"], "offchip is -1"),
        (["tiny", "--axes", "time"], "two axes or more that differ"),
        (["tiny", "--axes", "time,beauty"], "there is no axis 'beauty': use some of time, cores"),
        (["tiny", "--price", "gold=3"], "--price gold=3: expected core, kb or link"),
        (["tiny", "--sync", "never"], "--sync never: use one of dataflow"),
        (["tiny", "--machine", "wormhole", "--link", "4"], "depend on the size of a packet"),
        (["no/such.toml"], "no/such.toml: No such file"),
    ],
)
def test_errors_of_the_command(capsys: pytest.CaptureFixture, words: list[str], message: str):
    small = [] if {"--grid", "--machine"} & set(words) else ["--grid", "2x2"]
    assert main(["explore-machine", *words, *small]) == 2
    assert message in capsys.readouterr().err


def test_the_command_writes_text_json_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture):
    page, file = tmp_path / "f.html", tmp_path / "f.json"
    named = ["--machine", "toy8x8", "--grid", "2x2", "4x3", "--sram", "16K", "48K", "--offchip", "0", "8"]
    words = ["explore-machine", "tiny", *named, "--axes", "time,area", "-o", str(page), "--json", str(file)]
    assert main(words) == 0
    text, values = capsys.readouterr().out, json.loads(file.read_text())
    assert "simulated" in text.lower() and "preset calibrated, 1 GHz, dataflow" in text and "tier T1" in text
    shown = page.read_text()
    assert "Pareto front" in shown and "What does not run" in shown and "<svg" in shown
    assert len(values["points"]) == 8 and values["simulated"] and values["tier"] == "T1"
    chosen = [point for point in values["points"] if point["front"]]
    best = [(point["costs"]["time"], point["costs"]["area"]) for point in chosen]
    assert chosen and not any(dominates(one, other) for one, other in itertools.permutations(best, 2))
    assert f"{len(chosen)} on the front" in text
    assert main([*words[:-4], "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == values


def test_that_no_machine_runs_is_told_by_the_exit_code(capsys: pytest.CaptureFixture):
    words = ["explore-machine", "tiny", "--machine", "toy8x8", "--grid", "2x2", "--sram", "1K"]
    assert main(words) == 1
    assert "no machine runs it" in capsys.readouterr().out
    assert main([*words, "48K"]) == 0


def test_nothing_that_runs_has_no_front():
    found = sweep(srams=[4100])
    assert found.front == () and "no machine runs it" in as_text(found)
    assert not any(point["front"] or point["runs"] for point in plain(found)["points"])
