# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan of a model is text: edited by hand and replayed through `tile-opt`, it makes other code of equal meaning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from tilewright.core import safetensors

#: A described machine, so that the plan is the same wherever the test runs; any CPU with AVX2 runs its code.
TARGET = "cpu:x86-64-v3"
#: A product of the model: 13 rows, 24 columns, 24 summands.
TILE = "#tile.rtile<l2 = [13, 24, 24], register = [6, 16, 1], unroll = [1, 1, 4], order = [0, 1, 2]>"
EDITS = {
    "register tile": (TILE.replace("register = [6, 16", "register = [3, 8"), "tile<3x8xf32>"),
    "task tile": (TILE.replace("l2 = [13, 24", "l2 = [4, 24").replace("register = [6", "register = [4"), "grid(%c4"),
    "kernel": (None, "tile.kernel @renamed"),
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[tw.Model, str, dict[str, np.ndarray]]:
    """The model as it is, its plan as text, and the weights in the plan's layouts."""
    file = str(models.path("bert_tiny"))
    folder = tmp_path_factory.mktemp("model")
    model = tw.compile(file, target=TARGET, threads=2)
    model.save(folder / "model")
    text = tw.compile(file, target=TARGET, stop_after="plan")
    return model, text, dict(safetensors.read(folder / "model/weights.safetensors"))


def run_phase(text: str, folder: Path) -> subprocess.CompletedProcess:
    """Phase `tile`, in a process of its own."""
    (folder / "plan.mlir").write_text(text)
    options = [str(folder / "plan.mlir"), "--tile-cpu-tile"]
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def replay(text: str, folder: Path) -> str:
    """What phase `tile` makes of a plan."""
    done = run_phase(text, folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_plan(edit: str, plan: tuple, tmp_path: Path) -> None:
    model, text, weights = plan
    new, appears = EDITS[edit]
    edited = text.replace(TILE, new) if new else text.replace('tile.kernel = "product', 'tile.kernel = "renamed', 1)
    assert edited != text
    kernels = replay(edited, tmp_path)
    assert appears in kernels and appears not in replay(text, tmp_path)

    inputs = models.random_inputs(onnx.load(models.path("bert_tiny")))
    other = tw.compile(kernels, target=TARGET, threads=2, weights=weights)
    assert code(other) != code(model)
    np.testing.assert_allclose(other(*inputs.values())[0], model(*inputs.values())[0], rtol=1e-4, atol=1e-5)


def test_an_impossible_edit_is_refused(plan: tuple, tmp_path: Path) -> None:
    """The weights are packed in blocks of 16 columns already."""
    done = run_phase(plan[1].replace(TILE, TILE.replace("register = [6, 16", "register = [4, 24")), tmp_path)
    assert done.returncode != 0
    assert "blocks of 16, which its register tile of 24 does not divide" in done.stderr


def test_a_plan_that_is_not_edited_gives_the_same_code(plan: tuple, tmp_path: Path) -> None:
    model, text, weights = plan
    assert code(tw.compile(replay(text, tmp_path), target=TARGET, weights=weights)) == code(model)


def code(model: tw.Model) -> bytes:
    """The shared object of a model."""
    (file,) = (model.path / "code").glob("*.so")
    return file.read_bytes()
