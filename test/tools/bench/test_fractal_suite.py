# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite of programs on nested lists: both forms of a program compute the same, gains over peers count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import models
from bench import arrays, list_programs, own_lists, results_page
from bench.case import Case, Form, suites
from bench.client import Client
from bench.environment import ROOT, interpreter
from bench.main import QUICK, exit_code
from bench.measure import Row, judge, measure, prepare, relative_error
from bench.peers.tilewright import Tilewright
from bench.suites.fractal import SUITE
from bench.table import gain_means, table
from models import lists
from models.compare import onnxruntime_outputs
from tilewright.compiler.list_programs import traced

SIZES: dict[str, dict[str, Any]] = {
    "stacked_lstm": dict(layers=2, hidden=6, sequence=5, batch=3),
    "dilated_lstm": dict(layers=2, hidden=5, sequence=4, batch=2),
    "grid_rnn": dict(layers=2, hidden=5, rows=3, columns=4, batch=2),
    "b2b_gemm": dict(m=12, k=8, n=16, p=8, block=4),
    "attention": dict(heads=2, sequence=12, depth=5, block=4, batch=2),
    "bigbird": dict(sequence=18, block=3, hidden=5, batch=2),
    "tree_lstm": dict(words=7, hidden=5, leaves=9),
    "recursive_autoencoder": dict(hidden=5, leaves=8),
}


def forms(name: str, **sizes: Any) -> tuple[Path, dict[str, np.ndarray], list[np.ndarray]]:
    """The model of a program, inputs, and what ONNX Runtime gives for them."""
    file = models.path(f"list_{name}", **{**SIZES[name], **sizes})
    inputs = models.random_inputs(onnx.load(file))
    return file, inputs, onnxruntime_outputs(file, inputs)


