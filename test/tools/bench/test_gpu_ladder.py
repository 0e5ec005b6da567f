# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bring-up ladder: it climbs on the emulator, stops where a rung fails, hangs or dies, and says what is wrong."""

import json
import subprocess
import sys
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from bench.gpu.far.ladder import boxes, facts, main, multiply, numbers, programs, sanitizer, starting, watching
from bench.gpu.far.ladder.device import Pack, Program, opener
from bench.gpu.far.ladder.diagnosis import tma, wgmma
from bench.gpu.far.ladder.report import Check, Report
from bench.gpu.far.ladder.rungs import RUNGS, chosen
from bench.gpu.far.ladder.setup import from_json
from bench.gpu.ladder import building, campaign, descriptors, watched
from bench.gpu.ladder.cases import ENTRIES
from bench.gpu.packing import pack
from tilewright.runtime.gpu.cuda_module import KernelInfo
from tilewright.runtime.gpu.gpu_device import Limits

ARCH = "sm_90a"
NAMES = [rung.name for rung in RUNGS]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A pack with the parts of the ladder that take least."""
    folder = tmp_path_factory.mktemp("ladder") / "pack"
    pack(folder, ARCH, True, ["add"], rungs=["launches", "ring", "wgmma_k64", "wgmma_mn_a"])
    return folder


def _climb(folder, *arguments):
    command = [sys.executable, str(folder / "ladder"), "--emulate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.mark.slow
def test_the_whole_ladder_holds_on_the_emulator(tmp_path):
    pack(tmp_path / "pack", ARCH, True, ["add"], rungs=())
    done = _climb(tmp_path / "pack", "--json", str(tmp_path / "ladder.json"))
    lines = [json.loads(line) for line in (tmp_path / "ladder.json").read_text().splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line["rung"] for line in lines] == NAMES
    assert {line["rung"] for line in lines if line["status"] == "skipped"} == {"registers", "occupancy", "sanitizer"}
    assert sum(line["seconds"] for line in lines) < 300, "half a minute where nothing else runs"
    assert all(check["status"] in ("ok", "skipped") for line in lines for check in line["checks"])
    skipped = [check["check"] for line in lines for check in line["checks"] if check["status"] == "skipped"]
    assert skipped == ["kernels", "kernels", "stream_k_graph", "compute-sanitizer"]


def test_every_program_has_a_rung():
    assert {entry.rung for entry in ENTRIES} < set(NAMES)
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert [rung.name for rung in chosen("fp8", None)] == ["fp8", "sanitizer"]
    assert [rung.name for rung in chosen(None, "tile")] == ["tile"]
    with pytest.raises(ValueError, match="no rung tiles; there are driver"):
        chosen(None, "tiles")


@pytest.mark.slow
def test_rungs_run_in_processes_and_their_lines_are_whole(small, tmp_path):
    done = _climb(small, "--only", "launches", "--json", str(tmp_path / "lines"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok       launches         parameters, grids and stores")
    (line,) = map(json.loads, (tmp_path / "lines").read_text().splitlines())
    assert [check["check"] for check in line["checks"]] == [*starting.LAUNCHES, "add", "softmax", "layernorm"]
    listed = _climb(small, "--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == NAMES
    unknown = _climb(small, "--only", "tiles")
    assert unknown.returncode == 2 and "there are driver, registers" in unknown.stderr


BROKEN = {
    "hang": "    while True: time.sleep(1)\n",
    "crash": "    os.abort()\n",
    "failed": "    raise RuntimeError('no luck')\n",
    "lost": "    raise TilewrightError('cuCtxSynchronize failed: the process has lost its CUDA context')\n",
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_ladder_stops_at_a_rung_that_ends_badly(small, tmp_path, how):
    """The rung's process is made to end so, in its second check; rungs after it do not run."""
    step = small / "bench" / "gpu" / "far" / "ladder" / "facts.py"
    text = step.read_text()
    mark = '    with report.check("memory") as check:\n'
    assert mark in text
    head = "import os, time\nfrom tilewright.core.errors import TilewrightError\n"
    broken = text.replace("from __future__ import annotations\n", "").replace(mark, f"{mark}    {BROKEN[how]}")
    try:
        step.write_text(head + broken)
        done = _climb(small, "--json", str(tmp_path / "lines"), "--seconds", "4" if how == "hang" else "30")
    finally:
        step.write_text(text)
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert done.returncode == 1 and [line["rung"] for line in lines] == ["driver"]
    assert lines[0]["status"] == how and lines[0]["seconds"] < 31
    assert lines[0]["checks"][0]["status"] == "ok", "what was done before the end is kept"
    assert "memory" in lines[0]["text"] and "see nvidia-smi" in lines[0]["text"]


