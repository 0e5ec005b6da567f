# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark command: how a row is judged, and whole runs of a peer against itself."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import models
from bench import arrays
from bench.case import Case, suites
from bench.client import Client, PeerMissing, WorkerError
from bench.environment import SEPARATE, interpreter
from bench.hold import Hold
from bench.limits import Limits
from bench.main import exit_code, worst
from bench.measure import Row, believe, judge, judge_rate, relative_error, spread
from bench.table import means, table
from bench.together import Turn, together
from models.compare import onnxruntime_outputs

ROOT = Path(__file__).resolve().parents[3]


def row(target: float | None = 1.2, error: float = 0.0) -> Row:
    return Row("c", 1, target, error=error)


def test_a_row_is_judged_by_the_best_peer_and_paired_bursts() -> None:
    r = row()
    judge(r, {"ours": [1.0, 2.0, 3.0], "slow": [9.0, 9.0, 9.0], "fast": [1.0, 2.0, 2.0]}, "ours", 1e-4)
    assert (r.peer, r.ratio, r.status) == ("fast", 1.0, "ok")
    assert r.ours_ms == 2000.0


def test_a_row_above_its_target_is_slow() -> None:
    r = row(target=1.2)
    judge(r, {"ours": [1.3], "peer": [1.0]}, "ours", 1e-4)
    assert r.status == "slow"
    assert exit_code([r], strict=False) == 0
    assert exit_code([r], strict=True) == 1


def test_wrong_results_are_never_ok() -> None:
    r = row(error=1e-2)
    judge(r, {"ours": [0.1], "peer": [1.0]}, "ours", 1e-4)
    assert r.status == "wrong"
    assert exit_code([r], strict=False) == 1
    assert "WRONG" in table([r])


@pytest.mark.parametrize(
    "ours, error",
    [([2.0, 4.0], 0.0), ([2.0, 3.0], 0.25), ([2.0, math.nan], math.inf), ([2.0], math.inf)],
)
def test_relative_error(ours: list[float], error: float) -> None:
    assert relative_error([np.array(ours)], [np.array([2.0, 4.0])]) == error


def test_spread_ignores_no_more_than_the_tails() -> None:
    assert spread([1.0] * 10) == 0.0
    assert spread([1.0] * 5 + [2.0] * 5) == pytest.approx(1 / 1.5)


def test_every_case_names_a_model_and_known_peers() -> None:
    peers = {f.stem for f in (ROOT / "tools" / "bench" / "peers").glob("*.py")}
    for suite in suites().values():
        for case in suite.cases:
            assert case.model in models.MODELS
            assert set(case.peers) <= peers


def test_the_main_suite_holds_the_agreed_targets() -> None:
    targets = {case.name: case.target for case in suites()["cpu"].cases}
    assert targets["matmul_1024"] == pytest.approx(1 / 0.95)
    assert targets["minilm_b1_s128"] == targets["bert_base_b1_s128"] == 1.2
    assert targets["resnet50_b1"] == 1.6


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "bench" / "run"), *arguments], capture_output=True, text=True
    )