def eager(file: Path, name: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the program gives as Python code."""
    program = list_programs.read(file, name)
    result = own_lists.function(program)(*own_lists.arguments(program, inputs))
    parts = result if isinstance(result, tuple) else (result,)
    return [part if isinstance(part, np.ndarray) else part.array() for part in parts]


@pytest.mark.parametrize("name", SIZES)
def test_ours_computes_what_the_model_does(name: str) -> None:
    file, inputs, expected = forms(name)
    assert relative_error(eager(file, name, inputs), expected) < 1e-5
    peer = Tilewright()
    peer.program = name
    peer.load(file, inputs, 2)
    peer.run()
    assert relative_error(peer.outputs(), expected) < 1e-5


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("dilated_lstm", dict(layers=3, sequence=7)),
        ("dilated_lstm", dict(sequence=1, layers=2)),
        ("grid_rnn", dict(rows=1, columns=1)),
        ("grid_rnn", dict(rows=5, columns=2, layers=1)),
        ("bigbird", dict(sequence=15, batch=1)),
        ("stacked_lstm", dict(layers=1, sequence=1)),
        ("tree_lstm", dict(leaves=1)),
        ("tree_lstm", dict(leaves=13, even=True, seed=3)),
        ("recursive_autoencoder", dict(leaves=7, even=False, seed=1)),
    ],
)
def test_models_of_corner_sizes(name: str, sizes: dict[str, Any]) -> None:
    file, inputs, expected = forms(name, **sizes)
    assert relative_error(eager(file, name, inputs), expected) < 1e-5


@pytest.mark.skipif(interpreter("torch_lists") is None, reason="the peers are not installed (tools/bench/setup-peers)")
@pytest.mark.parametrize("peer", ["torch_lists", "torch"])
def test_peers_in_pytorch_compute_what_the_models_do(peer: str, tmp_path: Path) -> None:
    with Client(peer, 1) as client:
        for name in SIZES:
            file, inputs, expected = forms(name)
            arrays.save(tmp_path / "inputs", inputs)
            client.ask("load", model=str(file), inputs=str(tmp_path / "inputs.npz"), program=name)
            client.ask("outputs", to=str(tmp_path / "outputs.npz"))
            assert relative_error(list(arrays.load(tmp_path / "outputs.npz").values()), expected) < 1e-5, name


def test_every_program_has_its_example_and_cases() -> None:
    examples = {file.stem for file in (ROOT / "examples" / "fractal").glob("*.py")}
    assert {case.program for case in SUITE.cases} == set(SIZES) <= examples
    assert suites()["fractal"].cases == SUITE.cases
    assert len({case.name for case in SUITE.cases}) == len(SUITE.cases)


@pytest.mark.parametrize("name", lists.INPUTS)
def test_inputs_of_attention_have_scores_that_do_not_underflow(name: str, tmp_path: Path) -> None:
    case = Case("c", f"list_{name}", SIZES[name], inputs=(name, {}))
    made = arrays.load(Path(prepare(case, Form(""), tmp_path / "files")["inputs"]))
    _, inputs, _ = forms(name)
    assert {n: a.shape for n, a in made.items()} == {n: a.shape for n, a in inputs.items()}
    q, k, _ = lists.INPUTS["bigbird"](sequence=1024, block=64, hidden=512, batch=1).values()
    assert np.abs(q[0, 0] @ k[0].reshape(1024, 512).T).max() < 8


@pytest.mark.parametrize("case", SUITE.cases, ids=lambda case: case.name)
def test_cases_can_be_traced(case: Case) -> None:
    program = list_programs.read(models.build(case.model, **case.sizes), case.program)
    found = traced(own_lists.function(program), program.lengths)
    assert case.inputs == ((case.program, {}) if case.program in lists.INPUTS else None)
    names = [spec.name for spec in found.inputs]
    assert [name for name in names if "." not in name] == list(program.inputs), "weights are no arguments"
    assert bool(program.trees) == any(name.startswith("tree.") for name in names)
    held = sum(array.size for array in program.weights.values())
    assert (held > 0) == (case.program not in ("b2b_gemm", "attention", "bigbird"))


def test_targets_are_stated() -> None:
    for case in SUITE.cases:
        tree = case.program in ("tree_lstm", "recursive_autoencoder")
        assert case.gains["torch_lists"] == (5.0 if tree else 2.0) and set(case.gains) <= set(case.peers)
        assert ("torch" in case.gains) == (case.program in ("stacked_lstm", "b2b_gemm", "attention"))


def test_a_gain_over_a_peer_below_its_target_is_slow() -> None:
    row = Row("c", 1, None, error=0.0, gain_targets={"lists": 2.0, "absent": 1.0})
    judge(row, {"ours": [1.0, 1.0], "lists": [1.5, 2.0], "peer": [0.5, 0.5]}, "ours", 1e-4)
    assert (row.status, row.gains, row.peer, row.ratio) == ("slow", {"lists": 1.75}, "peer", 2.0)
    other = replace(row, gains={"lists": 7.0, "own dense": 3.0})
    assert gain_means([row, other]) == {"lists": {1: pytest.approx(3.5)}}
    assert "geometric mean of the gains over lists: 1 thread(s) 3.50" in table([row, other])
    assert exit_code([row], strict=True) == 1 and exit_code([row], strict=False) == 0


def test_a_program_is_measured_beside_its_model() -> None:
    case = Case("c", "list_b2b_gemm", SIZES["b2b_gemm"], peers=("onnxruntime",), program="b2b_gemm")
    case = replace(case, gains={"onnxruntime": 1e-6})
    row = measure(case, 1, "tilewright", replace(QUICK, seconds=0.005, rounds=3, most_rounds=3), lambda text: None)
    assert row.status == "ok", row.message
    assert row.error is not None and row.error < 1e-5 and set(row.gains) == {"onnxruntime"}


def test_the_page_names_peers_of_gains() -> None:
    row = {"case": "c", "threads": 1, "ours_ms": 1.0, "peer_ms": 2.0, "peer": "torch", "ratio": 0.5, "status": "ok"}
    row |= {"gains": {"torch_lists": 3.0}, "gain_targets": {"torch_lists": 2.0}}
    lines = results_page._gain_lines("c", 1, [row])
    assert lines == ["| c | 1 | 1 | PyTorch on lists | 3.00 | 3.00 | 2.00 | 2 (PyTorch) | 0.50 |"]
    means = results_page._means([{"rows": [row, {**row, "gains": {"torch_lists": 12.0, "own dense": 5.0}}]}])
    assert means[-1] == "| gains over PyTorch on lists | 1 | 6.00 |"
    assert results_page._gains_text([{"rows": [row]}]) != results_page._GAINS
