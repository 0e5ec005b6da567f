# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU suite: models that travel without weights compute the same, packs are small, and run on the emulator."""

import json
import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

import models
from bench.gpu import launcher, packing
from bench.gpu.cases import CASES, SLICES
from bench.gpu.portable import folded, portable
from tilewright.core.errors import UserError


def _run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


@pytest.mark.parametrize("name", ["resnet_tiny", "gpt_tiny_decode", "lstm_tiny"])
def test_models_with_open_weights_compute_the_same(name):
    model = models.build(name)
    inputs = models.random_inputs(model)
    it = portable(model, inputs, keep_weights=True)
    names = [one["name"] for one in it.tensors]
    assert names == [i.name for i in it.model.graph.input] == it.graph["inputs"]
    kept = [np.prod(t.dims) for t in it.model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    assert it.weights and all(size <= 64 for size in kept)
    for a, b in zip(_run(model, inputs), _run(it.model, {**inputs, **it.weights}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    json.dumps(it.graph)


def test_normalization_is_folded():
    model = models.build("resnet_tiny")
    kinds = {node.op_type for node in model.graph.node}
    assert "BatchNormalization" in kinds
    assert "BatchNormalization" not in {node.op_type for node in folded(model).graph.node}
    assert {node.op_type for node in model.graph.node} == kinds, "the given model stays as it is"


def test_tensors_are_described_by_their_distribution():
    model = models.build("resnet_tiny")
    tensors = {one["name"]: one for one in portable(model, models.random_inputs(model), False).tensors}
    filters = tensors["/stem/Conv_output_0.filters"]
    assert filters["weight"] and filters["fill"]["kind"] == "normal" and 0 < filters["fill"]["std"] < 2
    assert tensors["image"]["fill"]["kind"] == "normal" and "weight" not in tensors["image"]


def test_inputs_of_full_size_are_not_made():
    case = next(case for case in CASES if case.name == "gemm_bf16_8192")
    it = packing.described(case, small=False)
    assert [one["shape"] for one in it.tensors] == [[8192, 8192]] * 2
    assert it.tensors[0]["fill"] == {"kind": "normal", "mean": 0.0, "std": 1.0}
    assert len(json.dumps([it.graph, it.tensors])) < 2000


def test_cases():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert SLICES == ("gemm", "attention", "memory", "conv", "models")
    for case in CASES:
        assert case.goal is None or case.against, case.name
        assert set(case.against) - {"copy"} <= set(case.peers), case.name


@pytest.mark.parametrize("case", [c for c in CASES if c.slice != "models"], ids=lambda case: case.name)
def test_small_kernels_are_models(case):
    model = case.build(small=True)
    onnx.checker.check_model(model, full_check=True)


def test_heavy_packs_are_refused(tmp_path, monkeypatch):
    (tmp_path / "big").write_bytes(bytes(2000))
    assert packing.check_size(tmp_path) == 2000
    monkeypatch.setattr(packing, "LIMIT", 1000)
    with pytest.raises(UserError, match=r"big \(0.0\)"):
        packing.check_size(tmp_path)


def test_a_pack_runs_on_the_emulator(tmp_path):
    suite = packing.pack(tmp_path / "pack", "sm_90a", small=True, names=["gemm_ragged", "softmax"])
    assert [case["failure"] for case in suite["cases"]] == [None, None]
    python = launcher.interpreter()
    if python is None:
        pytest.skip("needs PyTorch: tools/bench/setup-peers")
    command = [python, str(tmp_path / "pack" / "run"), "--emulate", "--strict", "--json", str(tmp_path / "result.json")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [(row["name"], row["status"], row["repeatable"]) for row in rows] == [
        ("gemm_ragged", "ok", True),
        ("softmax", "ok", True),
    ]
    assert all(row["error"] <= row["allowed"] for row in rows)


TIMED = """
import json, sys
from pathlib import Path
root = Path(sys.argv[1])
sys.path.insert(0, str(root))
from bench.gpu.far import main, measure, ours, peers, table, timing
from bench.gpu.far.machine import Emulator

class Timed(Emulator):
    timed = graphs = True
    l2_bytes = 60000  # two inputs of 37 * 200 * 2 bytes: three copies

    def capture(self, call):
        return call

    def record(self, call):
        synchronized.clear()
        call()
        if synchronized:
            raise RuntimeError("operation not permitted when stream is capturing")
        return call

def broken(given):
    raise ValueError("no luck")

def wrong(given):
    return lambda: [2 * given.module(*given.inputs)[0]]

synchronized = []

def loose(given):
    def call():
        synchronized.append(True)
        return given.module(*given.inputs)
    return call

places = []
run = ours.Ours.run
def spy(self, copy=0):
    places.append([view.address for view in self._inputs[copy]])
    run(self, copy)
ours.Ours.run = spy
peers.PEERS.update(broken=broken, wrong=wrong, loose=loose)
kernels = ours.Ours.kernels
ours.Ours.kernels = lambda self, timed: kernels(self, False)
suite = json.loads((root / "suite.json").read_text())
case = suite["cases"][0]
steps = []
task = measure.Task(case, Timed("sm_90a"), {"copy_gb_s": 1e-9}, timing.Effort(0.001, 2))
task.peers, task.report = ["eager", "broken", "wrong", "triton", "loose"], lambda step, row: steps.append(step)
row = measure.measure(root, task)
print(table.table([row], {case["name"]: case}))
print(json.dumps(row.as_json()))
task.limits, task.peers = {"copy_gb_s": 1e9}, []
print(json.dumps(measure.measure(root, task).as_json()))
print(json.dumps([steps, len({tuple(place) for place in places})]))
for arguments in (["--slice", "none"], ["--case", "x*"], []):
    print(main.main(root, arguments))
"""


def test_rows_are_timed_and_judged(tmp_path):
    python = launcher.interpreter()
    if python is None:
        pytest.skip("needs PyTorch: tools/bench/setup-peers")
    packing.pack(tmp_path / "pack", "sm_90a", small=True, names=["add"])
    command = [python, "-c", TIMED, str(tmp_path / "pack")]
    environment = {**os.environ, "TILEWRIGHT_LIBCUDA": str(tmp_path / "none.so")}
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    row, slow = (json.loads(line) for line in lines if line.startswith("{"))
    (steps, places) = next(json.loads(line) for line in lines if line.startswith("[["))
    assert row["status"] == "ok" and row["reached"] > 1 and row["copies"] == 3
    assert set(row["seconds"]) == {"ours", "ours_graph", "eager", "eager_graph", "loose"}
    assert row["notes"][0] == "broken: ValueError: no luck" and row["notes"][1].startswith("wrong: left out, error")
    assert row["notes"][-1].startswith("loose_graph: cannot be recorded: RuntimeError: operation not permitted")
    assert row["error_after"] <= row["allowed"] and row["kernels"][0]["predicted"]["ns"] > 0
    assert places == 6, "three copies of the inputs, in each of two runs"
    assert steps.index("ours_graph") < steps.index("peer eager") < steps.index("peer eager_graph")
    assert steps.index("round 1 of the timing") < steps.index("check after timing")
    assert any(line.startswith("add") and "GB/s" in line for line in lines)
    assert slow["status"] == "slow" and slow["reached"] < 0.9
    assert lines[-3:] == ["2", "2", "2"], "no such slice, no such case, no GPU"
    assert "no slice none; there are memory" in result.stderr and "(--emulate runs a small pack" in result.stderr


def test_without_a_gpu_the_pack_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(launcher, "ROOT", tmp_path)
    monkeypatch.setattr(launcher, "pack", lambda *_, **__: None)
    monkeypatch.setattr(launcher.cuda, "unavailable", lambda: "no driver")
    assert launcher.main([]) == 2
    assert "no GPU here: no driver" in capsys.readouterr().out
