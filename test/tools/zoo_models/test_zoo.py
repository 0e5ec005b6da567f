# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The zoo without its frameworks: what is stored and compared, what a run writes, and the page of it."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from zoo_models import environments, page
from zoo_models.__main__ import families, main
from zoo_models.comparing import difference
from zoo_models.export.families import FAMILIES
from zoo_models.export.storing import Made, store
from zoo_models.running import campaign
from zoo_models.running.one import judged

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def exported(root: Path, name: str = "hand/negative", operator: str = "Neg", batch: str | int = "batch") -> Path:
    """A model of one operator, as an exporter stores it."""
    folder = root / name
    folder.mkdir(parents=True)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], name="node")], "one", [x], [y])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), folder / "model.onnx")
    calls = [({"x": X}, {"y": -X})] if batch == 2 else [({"x": X}, {"y": -X}), ({"x": X[:1]}, {"y": -X[:1]})]
    store(folder, Made(calls, 1e-6, "hand"))
    return folder


def test_results_are_compared_by_name_and_by_their_largest_number() -> None:
    a, b = np.array([100.0, 1.0], np.float32), np.array([2.0], np.float32)
    assert difference({"a": a, "b": b}, {"b": b, "a": a}) == 0
    assert difference({"a": a}, {"other": a + 1}) == pytest.approx(0.01)
    assert difference({"a": a}, {"a": b}) == np.inf
    assert difference({"a": a}, {"a": np.array([np.nan, 1.0], np.float32)}) == np.inf
    nothing = np.array([np.nan, np.inf], np.float32)
    assert difference({"a": nothing}, {"a": nothing}) == 0
    assert difference({"a": np.array(["x", "y"])}, {"a": np.array(["x", "z"], object)}) == np.inf
    assert difference({"a": a}, {"a": a, "b": b}) == np.inf


def test_a_call_that_the_exporter_got_wrong_is_left_out(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    facts = store(folder, Made([({"x": X}, {"y": -X}), ({"x": X[:1]}, {"y": X[:1] + 1})], 1e-6, "hand"))
    assert facts["calls"] == 1
    assert facts["reference"] == "onnxruntime"
    assert "x [1, 3]: ONNX Runtime is" in facts["exporter_wrong"][0]
    with pytest.raises(ValueError, match="right for none of the calls"):
        store(folder, Made([({"x": X}, {"y": X + 1})], 1e-6, "hand"))


def test_a_file_that_onnx_runtime_refuses_is_compared_with_the_framework(tmp_path: Path) -> None:
    folder = exported(tmp_path, operator="Neg")
    (folder / "model.onnx").write_bytes(b"no model")
    facts = store(folder, Made([({"x": X}, {"y": -X})], 1e-6, "hand"))
    assert facts["reference"] == "framework"
    assert facts["refused_by_onnxruntime"]


@pytest.mark.parametrize("form", ["fixed", "open"])
def test_one_model_is_judged_from_its_artifact(tmp_path: Path, form: str) -> None:
    cell = judged(exported(tmp_path), "cpu", form)
    assert (cell["status"], cell["error"]) == ("ok", 0)
    assert "each_size" not in cell


def test_a_model_without_open_sizes_has_no_open_form(tmp_path: Path) -> None:
    assert judged(exported(tmp_path, batch=2), "cpu", "open")["status"] == "fixed only"


def test_wrong_results_and_refusals_have_their_reasons(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    np.savez(folder / "expected_0.npz", y=X)
    assert judged(folder, "cpu", "fixed") | {"compile_s": 0, "run_ms": 0} == {
        "status": "wrong", "error": 2.0, "compile_s": 0, "run_ms": 0, "reason": "error 2, allowed 1e-06",
    }  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("NoSuchOperator", ["x"], ["y"], name="node")],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), folder / "model.onnx")
    cell = judged(folder, "cpu", "fixed")
    assert cell["status"] == "refused"
    assert "NoSuchOperator" in cell["reason"]


def test_a_run_keeps_rows_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(tmp_path / "zoo")
    failed = tmp_path / "zoo/hand/failed"
    failed.mkdir()
    (failed / "meta.json").write_text(json.dumps({"failed": "ValueError: no"}))
    judgements: list[tuple[str, str]] = []

    def judge(folder: Path, target: str, form: str, limit: float) -> dict[str, object]:
        judgements.append((target, form))
        return {"status": "ok", "error": 0.0} if form == "fixed" else {"status": "crash", "reason": "exit status -11"}

    monkeypatch.setattr(campaign, "judge", judge)
    options = Namespace(json=tmp_path / "zoo-1.json", date="1", again=False, timeout=1.0, jobs=1)
    names = campaign.models(tmp_path / "zoo", [])
    assert names == ["hand/failed", "hand/negative"]
    assert campaign.models(tmp_path / "zoo", ["hand/n*"]) == ["hand/negative"]
    assert campaign.models(tmp_path / "zoo", ["hand"]) == names
    assert campaign.run(tmp_path / "zoo", names, ["cpu"], ["fixed"], options) == 0
    assert campaign.run(tmp_path / "zoo", names, ["cpu"], ["fixed", "open"], options) == 1
    assert judgements == [("cpu", "fixed"), ("cpu", "open")]
    text = page.page(tmp_path)
    assert "| hand | 1 | 1 | 1 of 1 | 0 of 1 |" in text
    assert "| negative | 0e+00 | ok | **crash** |" in text
    assert "- hand/negative (cpu open): exit status -11" in text
    assert "- hand/failed: not exported: ValueError: no" in text


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    cell = campaign.judge(exported(tmp_path), "cpu", "fixed", 0.05)
    assert cell == {"status": "time-out", "reason": "not done after 0 s"}


def test_one_artifact_and_one_for_each_set_of_sizes_differ_on_the_page() -> None:
    assert page.mark({"status": "ok"}) == "ok"
    assert page.mark({"status": "ok", "each_size": "a reason"}) == "each"
    assert page.mark({"status": "fixed only"}) == "-"
    assert page.mark(None) == ""


def test_environments_and_families_by_name() -> None:
    assert environments.places(["torch=/there"])["torch"] == Path("/there")
    with pytest.raises(ValueError, match="not NAME=FOLDER with a NAME of torch, jax, keras"):
        environments.places(["other=/there"])
    assert {family.environment for family in FAMILIES.values()} == set(environments.PACKAGES)
    assert families(["jax", "torchvision/resnet*"]) == {"jax": ["*"], "torchvision": ["resnet*"]}
    assert set(families([])) == set(FAMILIES) - {"wide"}
    assert families(["torch*/resnet*"]) == {"torchvision": ["resnet*"]}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--models", "bert"], "--models bert: not FAMILY/NAME with a FAMILY of transformers"),
        (["--env", "tf=/there"], "--env tf=/there: not NAME=FOLDER"),
        (["--forms", "opne"], "--forms opne: there are fixed, open"),
    ],
)
def test_wrong_words_of_the_command(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tools/zoo", "run", *words])
    with pytest.raises(SystemExit):
        main()
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_run_of_nothing_writes_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "zoo-1.json"
    monkeypatch.setattr("sys.argv", ["tools/zoo", "run", "--folder", str(tmp_path), "--json", str(results)])
    assert main() == 1
    assert "tools/zoo export makes them" in capsys.readouterr().out
    assert not results.exists()
