# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR of each border between phases is a model: `start_from=` goes on where `dump_ir=` and `stop_after=` wrote."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.compiler.starting import STARTS
from tilewright.core.errors import UserError

RNG = np.random.default_rng(0)
TARGETS = ("cpu", "cuda:sm_90a", "mesh:toy8x8")


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(len(name)).standard_normal(shape, dtype=np.float32), name)


def value(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(rows: int | str = 16) -> onnx.ModelProto:
    """Two products, whose weights are packed at compile time, and a softmax."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "v"], ["e"]),
        helper.make_node("Softmax", ["e"], ["y"]),
    ]
    weights = [weight("w", 64, 128), weight("b", 128), weight("v", 128, 32)]
    graph = helper.make_graph(nodes, "two_products", [value("x", rows, 64)], [value("y", rows, 32)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def options(target: str) -> dict[str, Any]:
    return {"emulate": True} if target.startswith("cuda") else {}


def ir_of(folder: Path, phase: str) -> Path:
    return folder / f"{STARTS.index(phase)}-{phase}.mlir"


@pytest.fixture(scope="module", params=TARGETS)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    """A target, the folder of its IR, the compiled model."""
    folder = tmp_path_factory.mktemp("dumped")
    compiled = tw.compile(model(), request.param, dump_ir=folder, **options(request.param))
    return request.param, folder, compiled


@pytest.mark.parametrize("phase", STARTS)
def test_ir_of_each_phase_is_the_model(dumped: tuple[str, Path, Any], phase: str) -> None:
    target, folder, compiled = dumped
    found = tw.compile(ir_of(folder, phase), target, start_from=phase, **options(target))
    assert found.inputs == compiled.inputs and found.outputs == compiled.outputs
    x = RNG.standard_normal((16, 64), dtype=np.float32)
    np.testing.assert_array_equal(found(x)["y"], compiled(x)["y"])
    names = [entry["name"] for entry in found.report_data()["phases"]]
    assert names[0] == phase and names[-1] == "emit" and len(names) == 7 - STARTS.index(phase)


def test_what_is_begun_can_be_dumped_and_begun_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    compiled = tw.compile(model(), dump_ir=first)
    tw.compile(ir_of(first, "plan"), start_from="plan", dump_ir=second)
    shutil.rmtree(first)
    x = RNG.standard_normal((16, 64), dtype=np.float32)
    for phase in ("plan", "tile", "schedule", "lower"):
        again = tw.compile(ir_of(second, phase), start_from=phase)
        np.testing.assert_array_equal(again(x)["y"], compiled(x)["y"])


def test_text_between_two_phases_and_weights_beside_it() -> None:
    rng = np.random.default_rng(1)
    text = tw.compile(
        """
        #ext = #ml_program.extern : tensor<8x4xf32>
        ml_program.global private @w(#ext) : tensor<8x4xf32>
        func.func @main(%x: tensor<2x8xf32> {tile.name = "x"}) -> tensor<2x4xf32> {
          %w = ml_program.global_load_const @w : tensor<8x4xf32>
          %e = tensor.empty() : tensor<2x4xf32>
          %z = arith.constant 0.0 : f32
          %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
          %m = linalg.matmul ins(%x, %w : tensor<2x8xf32>, tensor<8x4xf32>) outs(%f : tensor<2x4xf32>)
            -> tensor<2x4xf32>
          return %m : tensor<2x4xf32>
        }
        """,
        stop_after="normalize",
    )
    w, x = rng.standard_normal((8, 4), dtype=np.float32), rng.standard_normal((2, 8), dtype=np.float32)
    with pytest.raises(UserError, match=r"no elements of @w .*give weights="):
        tw.compile(text, start_from="normalize")
    np.testing.assert_allclose(tw.compile(text, start_from="normalize", weights={"w": w})(x)[0], x @ w, rtol=1e-5)


def test_sizes_that_are_open_stay_open(tmp_path: Path) -> None:
    tw.compile(model("rows"), dump_ir=tmp_path)
    found = tw.compile(ir_of(tmp_path, "plan"), start_from="plan")
    assert found.inputs[0].shape == ("rows", 64)
    whole = tw.compile(model("rows"))
    for rows in (1, 7, 40):
        x = RNG.standard_normal((rows, 64), dtype=np.float32)
        np.testing.assert_array_equal(found(x)["y"], whole(x)["y"])


def test_a_decision_edited_by_hand_becomes_code(tmp_path: Path) -> None:
    compiled = tw.compile(model(), "cpu:x86-64-v3", dump_ir=tmp_path)
    path = ir_of(tmp_path, "plan")
    text = path.read_text()
    rtile = next(found for found in re.findall(r"#tile\.rtile<[^>]*>", text) if "6" in found)
    edited = text.replace(rtile, rtile.replace("6", "4", 1))
    path.write_text(edited)
    found = tw.compile(path, "cpu:x86-64-v3", start_from="plan")
    x = RNG.standard_normal((16, 64), dtype=np.float32)
    np.testing.assert_allclose(found(x)["y"], compiled(x)["y"], rtol=1e-5)
    code = [m.report_data()["kernel_text"] for m in (compiled, found)]
    assert code[0] != code[1]


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    tw.compile(model(), dump_ir=tmp_path)
    plan = ir_of(tmp_path, "plan")
    for arguments, words in (
        (
            {"start_from": "tile"},
            r"is IR behind phase plan .*given as start_from='tile': say start_from='plan' \(--start-from plan\)",
        ),
        ({"start_from": "plan", "target": "cuda:sm_80"}, r"is IR behind phase plan for host .*target cuda:sm_80"),
        ({"start_from": "plan", "precision": "bf16"}, r"precision='bf16': .* where precision='f32' is decided"),
        ({"start_from": "plan", "tune": 1.0}, r"behind phase plan they are chosen"),
        ({"start_from": "plan", "shapes": {"x": (1, 64)}}, r"shapes= is for models"),
        ({"start_from": "plan", "stop_after": "plan"}, r"stop_after='plan' is not behind start_from='plan'"),
        ({"start_from": "emit"}, r"nothing begins behind 'emit'"),
        ({"start_from": "later"}, r"nothing begins behind 'later'"),
    ):
        with pytest.raises(UserError, match=words):
            tw.compile(plan, **arguments)
    with pytest.raises(UserError, match="takes IR, as MLIR text or a .mlir file"):
        tw.compile(model(), start_from="plan")
    for file in tmp_path.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(UserError, match=r"are to be in 'weights-.*put it beside the IR"):
        tw.compile(plan, start_from="plan")


def test_ir_without_a_signature_shows_its_inputs_before_it_has_buffers() -> None:
    plan = tw.compile(model(), stop_after="plan")
    bare = re.sub(r", tile\.signature = \{.*?\}(?=\} \{\n)", "", plan, count=1)
    assert "tile.signature" not in bare
    with pytest.raises(UserError, match="no elements of @"):
        tw.compile(bare, start_from="plan")
    schedule = tw.compile(model(), stop_after="schedule")
    bare = re.sub(r", tile\.signature = \{.*?\}(?=\} \{\n)", "", schedule, count=1)
    with pytest.raises(UserError, match=r"has no `tile\.signature`"):
        tw.compile(bare, start_from="schedule")
