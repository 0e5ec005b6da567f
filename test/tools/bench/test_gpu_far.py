# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packed suite's processes: what hangs, crashes or loses its context takes nothing else with it."""

import json
import os
import subprocess
import sys

import pytest

from bench.gpu import launcher, packing
from bench.gpu.far import child, main
from bench.gpu.far.lines import Lines
from bench.gpu.far.row import Row
from bench.gpu.far.runner import Budget, Runner, measured
from tilewright.runtime.gpu import cuda_errors

#: A worker without PyTorch: cases do what their names say.
WORKER = """
import json, os, signal, sys, time
sys.path.insert(0, {tools!r})
from pathlib import Path
from bench.gpu.far import child
root, results = map(Path, sys.argv[1:])
job = json.loads(sys.stdin.readline() or "null")
if job is None:
    sys.exit(0)
def say(step, **values):
    child.append(results, dict(step=step, **values))
if job["stage"] == "machine":
    say("done", machine=dict(gpu="none", driver="1.2"), limits=dict(copy_gb_s=1.0), state=dict(sm_mhz=1))
    sys.exit(0)
row = dict(name=job["case"], slice="s", status="ok", seconds=dict(ours=1.0), runs=50 if job["stage"] == "check" else 2)
with open(root / "jobs", "a") as file:
    file.write(job["case"] + " " + job["stage"] + "\\n")
say("check", row=row)
if job["case"] == "hang":
    time.sleep(60)
if job["case"] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if job["case"] == "lost":
    print("an illegal memory access", file=sys.stderr)
    sys.exit(child.LOST)
if job["case"] == "torn":
    with open(results, "a") as file:
        file.write('{{"step": "done", "row": {{')
    os._exit(1)
if job["case"] == "peer" and "bad" not in job["without"]:
    say("peer bad", row=row)
    os.abort()
say("done", row=row)
"""
NAMES = ["first", "hang", "crash", "lost", "torn", "peer", "unbuilt", "last"]


def _root(tmp_path, names=NAMES):
    cases = [dict(name=n, slice="s", goal=None, gbyte=None, gflop=1, failure=None, folder="x") for n in names]
    for case in cases:
        case |= {"folder": None, "failure": "no way"} if case["name"] == "unbuilt" else {}
    suite = {"arch": "sm_90a", "small": True, "about": {"packed": "now"}, "cases": cases}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(tools=str(packing.ROOT / "tools")))
    return [sys.executable, str(script)]


def _jobs(tmp_path):
    return (tmp_path / "jobs").read_text().split("\n")[:-1]


@pytest.mark.slow
def test_every_other_case_reports(tmp_path, capsys):
    worker = _root(tmp_path)
    assert main.main(tmp_path, ["--emulate", "--seconds", "5"], worker) == 1
    summary = json.loads((tmp_path / "results.json").read_text())
    rows = {row["name"]: row for row in summary["rows"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "first": "ok",
        "hang": "hang",
        "crash": "crash",
        "lost": "lost",
        "torn": "failed",
        "peer": "ok",
        "unbuilt": "not built",
        "last": "ok",
    }
    assert rows["hang"]["message"] == "no end within 5 s, in step 'check'"
    assert "ended by SIGSEGV, in step 'check'" in rows["crash"]["message"]
    assert rows["lost"]["message"].endswith(": an illegal memory access")
    assert rows["hang"]["seconds"] == {"ours": 1.0}, "what was known before the end"
    assert rows["peer"]["notes"][0].startswith("bad: ended by SIGABRT, in step 'peer bad'")
    assert (summary["device"], summary["driver"], summary["clocks"]["end"]) == ("none", "1.2", {"sm_mhz": 1})
    assert summary["command"] == "run --emulate --seconds 5"
    text = capsys.readouterr()
    assert "hang       hang check" in text.err and "HANG" in text.out
    kinds = [line["kind"] for line in child.read(tmp_path / "results.jsonl")]
    assert kinds == ["start", *["case"] * 8, "end"]


def test_slices_go_on_where_the_last_one_ended(tmp_path):
    worker = _root(tmp_path, ["first", "last", "more"])
    assert main.main(tmp_path, ["--emulate", "--case", "first"], worker) == 0
    with open(tmp_path / "results.jsonl", "a") as file:
        file.write('{"kind": "case", "case": "last", "sta')  # the command was killed
    assert main.main(tmp_path, ["--emulate"], worker) == 0
    assert _jobs(tmp_path) == ["first check", "last check", "more check"]
    summary = json.loads((tmp_path / "results.json").read_text())
    assert [row["status"] for row in summary["rows"]] == ["ok"] * 3 and len(summary["slices"]) == 2
    assert main.main(tmp_path, ["--emulate", "--again", "--case", "more"], worker) == 0
    assert _jobs(tmp_path)[3:] == ["more check"] and (tmp_path / "results.jsonl.old").exists()
    assert [row["status"] for row in json.loads((tmp_path / "results.json").read_text())["rows"]] == [
        "out of time",
        "out of time",
        "ok",
    ]


def test_results_of_another_pack_are_refused(tmp_path, capsys):
    worker = _root(tmp_path, ["first"])
    child.append(tmp_path / "results.jsonl", {"kind": "start", "pack": {"packed": "before"}})
    assert main.main(tmp_path, ["--emulate"], worker) == 2
    assert "results of another pack" in capsys.readouterr().err
    assert main.main(tmp_path, ["--emulate", "--json", str(tmp_path / "x.jsonl")], worker) == 2


@pytest.mark.slow
def test_nothing_outlives_the_budget(tmp_path, capsys):
    """A case that the budget cuts short has no line: the next slice runs it."""
    worker = _root(tmp_path, ["first", "hang", "last"])
    assert main.main(tmp_path, ["--emulate", "--budget", "8"], worker) == 0
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["status"] for row in rows] == ["ok", "out of time", "out of time"]
    assert "cut short  hang check" in capsys.readouterr().err