def test_wrong_numbers_are_told(small, tmp_path):
    """Against a bound that no f32 reaches: the check is wrong, with figures."""
    entry = {**Pack(small).programs("launches")[0], "error": 1e-12}
    report = Report(tmp_path / "lines", "launches")
    programs.compare(Pack(small), opener(ARCH, True), report, entry)
    line = json.loads((tmp_path / "lines").read_text().splitlines()[-1])
    assert report.failed and line["status"] == "wrong"
    assert "accepted 1e-12" in line["text"] and "elements differ, from [0, " in line["text"]


def test_what_differs_is_described():
    wanted = np.arange(12.0).reshape(3, 4)
    found = wanted.copy()
    found[1, 2], found[2, 3] = np.nan, 0
    text = programs.where(found, wanted, 1e-6)
    assert text.startswith("2 of 12 elements differ, from [1, 2] to [2, 3], 1 of them still hold the poison")
    assert text.endswith("the first is nan, not 6")
    check = Check()
    programs.judge(check, found, wanted, 1e-6)
    assert check.line["status"] == "wrong"


def test_outputs_that_nothing_writes_are_seen(small):
    """On a GPU outputs hold NaN before a run; here the emulator refuses to hand them over."""
    program = Program(Pack(small), Pack(small).programs("launches")[0], opener(ARCH, True)(0))
    program.host.run = lambda inputs, outputs: {}
    with pytest.raises(Exception, match="nothing has written"):
        program.run()


@pytest.mark.parametrize("rung", ["wgmma_k64", "wgmma_mn_a"])
def test_descriptors_are_those_of_the_compiler(small, rung):
    """What the probe multiplies with is read from the PTX; a wrong stride in it is named."""
    here = Pack(small)
    (probe,) = here.probes(rung)
    setup, device = from_json(probe["setup"]), opener(ARCH, True)(0)
    assert setup.a is not None and (setup.a.swizzle, setup.a.k_major) == (64, rung == "wgmma_k64")
    check = Check()
    multiply.one_hot(device, here.text(probe), setup, check)
    assert check.line["status"] == "ok" and check.line["text"].startswith("4 products of 64x64x32")
    encoded = replace(setup, b=replace(setup.b, stride=2 * setup.b.stride))
    check = Check()
    multiply.one_hot(device, here.text(probe), encoded, check)
    assert check.line["status"] == "wrong" and "it is not that of the layout" in check.line["text"]
    assert "elements of b_" in check.line["text"] and "WgmmaOperands.cpp" in check.line["text"]


def test_a_matrix_unit_that_reads_otherwise_is_explained(small, monkeypatch):
    """The machine takes another stride than the descriptor has: the field is named."""
    here = Pack(small)
    (probe,) = here.probes("wgmma_k64")
    setup = from_json(probe["setup"])
    assert setup.a is not None
    other = replace(setup, a=replace(setup.a, stride=setup.a.stride + 16))

    def reads_otherwise(device, text, given, image, words):
        return wgmma.product(other, image)

    monkeypatch.setattr(watching, "multiply", reads_otherwise)
    check = Check()
    multiply.one_hot(opener(ARCH, True)(0), here.text(probe), setup, check)
    assert check.line["status"] == "wrong" and check.line["cause"]["field"] == "a.stride"


def test_operands_of_ptx_are_read():
    line = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd5, %rd6, p, 1, 1, 0, 1; }"
    text = f"or.b64 %rd5, %rd1, {0x4000004000010000};\nor.b64 %rd6, %rd2, {-0x3FFFFFF000000000 + 0x1000000};\n{line}"
    n, dtype, left, right = descriptors.matrix_operands(text)
    assert (n, dtype) == (8, "f16") and left == descriptors.Operand(0x4000004000010000, 0, True)
    assert right.bits == 0xC000001001000000 and not right.k_major
    with pytest.raises(ValueError, match="has no wgmma"):
        descriptors.matrix_operands("mma.sync")
    with pytest.raises(ValueError, match="not made of constants"):
        descriptors.matrix_operands(line)


def test_boxes_are_right_and_cover_what_they_should():
    found = dict(boxes.setups())
    assert {setup.swizzle for setup in found.values()} == {0, 32, 64, 128}
    assert {len(setup.dims) for setup in found.values()} == {1, 2, 3, 4, 5}
    assert {setup.fill for setup in found.values()} == {"zero", "nan"}
    device = opener(ARCH, True)(0)
    for name in ("swizzle128_end", "swizzle32_row_phase", "steps_end", "rank5"):
        setup = found[name]
        memory = tma.source(boxes._buffer(setup))
        text = watched.box(len(setup.dims))
        seen = watching.box(device, text, setup, memory, tma.poisoned(), boxes.EMULATED_POLLS)
        assert seen.over and (seen.dump == tma.Loaded(memory, tma.poisoned()).dump(setup)).all(), name


