# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of sizes for a model with open dimensions: drawn as its calls relate them, run from one artifact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from zoo_models import open_page
from zoo_models.export.storing import Made, store
from zoo_models.running import open_times
from zoo_models.running.open_sizes import open_sizes, sums


def test_a_size_that_is_the_sum_of_others_is_seen() -> None:
    known = [{"batch": 2, "past": 5, "new": 3, "total": 8}, {"batch": 1, "past": 9, "new": 1, "total": 10}]
    assert sums(known) == {"total": ("new", "past")}
    assert sums([]) == {}


def with_past(folder: Path) -> Path:
    """A model whose mask is as long as a past and new ones together, as an exporter stores it."""
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, ["batch", size]) for name, size in (("old", "past"), ("new", "sequence"))]
    inputs.append(info("mask", TensorProto.INT64, ["batch", "total"]))
    nodes = [
        helper.make_node("Concat", ["old", "new"], ["all"], axis=1, name="all"),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT, name="kept"),
        helper.make_node("Mul", ["all", "kept"], ["y"], name="y"),
    ]
    graph = helper.make_graph(nodes, "past", inputs, [info("y", TensorProto.FLOAT, None)])
    folder.mkdir(exist_ok=True)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), folder / "model.onnx")
    made = []
    for past, new in ((5, 3), (9, 1)):
        given = {"old": np.ones((2, past), np.float32), "new": np.ones((2, new), np.float32)}
        result = {"y": np.ones((2, past + new), np.float32)}
        made.append((given | {"mask": np.ones((2, past + new), np.int64)}, result))
    store(folder, Made(made, 1e-6, "hand"))
    return folder


def test_sets_of_sizes_of_one_artifact(tmp_path: Path) -> None:
    """Integers stay in the range of the calls."""
    found = open_sizes(with_past(tmp_path), sets=4)
    assert found["error"] == 0 and found["compiled"] == 0
    assert len(found["sizes"]) == 4 and all(s["total"] == s["past"] + s["sequence"] for s in found["sizes"])
    assert found["names"]["y"][0] == "batch"


def test_times_beside_fixed_sizes_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_times, "_SECONDS", 0.0)
    place = tmp_path / "times" / "hand"
    row = open_times.prepare(with_past(tmp_path / "hand"), place, sets=2)
    assert len(row["timed"]) == 2 and row["timed"][0]["total"] == row["timed"][0]["past"] + row["timed"][0]["sequence"]
    monkeypatch.setattr("sys.argv", ["", "measure", str(tmp_path / "open-sizes-1.json"), str(place), str(tmp_path)])
    assert open_times.main() == 1  # the second folder holds no model
    text = open_page.page(tmp_path)
    assert "| hand | 2 | 0 | 0e+00 |" in text
    assert "batch 1, past 112, sequence 16, total 128 | 1 |" in text and "at most 1.05" in text
    assert "## Failed" in text
    assert "Nothing is measured" in open_page.page(tmp_path / "times")


def test_a_size_that_no_call_is_timed_with_is_an_error() -> None:
    with pytest.raises(ValueError, match="no size to time is given for width; there are batch,"):
        open_times.sizes_for(["batch", "width"], open_times.TIMED[0])
