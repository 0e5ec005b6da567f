# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A target of another package, found by its entry point: everything takes it as one of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.targets import registry

PACKAGE = Path(__file__).parent / "Inputs"
ROOT = Path(tw.__file__).parents[2]
W = np.random.default_rng(3).standard_normal((24, 40)).astype(np.float32)


def run(*command: str | Path, status: int = 0) -> str:
    """Run a command in which the package is installed, as far as Python sees; what it prints."""
    path = os.pathsep.join([str(PACKAGE), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def tilewright(*words: str | Path, status: int = 0) -> str:
    """One command of the command line."""
    return run(sys.executable, "-m", "tilewright.cli", *words, status=status)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """relu(x w), written to a file; `rows` is open."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", s]) for n, s in (("x", 24), ("y", 40))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(W, "w")])
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_compile_run_and_explain(model: Path, tmp_path: Path) -> None:
    """The artifact holds kernels as text; they compute what the model means, and the page shows them."""
    saved, x = tmp_path / "product.tw", np.random.default_rng(4).standard_normal((7, 24)).astype(np.float32)
    text = tilewright("compile", model, "--target", "tiles", "--shape", "rows=7", "-o", saved)
    assert "1 kernel, weights 0.0 MB" in text
    np.save(tmp_path / "x.npy", x)
    tilewright("run", saved, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz")
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], np.maximum(x @ W, 0), rtol=1e-5, atol=1e-5)
    tilewright("run", model, "--target", "tiles", "--shape", "rows=2")
    tilewright("explain", saved, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    with pytest.raises(UserError, match="is for target tiles, which is not installed here; there are cpu, cuda"):
        tw.load(saved)
    assert "compiled for tiles" in page and "outside-count-kernels" in page and "tile.kernel" in page


def test_open_sizes_and_stopping(model: Path, tmp_path: Path) -> None:
    """One artifact for all sizes; the IR after a phase."""
    saved = tmp_path / "open.tw"
    tilewright("compile", model, "--target", "tiles", "-o", saved)
    assert "y: [5, 40]" in tilewright("run", saved, "--size", "rows=5")
    text = tilewright("compile", model, "--target", "tiles", "--shape", "rows=7", "--stop-after", "tile")
    assert "tile.launch" in text and "outside.kernels" not in text


def test_check_and_bisect(model: Path) -> None:
    """Coverage by node; the states of its own pipeline, its pass among them."""
    assert "it can be compiled" in tilewright("check", model, "--target", "tiles")
    assert "no pass moved a result" in tilewright("bisect", model, "--target", "tiles", "--shape", "rows=7")


def test_choices_that_it_does_not_have(model: Path) -> None:
    """The rules for all targets ask it what it can do."""
    words = ("compile", model, "--target", "tiles", "--shape", "rows=7")
    assert "precision='bf16' is for CPUs" in tilewright(*words, "--precision", "bf16", status=2)
    assert "emulate= runs the code of a GPU" in tilewright(*words, "--emulate", status=2)
    assert "unknown target 'tiles:x'" in tilewright("compile", model, "--target", "tiles:x", status=2)


def test_tile_opt(tmp_path: Path) -> None:
    """Its pass and its phases are registered with the target."""
    (tmp_path / "kernels.mlir").write_text("tile.kernel @k(%x: memref<4xf32>) grid(%i) { tile.return }")
    command = (sys.executable, "-m", "tilewright.tools.tile_opt")
    for option in ("--outside-count-kernels", "--tile-tiles-lower"):
        assert "outside.kernels = 1" in run(*command, option, tmp_path / "kernels.mlir")
    assert re.search(r"lower: .*\n +1\. outside-count-kernels", run(*command, "--pass-doc", "tile-tiles-lower"))


def test_conformance_slice() -> None:
    """ONNX's own tests of some operators, from saved artifacts."""
    names = "test_relu or test_matmul_2d or test_softmax_axis_1 or test_transpose_default or test_concat_1d_axis_0"
    text = run(ROOT / "tools" / "conformance", "--target", "tiles", "--suite", "node", "-k", names, "--jobs", "2")
    passed, total = re.search(r"node: (\d+) of (\d+) pass", text).groups()
    assert passed == total and int(total) >= 5, text


def test_without_the_package() -> None:
    """Nothing of it is known here: neither by name, nor to load."""
    assert registry.find("tiles") is None
    with pytest.raises(UserError, match="unknown target 'tiles'; this version has cpu"):
        registry.named("tiles")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["broken = no_such_module:Target"], "target 'broken': cannot import no_such_module:Target"),
        (["broken = pathlib:Path"], "target 'broken': pathlib:Path is no tilewright.targets.Target of kind 'broken'"),
        (["broken = a:T", "broken = b:T"], r"several packages have a target 'broken' \(a:T, b:T\)"),
    ],
)
def test_a_broken_package(lines: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with it is told with its name."""
    for number, line in enumerate(lines):
        info = tmp_path / f"broken{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: broken{number}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[tilewright.targets]\n{line}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=message):
        registry.named("broken")