@pytest.mark.slow
def test_launches_and_phases_that_are_wrong_are_named(small, tmp_path, monkeypatch):
    """A launch with other CTAs, a ring whose full barriers expect too much."""
    here, open_ = Pack(small), lambda units: campaign.device("late")  # without checks, as a GPU is
    real_echo, real_ring = watching.echo, watching.ring
    monkeypatch.setattr(
        watching, "echo", lambda d, t, s: real_echo(d, t, replace(s, block=(s.block[1], s.block[0], 1)))
    )
    report = Report(tmp_path / "launches", "launches")
    starting.launched(here, open_, report)
    lines = [json.loads(line) for line in (tmp_path / "launches").read_text().splitlines()]
    (first,) = [line for line in lines if line.get("cause") and line["check"] == "grid"]
    assert report.failed and first["cause"]["field"] == "block"
    monkeypatch.setattr(
        watching, "ring", lambda d, t, s, *more: real_ring(d, t, replace(s, tx_bytes=s.tx_bytes + 64), *more)
    )
    report = Report(tmp_path / "ring", "ring")
    starting.rings(here, open_, report)
    causes = [json.loads(line).get("cause") for line in (tmp_path / "ring").read_text().splitlines()]
    assert report.failed and {cause["field"] for cause in causes if cause} == {"tx_bytes"}


class Fake:
    """A GPU that says of every kernel the same."""

    limits = Limits(ARCH, 132, cubins=True)

    def __init__(self, registers, held=1):
        self.handle = type("Handle", (), {"info": KernelInfo(registers, 0, 0, 1024)})()
        self.held = held

    def load(self, image):
        return image

    def function(self, module, name):
        return self.handle

    def resident(self, handle, threads, shared_bytes):
        return self.held


def _lines(path, run, device, folder):
    run(Pack(folder), lambda units: device, Report(path, "facts"))
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["status"] != "started"]


def test_registers_are_compared_with_those_of_ptxas(small, tmp_path):
    entry = Pack(small).programs("launches")[0]
    (known,) = entry["kernels"].values()
    if not known:
        pytest.skip("ptxas is not installed")
    lines = _lines(tmp_path / "a", facts.registers, Fake(known["registers"]), small)
    assert lines[0]["check"].startswith("add.") and lines[0]["status"] == "ok"
    lines = _lines(tmp_path / "b", facts.registers, Fake(known["registers"] + 8), small)
    assert lines[0]["status"] == "wrong" and f"ptxas said {known['registers']} registers" in lines[0]["text"]
    lines = _lines(tmp_path / "c", facts.occupancy, Fake(32, held=0), small)
    assert {line["status"] for line in lines} == {"wrong"} and "no CTA of" in lines[0]["text"]


def test_numbers_of_small_types():
    random = np.random.default_rng(0)
    assert numbers.widened("f8e4m3fn", np.array([0x38, 0x7E, 0x01, 0xB8], np.uint8)).tolist() == [1, 448, 2**-9, -1]
    values = numbers.drawn("f8e4m3fn", (100,), "positive", random)
    wide = numbers.widened("f8e4m3fn", values)
    assert wide.min() >= 1 and wide.max() < 2
    drawn = random.standard_normal(1000)
    wanted = drawn.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert (numbers.rounded("bf16", drawn) == wanted.view(np.uint16)).all()
    assert (numbers.widened("bf16", wanted.view(np.uint16)) == wanted.astype(np.float64)).all()
    with pytest.raises(ValueError, match="no 'odd' inputs"):
        numbers.drawn("f16", (1,), "odd", random)


def test_what_cannot_be_built_fails_its_rung(tmp_path, monkeypatch):
    entry = replace(ENTRIES[0], marks=("no such instruction",))
    monkeypatch.setattr(building, "ENTRIES", (entry,))
    found = building.build(tmp_path, ARCH, True)
    assert "has no no such instruction" in found["programs"][0]["failure"]
    report = Report(tmp_path / "lines", "launches")
    programs.rung("launches")(Pack(tmp_path), opener(ARCH, True), report)
    assert report.failed and "could not be built" in (tmp_path / "lines").read_text()


SANITIZER = """#!/bin/sh
case "$2" in
racecheck) echo "========= COMPUTE-SANITIZER"; echo "========= Error: Race reported between Write and Read"
  echo "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"; exit 99;;
esac
shift 4
exec "$@"
"""


def test_what_compute_sanitizer_says_is_told(small, tmp_path):
    program = tmp_path / "compute-sanitizer"
    program.write_text(SANITIZER)
    program.chmod(0o755)
    text = sanitizer.said(str(program), "racecheck", small, "launches", ["--emulate"])
    assert text.startswith("racecheck: 1 hazard: ") and "between Write and Read" in text
    assert sanitizer.said(str(program), "synccheck", small, "launches", ["--emulate"]) == ""
    absent = sanitizer.said(str(program), "synccheck", small, "nothing", ["--emulate"])
    assert absent.startswith("synccheck: exit code 1"), "a rung that cannot run is no rung without errors"


def test_without_a_gpu_it_does_not_begin(small, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so")
    assert main.main(small, []) == 2
    assert "(--emulate climbs with a small pack" in capsys.readouterr().err