def test_both_stages_are_one_row(tmp_path):
    """Where there is a clock, cases that are right are timed; what only the check tells stays."""
    worker = _root(tmp_path, ["first", "crash"])
    lines = Lines(tmp_path / "results.json")
    with Runner(tmp_path, Budget(60), worker) as runner:
        for name in ("first", "crash"):
            case = {"name": name, "slice": "s", "goal": None, "folder": "x"}
            for stage in ("check", "time"):
                row, done = measured(runner, case, {"stage": stage, "without": []})
                lines.add("case", case=name, stage=stage, outcome=done.outcome.status, row=row.as_json())
    cases = json.loads((tmp_path / "suite.json").read_text())["cases"]
    first, crash = lines.rows(cases, timed=True)
    assert (first.status, first.runs, first.seconds) == ("ok", 50, {"ours": 1.0}) and crash.status == "crash"
    assert Row.of(first.as_json()) == first


#: The suite's own worker, in which kernels of some cases do what a GPU's may.
FAULTY = """
import os, signal, sys, time
from pathlib import Path
from bench.gpu.far import machine, ours, worker
run = ours.Ours.run
count = [0]
class Lost(Exception):
    pass
def faulty(self, copy=0):
    count[0] += 1
    name = self._manifest.compile["model"] + str(self._manifest.inputs[0].shape[0])
    kind = KINDS.get(name)
    if kind == "hang":
        time.sleep(600)
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "lost":
        machine.Emulator.is_lost = True
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if kind == "nothing":
        return
    run(self, copy)
    if kind == "other bits" and count[0] == 2:
        self._machine.device.fill(self._places[0].address, 0, 2)
ours.Ours.run = faulty
sys.exit(worker.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_kernels_that_misbehave_on_the_emulator(tmp_path):
    """End to end: a hang, a crash, a lost context, a kernel that writes nothing, one of other bits; and right ones."""
    python = launcher.interpreter()
    if python is None:
        pytest.skip("needs PyTorch: tools/bench/setup-peers")
    names = ["gemm_ragged", "batched", "add", "softmax", "layernorm", "rmsnorm", "column_sums_f32"]
    suite = packing.pack(tmp_path / "pack", "sm_90a", small=True, names=names)
    assert all(case["cubin_bytes"] > 0 for case in suite["cases"]) or not packing.ptxas.find()
    kinds = {"batched3": "hang", "add37": "crash", "softmax37": "lost", "layernormalization37": "nothing"}
    kinds["rmsnormalization37"] = "other bits"
    script = tmp_path / "faulty.py"
    script.write_text(f"KINDS = {kinds!r}\n{FAULTY}")
    worker = [python, str(script)]
    command = f"import sys; sys.path.insert(0, {str(tmp_path / 'pack')!r}); from pathlib import Path; "
    command += f"from bench.gpu.far import main; sys.exit(main.main(Path({str(tmp_path / 'pack')!r}), "
    command += f"['--emulate', '--seconds', '30'], {worker!r}))"
    done = subprocess.run([python, "-c", command], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == 1, done.stderr
    rows = {row["name"]: row for row in json.loads((tmp_path / "pack" / "results.json").read_text())["rows"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "gemm_ragged": "ok",
        "batched": "hang",
        "add": "crash",
        "softmax": "lost",
        "layernorm": "wrong",
        "rmsnorm": "wrong",
        "column_sums_f32": "ok",
    }, done.stderr
    assert rows["softmax"]["message"].startswith("lost its CUDA context, in step 'check'")
    assert "7400 elements are as they were before the run" in rows["layernorm"]["message"]
    assert rows["rmsnorm"]["repeatable"] is False and rows["rmsnorm"]["message"].startswith("run 2: error")


def test_errors_that_stay():
    """An illegal address ends a context; a full memory, a refused launch or a broken capture do not."""
    assert all(cuda_errors.is_lost(code) for code in (214, 700, 709, 715, 716, 719, 999))
    assert not any(cuda_errors.is_lost(code) for code in (0, 2, 209, 701, 720, 900, 901))