@pytest.mark.slow
def test_a_peer_against_itself(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = ["--case", "mlp", "--threads", "1", "--quick", "--ours", "onnxruntime", "--peers", "onnxruntime"]
    done = command("cpu-more", *options, "--json", str(file))
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    assert record["rows"][0]["case"] == "mlp_b1"
    assert 0.2 < record["rows"][0]["ratio"] < 5
    assert record["rows"][0]["error"] == 0
    assert record["machine"]["cores"] >= 1
    assert "mlp_b1" in done.stdout


def test_unknown_suites_and_cases_are_errors() -> None:
    assert "unknown suite" in command("nonsense").stderr
    assert "no case of suite cpu" in command("cpu", "--case", "nonsense").stderr
    assert command("nonsense").returncode == 2
    assert "expected numbers of threads as in 1,2, got 'x'" in command("cpu", "--threads", "x").stderr
    assert "there is no folder" in command("cpu", "--json", "no/where.json").stderr


def test_list_names_suites_and_targets() -> None:
    assert "ratio <= 1.20" in command("--list").stdout


def test_a_worker_reports_errors_by_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders = [str(ROOT / name) for name in ("tools", "test", "python")]
    monkeypatch.setenv("PYTHONPATH", ":".join(folders))
    np.savez(tmp_path / "in.npz", x=np.zeros(1))
    with Client("onnxruntime", 1) as client, pytest.raises(WorkerError, match="onnxruntime: .*nowhere"):
        client.ask("load", model="/nowhere.onnx", inputs=str(tmp_path / "in.npz"))


def test_a_rate_below_its_part_of_the_limit_is_slow() -> None:
    case = Case("c", "matmul", gflop=1.0, limit="fma_f32", share={1: 0.5})
    r = row(target=None)
    judge(r, {"ours": [0.01], "peer": [1.0]}, "ours", 1e-4)
    judge_rate(r, case, 150.0)
    assert (r.rate, r.status) == (pytest.approx(100.0), "ok")
    judge_rate(r, case, 300.0)
    assert (r.share, r.status) == (pytest.approx(1 / 3), "slow")


def test_the_limit_of_neighbouring_bursts_goes_before_that_of_the_start() -> None:
    r, case = row(target=None), Case("c", "matmul", gflop=1.0, share={1: 0.9})
    judge(r, {"ours": [0.010, 0.020, 0.040]}, "ours", 1e-4)  # the machine slows down, and the limit with it
    judge_rate(r, case, 300.0, [0.0095, 0.019, 0.038])
    assert (r.share, r.limit, r.status) == (pytest.approx(0.95), pytest.approx(1 / 0.019), "ok")


def test_a_meter_measures_one_limit_when_asked() -> None:
    with Limits([1]) as limits:
        if "skipped" in limits.rates:
            pytest.skip(str(limits.rates["skipped"]))
        assert limits.meter("dot_fp4", 1) is None
        meter = limits.meter("copy_24KB", 1)
        assert meter is not None
        with meter:
            assert all(meter.seconds() > 0 for _ in range(2))


def test_a_peer_with_other_results_than_everybody_is_left_out() -> None:
    good, bad, r = [np.ones(3)], [np.zeros(3)], row()
    assert believe(r, {"ours": good, "a": good, "b": bad}, "ours", 1e-4) == {"a"}
    assert r.error == 0.0 and "b is left out" in r.notes[0]
    assert believe(row(), {"ours": bad, "a": good, "b": good}, "ours", 1e-4) == {"a", "b"}


def test_the_mean_is_geometric_and_judged_when_strict() -> None:
    rows = [row(target=None), row(target=None)]
    rows[0].ratio, rows[1].ratio = 0.5, 2.0
    assert means(rows) == {1: pytest.approx(1.0)}
    assert (exit_code(rows, True, 0.9), exit_code(rows, True, 1.1), exit_code(rows, False, 0.9)) == (1, 0, 0)
    assert "1 thread(s) 1.000 (SLOW)" in table(rows, 0.9)


@pytest.mark.slow
def test_a_peer_that_is_not_installed_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_PEERS", str(tmp_path))
    with pytest.raises(PeerMissing, match="openvino is not installed"):
        Client("openvino", 1)
    done = command("cpu-more", *"--case mlp --threads 1 --quick --ours onnxruntime --peers onnxruntime,iree".split())
    assert done.returncode == 0, done.stderr
    assert "iree is not installed (tools/bench/setup-peers)" in done.stdout


def test_arrays_of_narrow_types_survive_a_file(tmp_path: Path) -> None:
    arrays.save(tmp_path / "a", {"x": np.arange(3).astype(ml_dtypes.bfloat16)})
    found = arrays.load(tmp_path / "a.npz")
    assert found["x"].dtype == ml_dtypes.bfloat16 and found["x"][2] == 2


def test_holding_waits_for_the_child_and_notices_an_early_end() -> None:
    with Hold(["env"]) as hold:
        pass
    assert not hold.lost
    with pytest.raises(RuntimeError, match="ended with code 1"), Hold(["false"]):
        pass


def test_rows_in_one_hold_are_loaded_first_and_timed_in_turn(tmp_path: Path) -> None:
    """One that fails to load holds nobody up; the command runs once, while bursts do."""
    log, program = tmp_path / "log", tmp_path / "command"
    program.write_text(f'#!/bin/sh\necho held >> {log}\n"$@"\necho free >> {log}\n')
    program.chmod(0o755)

    def tell(text: str) -> None:
        with log.open("a") as file:
            file.write(f"{text}\n")

    def measured(turn: Turn, name: str) -> str:
        tell(f"load {name}")
        if name == "b":
            return "failed"
        with turn():
            tell(f"begin {name}")
            time.sleep(0.01)
            tell(f"end {name}")
        return name

    assert together([str(program)], [partial(measured, name=name) for name in "abc"]) == ["a", "failed", "c"]
    lines = log.read_text().split("\n")
    assert sorted(lines[:3]) == ["load a", "load b", "load c"] and lines[3] == "held" and lines[8] == "free"
    pairs = [tuple(lines[4:6]), tuple(lines[6:8])]
    assert sorted(pairs) == [("begin a", "end a"), ("begin c", "end c")]
    assert together([], []) == []


def test_of_several_runs_the_worst_counts() -> None:
    runs = [row(), row(), row()]
    for r, ratio in zip(runs, (0.9, 1.1, 1.0), strict=True):
        r.ratio = ratio
    assert worst(runs) is runs[1] and "ratios were 0.90, 1.10, 1.00" in runs[1].notes[0]
    runs[2].status = "wrong"
    assert worst(runs) is runs[2]
    assert worst(runs[:1]).notes == []


SPARSE = ("torch_bsr", "torch_csr")  # take models of one product alone
NAMES = [(peer, name) for peer in SEPARATE if "torch_" not in peer for name in ("mlp_tiny", "gpt_tiny_decode")]
NAMES += [("torch_compile", "mlp_tiny"), ("torch_compile", "gpt_tiny_decode")]


@pytest.mark.parametrize(("peer", "name"), [*NAMES, *((peer, "pruned_linear") for peer in SPARSE)])
@pytest.mark.slow
def test_peers_of_the_separate_environment_agree(peer: str, name: str, tmp_path: Path) -> None:
    if interpreter(peer) is None:
        pytest.skip("the peers are not installed (tools/bench/setup-peers)")
    file = models.path(name, **(dict(m=5, n=64, k=96) if name == "pruned_linear" else {}))
    inputs = models.random_inputs(onnx.load(file))
    arrays.save(tmp_path / "in", inputs)
    with Client(peer, 1) as client:
        client.ask("load", model=str(file), inputs=str(tmp_path / "in.npz"))
        client.ask("outputs", to=str(tmp_path / "out.npz"))
    results = list(arrays.load(tmp_path / "out.npz").values())
    assert relative_error(results, onnxruntime_outputs(file, inputs)) < 1e-4
