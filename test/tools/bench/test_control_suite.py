# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite of models with loops and branches: what is measured is the same model, and what a host does is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import models
from bench import arrays, control_counts
from bench.case import Case, suites
from bench.client import Client
from bench.environment import interpreter
from bench.measure import relative_error
from bench.peers.tilewright import Tilewright
from bench.suites.control import SUITE
from models.compare import onnxruntime_outputs

TINY = ("lstm_tiny", "nasrnn_tiny", "generation_tiny", "seq2seq_tiny", "blockdrop_tiny", "skipnet_tiny")


def test_the_suite() -> None:
    """Six models of seven at both batch sizes of the paper, but for SkipNet."""
    assert suites()["control"] is SUITE
    assert {case.sizes["batch"] for case in SUITE.cases} == {1, 64} and len(SUITE.cases) == 11


@pytest.mark.parametrize("name", TINY)
def test_driven_by_the_host_is_the_same(name: str) -> None:
    file = models.path(name)
    inputs = models.random_inputs(onnx.load(file))
    peer = Tilewright()
    peer.without = SUITE.cases[0].rivals[0].without
    peer.load(file, inputs, 2)
    peer.run()
    assert relative_error(peer.outputs(), onnxruntime_outputs(file, inputs)) < 1e-5


@pytest.mark.skipif(interpreter("torch") is None, reason="the peers are not installed (tools/bench/setup-peers)")
def test_pytorch_computes_the_same(tmp_path: Path) -> None:
    """Twice: what loops write in place is theirs."""
    with Client("torch", 1) as client:
        for name in TINY:
            file = models.path(name)
            inputs = models.random_inputs(onnx.load(file), 1)
            arrays.save(tmp_path / "inputs", inputs)
            client.ask("load", model=str(file), inputs=str(tmp_path / "inputs.npz"))
            for _ in range(2):
                client.ask("outputs", to=str(tmp_path / "outputs.npz"))
                found = list(arrays.load(tmp_path / "outputs.npz").values())
                assert relative_error(found, onnxruntime_outputs(file, inputs)) < 1e-5, name


@pytest.mark.slow
def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step of a loop is some launches and waits where the host drives it; all is one launch where it does not."""
    cases = (Case("loop", "nasrnn_tiny"), Case("branches", "blockdrop_tiny"), Case("other", "mlp_tiny"))
    monkeypatch.setattr(control_counts, "SUITE", replace(SUITE, cases=cases))
    assert (
        control_counts.main(["--arch", "sm_80", "--case", "loop,branches", "--json", str(tmp_path / "rows.json")]) == 0
    )
    loop, branches = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["after"] for row in (loop, branches)] == [{"launches": 1, "waits": 0, "recordable": True}] * 2
    assert loop["before"]["launches"] >= 3 * 4 and loop["before"]["waits"] == 3  # the step's number is brought
    assert branches["before"]["waits"] == 3 and not branches["before"]["recordable"]
    assert "loop             launches" in capsys.readouterr().out
