# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A saved artifact runs where MLIR, onnx and the compiler cannot be imported, in little more memory than it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from models.compare import assert_close, onnxruntime_outputs

Child = Callable[..., dict[str, Any]]


def save(name: str, folder: Path) -> tuple[Path, Path, list[np.ndarray]]:
    """(artifact, inputs file, expected outputs) of a model."""
    file = models.path(name)
    inputs = models.random_inputs(onnx.load(file))
    np.savez(folder / "inputs.npz", **inputs)  # type: ignore[arg-type]
    tw.compile(str(file), target="cpu", threads=2).save(str(folder / "model.tw"))
    return folder / "model.tw", folder / "inputs.npz", onnxruntime_outputs(file, inputs)


def results(file: Path) -> list[np.ndarray]:
    """The arrays that a child wrote."""
    with np.load(file) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


@pytest.mark.parametrize("name", ["bert_tiny", "resnet_tiny", "lstm_tiny", "mlp_tiny"])
def test_runs_without_the_compiler(name: str, child: Child, tmp_path: Path) -> None:
    artifact, inputs, expected = save(name, tmp_path)
    report = child("run", artifact, inputs, tmp_path / "outputs.npz", 2)
    assert report["leaked"] == []
    assert_close(results(tmp_path / "outputs.npz"), expected)


def test_an_artifact_can_be_moved(child: Child, tmp_path: Path) -> None:
    artifact, inputs, expected = save("bert_tiny", tmp_path)
    moved = tmp_path / "elsewhere" / "other name.tw"
    moved.parent.mkdir()
    artifact.rename(moved)
    child("run", moved, inputs, tmp_path / "outputs.npz", 1)
    assert_close(results(tmp_path / "outputs.npz"), expected)


@pytest.mark.slow
def test_memory_held_by_the_run_time(child: Child, tmp_path: Path) -> None:
    """At most 1.3 times the packed weights and the largest live set; neither weights nor arena are inflated."""
    artifact, inputs, expected = save("minilm", tmp_path)
    report = child("run", artifact, inputs, tmp_path / "outputs.npz", 2)
    assert_close(results(tmp_path / "outputs.npz"), expected)
    weights, arena = report["weights"], report["arena"]
    # The largest live set of a layer at [128, 384]: x, q, k, v, the context (0.2 MB each), scores twice (0.8 MB each).
    live = 5 * 128 * 384 * 4 + 2 * 12 * 128 * 128 * 4
    assert report["held"] <= 1.3 * (weights + live)
    assert arena <= 2 * live  # all buffers of the six layers together would be ten times as much
    original = sum(np.prod(t.dims) * 4 for t in onnx.load(models.path("minilm")).graph.initializer)
    assert weights <= 1.05 * original
    assert report["modules"] < 60  # loading takes the run-time alone


@pytest.mark.slow
def test_equal_kernels_are_compiled_once_and_a_known_model_not_at_all(child: Child, tmp_path: Path) -> None:
    """Six equal layers, whose products differ in four ways; then everything comes from the cache."""
    file = models.path("minilm")
    cache = {"TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    cold = child("compile", file, 2, **cache)
    assert len(set(cold["jobs"])) == len(cold["jobs"]) < 25
    warm = child("compile", file, 2, **cache)
    assert warm["jobs"] == [] and warm["modules"] < cold["modules"] / 2
