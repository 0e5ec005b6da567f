# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""precision="bf16" and "int8": what they do to the numbers, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core import config
from tilewright.core.errors import UserError

RNG = np.random.default_rng(17)
W = RNG.standard_normal((67, 45)).astype(np.float32)
X = RNG.standard_normal((9, 67)).astype(np.float32)


def _model(rows: int | str = 9) -> onnx.ModelProto:
    """relu(x w)."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [rows, 67]), ("y", [rows, 45]))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(W, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_bf16_rounds_the_factors_and_sums_in_f32() -> None:
    """The oracle rounds both operands to bf16."""
    model = tw.compile(_model(), precision="bf16")
    x, w = (v.astype(ml_dtypes.bfloat16).astype(np.float64) for v in (X, W))
    np.testing.assert_allclose(model(X)[0], np.maximum(x @ w, 0), rtol=1e-5, atol=1e-5)
    entry = json.loads((model.path / "manifest.json").read_text())["compile"]["precision"]
    assert entry["name"] == "bf16" and entry["products"] == 1 and 0 < entry["relative_error"] < 0.01


def test_int8_quantizes_by_the_ranges_of_the_calibration_data() -> None:
    """Within the steps of both operands; the error that the manifest states is the one seen."""
    pytest.importorskip("tilewright.compiler.precision")
    try:
        model = tw.compile(_model(), precision="int8", calibration=[(X,), {"x": X[::-1].copy()}])
    except UserError as error:
        pytest.skip(str(error))
    want = np.maximum(X @ W, 0)
    got = model(X)[0]
    entry = model._manifest.compile["precision"]
    assert entry["samples"] == 2 and entry["data"] == "calibration"
    assert np.abs(got - want).max() <= entry["max_abs_error"] + 1e-6
    assert 0 < entry["relative_error"] < 0.02


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is imported, and which phases are run, from here on."""
    from tilewright.compiler import driver
    from tilewright.compiler.source import Source

    seen: list[str] = []
    load, run_passes = Source.load, driver._run_passes
    monkeypatch.setattr(Source, "load", lambda self, *args: (seen.append("import"), load(self, *args))[1])
    monkeypatch.setattr(
        driver, "_run_passes", lambda work, phase, entry: (seen.append(phase.name), run_passes(work, phase, entry))[1]
    )
    return seen


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"accuracy": "winograd"}])
def test_one_import_for_the_model_and_for_its_error(
    options: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both compilations begin with one normalized module; what is in the cache needs neither."""
    seen = _watched(monkeypatch)
    with config.cache_dir.override(tmp_path):
        model = tw.compile(_model(), **options)
        assert [seen.count(name) for name in ("import", "normalize", "plan", "lower")] == [1, 1, 2, 2]
        assert "data" in model._manifest.compile[next(iter(options))]
        report = model.report_data()["phases"]
        assert [phase["name"] for phase in report[:3]] == ["import", "normalize", "plan"]
        seen.clear()
        tw.compile(_model(), **options)
        assert seen == []


def test_ranges_need_one_import_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of int8 are observed in the module that the pipeline normalized."""
    seen = _watched(monkeypatch)
    with config.cache_dir.override(tmp_path):
        text = tw.compile(_model(), "cuda:sm_80", precision="int8", calibration=X, stop_after="normalize")
        assert seen == ["import", "normalize"] and "linalg.generic" in text
        seen.clear()
        text = tw.compile(_model(), "cuda:sm_80", precision="int8", calibration=X, stop_after="plan")
        assert seen == ["import", "normalize", "plan"] and "xi8>" in text


@pytest.mark.parametrize("shapes", [None, {"rows": (1, 5)}, {"rows": (20, 40)}])
def test_bf16_of_open_sizes(shapes: dict | None) -> None:
    """One artifact, whose numbers are those of fixed sizes; its error is measured with sizes that it takes."""
    general = tw.compile(_model("rows"), precision="bf16", sizes="general", shapes=shapes)
    entry = general.general._manifest.compile["precision"]
    assert entry["products"] == 1 and 0 < entry["relative_error"] < 0.01
    rows = 5 if shapes is None else shapes["rows"][1]
    x = RNG.standard_normal((rows, 67)).astype(np.float32)
    fixed = tw.compile(_model(rows), precision="bf16")
    np.testing.assert_array_equal(general(x)[0], fixed(x)[0])
    assert general.sizes == []


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_open_sizes_on_a_gpu(precision: str) -> None:
    """Sums of bytes are exact: the numbers are those of fixed sizes. The ranges are those of the samples."""
    options = {"precision": precision, "calibration": X if precision == "int8" else None, "emulate": True}
    general = tw.compile(_model("rows"), "cuda:sm_80", sizes="general", **options)
    assert general.general._manifest.compile["precision"]["products"] == 1
    fixed = tw.compile(_model(), "cuda:sm_80", **options)
    np.testing.assert_allclose(general(X)[0], fixed(X)[0], rtol=1e-6, atol=1e-6)
    assert general(X[:3])[0].shape == (3, 45) and general.sizes == []


def test_pairs_of_activations_of_open_sizes_on_a_gpu() -> None:
    """Queries and keys of any number: both are rounded to bf16, as those of known numbers are."""
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, ["batch", rows, 32]) for name, rows in (("q", "queries"), ("k", "keys"))]
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", TensorProto.FLOAT, ["batch", "queries", "keys"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = tw.compile(model, "cuda:sm_80", precision="bf16", emulate=True, sizes="general")
    assert compiled.general._manifest.compile["precision"]["products"] == 1
    q, k = (RNG.standard_normal((2, n, 32)).astype(np.float32) for n in (5, 19))
    x, y = (v.astype(ml_dtypes.bfloat16).astype(np.float64) for v in (q, k))
    np.testing.assert_allclose(compiled(q, k)[0], x @ y.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
