# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""explain() and bench of models whose results have sizes known after the run, or that refuse random inputs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.cli import main


def model(kind: str, inputs: dict[str, tuple[int, list[int]]], output: int) -> onnx.ModelProto:
    """One node; the shape of its result is open."""
    infos = [helper.make_tensor_value_info(name, number, shape) for name, (number, shape) in inputs.items()]
    node = helper.make_node(kind, list(inputs), ["y"])
    graph = helper.make_graph([node], kind, infos, [helper.make_tensor_value_info("y", output, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


NON_ZERO = model("NonZero", {"x": (TensorProto.FLOAT, [3, 4])}, TensorProto.INT64)
RESHAPE = model(
    "Reshape", {"x": (TensorProto.FLOAT, [3, 4]), "to": (TensorProto.INT64, [2])}, TensorProto.FLOAT
)  # random numbers are no shape of 12 elements


def test_a_result_of_open_size_is_explained() -> None:
    page = tw.compile(NON_ZERO).explain()
    assert "2×?" in page and "-1" not in page.split("Inputs and outputs")[1].split("</section>")[0]


def test_a_model_that_refuses_random_inputs_is_explained_without_times() -> None:
    page = tw.compile(RESHAPE).explain()
    assert "not measured:" in page


def test_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(NON_ZERO, tmp_path / "m.onnx")
    assert main(["bench", str(tmp_path / "m.onnx"), "--seconds", "0.2"]) == 0
    assert "tilewright" in capsys.readouterr().out
