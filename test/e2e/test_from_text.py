# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""After phase `tile` everything that computes is a kernel, and the text of kernels is all that code is made from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from tilewright.core import safetensors
from tilewright.mlir import ir

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "mlp_tiny",
    "bert_tiny",
    "resnet_tiny",
    "mobilenet_tiny",
    "vit_tiny",
    "lstm_tiny",
    pytest.param("minilm", marks=pytest.mark.slow),
    pytest.param("resnet50", marks=pytest.mark.slow),
]
#: What kernels are made of.
IN_KERNELS = {"tile", "arith", "math", "scf", "memref", "affine"}
#: What @main holds besides launches: constants, views, and loops over launches.
IN_MAIN = {"tile", "arith", "tensor", "scf", "ml_program", "func"}
VIEWS = {
    "tensor.empty", "tensor.extract_slice", "tensor.insert_slice", "tensor.expand_shape", "tensor.collapse_shape",
}  # fmt: skip


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """All operations in the regions of one."""
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                yield inner.operation
                yield from inside(inner.operation)


def erase_checks(main: ir.Operation) -> None:
    """Take out the assertions of @main (indices lie inside), and what is computed for them alone."""
    operations = [op.operation for op in main.regions[0].blocks[0].operations]
    for op in reversed(operations):
        unused = op.results and not any(list(result.uses) for result in op.results)
        if op.name == "cf.assert" or unused:
            op.erase()


@pytest.mark.parametrize("name", NAMES)
def test_kernels_hold_no_graph_operation(name: str) -> None:
    with ir.Context():
        module = ir.Module.parse(tw.compile(str(models.path(name)), target="cpu", stop_after="tile"))
    operations = [op.operation for op in module.body.operations]
    kernels = [op for op in operations if op.name == "tile.kernel"]
    assert kernels
    for kernel in kernels:
        assert {op.name.partition(".")[0] for op in inside(kernel)} <= IN_KERNELS
    (main,) = [op for op in operations if op.name == "func.func"]
    erase_checks(main)
    names = {op.name for op in inside(main)}
    numbers = [op for op in inside(main) if op.name.startswith("arith.") and op.name != "arith.constant"]
    assert all(isinstance(op.result.type, ir.IndexType) for op in numbers), "only launches compute; @main counts"
    assert {name.partition(".")[0] for name in names} <= IN_MAIN
    assert {name for name in names if name.startswith("tensor.")} <= VIEWS
    assert {op.name for op in operations} == {"tile.kernel", "func.func", "ml_program.global"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_code_is_made_from_the_text_alone(name: str, tmp_path: Path) -> None:
    """In a process without the model and without any cache, kernels' text and weights give the same numbers."""
    file = models.path(name)
    inputs = models.random_inputs(onnx.load(file))
    model = tw.compile(str(file), target="cpu", threads=2)
    model.save(tmp_path / "model")
    np.savez(tmp_path / "weights.npz", **safetensors.read(tmp_path / "model/weights.safetensors"))
    np.savez(tmp_path / "inputs.npz", **inputs)  # type: ignore[arg-type]
    (tmp_path / "kernels.mlir").write_text(tw.compile(str(file), target="cpu", stop_after="tile"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(Path(__file__).with_name("from_text.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(tmp_path / "outputs.npz") as arrays:
        others = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
    for expected, other in zip(model(*inputs.values()), others, strict=True):
        assert expected.tobytes() == other.tobytes()
