# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tw.check and `tilewright check`: what can be compiled, and why the rest cannot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.cli import main


def model(*nodes: onnx.NodeProto, kind: int = TensorProto.FLOAT, shape: tuple = (2, 3)) -> onnx.ModelProto:
    """A graph from x to y."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "graph", [info("x", kind, shape)], [info("y", TensorProto.FLOAT, shape)])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


GOOD = model(helper.make_node("Relu", ["x"], ["t"], name="first"), helper.make_node("Exp", ["t"], ["y"]))
BAD = model(
    helper.make_node("Relu", ["x"], ["t"], name="first"),
    helper.make_node("Strange", ["t"], ["u"], name="second", domain="own"),
    helper.make_node("Exp", ["u"], ["y"]),
)


def test_a_model_that_can_be_compiled() -> None:
    verdict = tw.check(GOOD)
    assert verdict and verdict.complete
    assert [line.split() for line in verdict.table().splitlines()] == [
        ["first", "Relu", "operator", "2x3xfloat32"],
        ["y", "Exp", "operator", "2x3xfloat32"],
    ]
    assert verdict.summary() == "graph: 2 nodes for target cpu (2 operator)\nit can be compiled"
    assert verdict.remarks == []


def test_a_model_that_cannot() -> None:
    verdict = tw.check(BAD)
    assert not verdict
    (cause,) = [row for row in verdict.rows if row.name == "second"]
    assert "no lowering" in cause.reason and cause.op == "Strange"
    assert "first" not in verdict.table(failing=True)
    assert "own.Strange (1)" in verdict.summary() and verdict.summary().endswith("it cannot be compiled")


def test_open_dimensions_count_as_one() -> None:
    verdict = tw.check(model(helper.make_node("Relu", ["x"], ["y"]), shape=("batch", 3)))
    assert verdict.rows[0].results == (("float32", (1, 3)),)
    assert "without a size, taken as 1: batch" in verdict.summary()


def test_inputs_of_unsupported_types_are_told_with_the_operators() -> None:
    verdict = tw.check(model(helper.make_node("Strange", ["x"], ["y"], domain="own"), kind=TensorProto.STRING))
    assert not verdict
    assert "reads x, which holds strings" in verdict.problems[0] and "own.Strange: y" in verdict.problems[1]


def test_what_runs_as_scalar_loops_is_a_remark() -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "i"])]
    graph = model(*nodes, shape=(64, 100))
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array([100]), "k"))
    verdict = tw.check(graph)
    assert verdict.complete and verdict.remarks
    assert verdict.remarks[0][0] == "y"


@pytest.mark.parametrize(("graph", "code"), [(GOOD, 0), (BAD, 3)])
def test_the_command(graph: onnx.ModelProto, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(graph, tmp_path / "m.onnx")
    assert main(["check", str(tmp_path / "m.onnx")]) == code
    output = capsys.readouterr().out
    assert "first" in output and "m: " in output
    assert main(["check", str(tmp_path / "m.onnx"), "--summary"]) == code
    assert "first" not in capsys.readouterr().out


def test_what_has_no_nodes() -> None:
    with pytest.raises(tw.UserError, match="check is for ONNX models"):
        tw.check("func.func @main() {\n  return\n}")


def test_weights_with_zeros() -> None:
    """Their pattern, density, what is gained, and what keeps others dense."""
    rng = np.random.default_rng(0)
    kept = rng.permuted(np.broadcast_to(np.arange(16)[None, :, None] < 2, (32, 16, 256)), axis=1).reshape(512, 256)
    matrix = (rng.uniform(1, 2, (512, 256)) * kept).astype("f")
    windows = (rng.uniform(1, 2, (8, 8, 3, 3)) * (rng.random((8, 8, 3, 3)) < 0.5)).astype("f")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
        helper.make_node("Conv", ["image", "f"], ["z"], "windows", pads=[1] * 4),
    ]
    graph = helper.make_graph(
        nodes,
        "pruned",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 512]),
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 8, 20, 20]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 256]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 8, 20, 20]),
        ],
        [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(windows, "f")],
    )
    verdict = tw.check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    text = verdict.summary()
    assert "2 weights with zeros, 1 of them used" in text
    assert re.search(
        r"product: 512x256, 2:16, density 12\.5%: nm<2 : 16, axis = 0> by rows_in_lanes, \d\.\d\d× as", text
    )
    assert re.search(r"windows: 72x8, .*: dense, it reads windows of an image", text)
    assert verdict.complete
